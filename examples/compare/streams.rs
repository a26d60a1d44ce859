//! What no load generator measures: how late each event of a stream is, and what open streams take.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::{join_all, try_join_all};
use futures_util::{StreamExt, TryStreamExt, stream};
use hookgate::BoxError;
use hookgate::wire::sse::Splitter;
use http::Request;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use tokio::sync::Semaphore;

use crate::ask::Ask;
use crate::figures::{Figure, Sample};
use crate::process::{Process, Threads};
use crate::upstream::{EVENTS, PAUSE, SLOW_EVENTS, age};

/// Streams that are being opened at the same time.
const OPENING: usize = 128;
/// How long nothing happens before idle streams are weighed.
const IDLE: Duration = Duration::from_secs(1);

/// Asks for streams of events. Streams that are open at the same time have connections of their own.
pub(crate) struct Asker<'a> {
    process: &'a Process,
    client: Client<HttpConnector, Full<Bytes>>,
    ask: Ask,
    body: Bytes,
}

impl<'a> Asker<'a> {
    pub(crate) fn new(process: &'a Process, ask: Ask) -> Asker<'a> {
        let mut connector = HttpConnector::new();
        connector.set_nodelay(true);
        Asker { process, client: Client::builder(TokioExecutor::new()).build(connector), ask, body: ask.body() }
    }

    /// That many streams side by side, whose events come one by one.
    pub(crate) async fn paced(&self, streams: usize) -> Result<Sample, BoxError> {
        let before = self.process.threads()?;
        let ages = try_join_all((0..streams).map(|stream| async move {
            // They do not step in time with each other.
            tokio::time::sleep(PAUSE * stream as u32 / streams as u32).await;
            read(self.open().await?, EVENTS).await
        }));
        self.sample(&before, ages.await?.concat())
    }

    /// That many streams that stay as they are after their first event.
    pub(crate) async fn idle(&self, streams: usize) -> Result<Sample, BoxError> {
        let before = self.process.memory()?;
        let opened = stream::iter(0..streams).map(|_| async {
            let mut body = self.open().await?;
            body.frame().await.ok_or("a stream without an event")??;
            Ok::<_, BoxError>(body)
        });
        let open: Vec<Incoming> = opened.buffer_unordered(OPENING).try_collect().await?;
        tokio::time::sleep(IDLE).await;
        let after = self.process.memory()?;
        Ok(Sample::from([(Figure::Memory, after / 1024.0), (Figure::Each, (after - before) / open.len() as f64)]))
    }

    /// That many slow streams at once.
    pub(crate) async fn slow(&self, streams: usize) -> Result<Sample, BoxError> {
        let before = self.process.threads()?;
        let (opening, open, most) = (Semaphore::new(OPENING), AtomicUsize::new(0), AtomicUsize::new(0));
        let runs = join_all((0..streams).map(|_| async {
            let permit = opening.acquire().await?;
            let body = self.open().await?;
            drop(permit);
            most.fetch_max(open.fetch_add(1, Relaxed) + 1, Relaxed);
            let ages = read(body, SLOW_EVENTS).await;
            open.fetch_sub(1, Relaxed);
            ages
        }));
        let (served, failed): (Vec<_>, Vec<_>) = runs.await.into_iter().partition(Result::is_ok);
        if let Some(Err(error)) = failed.first() {
            eprintln!("  {} streams failed: {error}", failed.len());
        }
        let served: Vec<Vec<f64>> = served.into_iter().flatten().collect();
        let at_once = served.len().min(most.into_inner());
        let mut sample = self.sample(&before, served.concat())?;
        sample.insert(Figure::Served, 100.0 * at_once as f64 / streams as f64);
        Ok(sample)
    }

    async fn open(&self) -> Result<Incoming, BoxError> {
        let mut request = Request::post(format!("{}{}", self.process.url, self.ask.path()));
        for (name, value) in self.ask.headers() {
            request = request.header(name, value);
        }
        let request = request.body(Full::new(self.body.clone()))?;
        let response = self.client.request(request).await?;
        if response.status() != 200 {
            return Err(format!("answered {}", response.status()).into());
        }
        Ok(response.into_body())
    }

    /// The figures of events whose ages in microseconds are those.
    fn sample(&self, before: &Threads, mut ages: Vec<f64>) -> Result<Sample, BoxError> {
        let micros = self.process.micros_since(before)?;
        ages.sort_by(f64::total_cmp);
        let at = |share: f64| ages.get((ages.len() as f64 * share) as usize).copied().ok_or("no stream was served");
        Ok(Sample::from([
            (Figure::P50, at(0.5)?),
            (Figure::P99, at(0.99)?),
            (Figure::EventCpu, micros / ages.len() as f64),
            (Figure::Memory, self.process.memory()? / 1024.0),
        ]))
    }
}

/// Reads a stream to its end; the ages of its events, as many as there must be.
async fn read(mut body: Incoming, events: usize) -> Result<Vec<f64>, BoxError> {
    let (mut splitter, mut ages, mut ended) = (Splitter::new(1 << 20), Vec::with_capacity(events), false);
    while let Some(frame) = body.frame().await {
        let Ok(chunk) = frame?.into_data() else { continue };
        splitter.push(chunk);
        while let Some(event) = splitter.next()? {
            ages.extend(age(&splitter.data(&event)).map(|age| age.as_secs_f64() * 1e6));
            ended |= splitter.name(&event) == b"message_stop";
        }
    }
    if ended && ages.len() == events { Ok(ages) } else { Err("a stream lost events".into()) }
}
