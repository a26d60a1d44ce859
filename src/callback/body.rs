//! Reading what the worker sends, within its limits.

use std::pin::Pin;
use std::time::Duration;

use async_compression::tokio::bufread::GzipDecoder;
use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use tokio::io::AsyncReadExt;

use super::machine::{Answer, Coding};
use crate::linger::linger;

/// The whole body, decoded. Its size is bounded before and after decoding, and so is the time until it is there.
pub(super) async fn read<B>(
    mut body: Pin<Box<B>>,
    coding: Coding,
    limit: usize,
    time: Duration,
) -> Result<Bytes, Answer>
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
{
    let received = tokio::time::timeout(time, collect(&mut body, limit)).await.unwrap_or(Err(Answer::Late));
    if received == Err(Answer::TooLarge) {
        // The client is in the middle of sending. One that was too slow had its time.
        tokio::spawn(linger(body));
    }
    match coding {
        Coding::Plain => received,
        Coding::Gzip => decode(&received?, limit).await,
    }
}

async fn collect<B>(body: &mut Pin<Box<B>>, limit: usize) -> Result<Bytes, Answer>
where
    B: http_body::Body<Data = Bytes>,
{
    // One buffer: a body of tiny pieces must not cost more than one of large ones.
    let mut received = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame.map_err(|_| Answer::Aborted)?.into_data() else { continue };
        if data.len() > limit - received.len() {
            return Err(Answer::TooLarge);
        }
        received.extend_from_slice(&data);
    }
    Ok(received.freeze())
}

async fn decode(received: &[u8], limit: usize) -> Result<Bytes, Answer> {
    let mut decoder = GzipDecoder::new(received);
    decoder.multiple_members(true);
    let mut decoded = Vec::new();
    match decoder.take(limit as u64 + 1).read_to_end(&mut decoded).await {
        Ok(_) if decoded.len() > limit => Err(Answer::TooLarge),
        Ok(_) => Ok(decoded.into()),
        Err(_) => Err(Answer::Aborted),
    }
}
