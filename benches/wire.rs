//! What inspection costs before any hook is asked: splitting streams, reading events and requests, splicing.

use bytes::Bytes;
use criterion::{BatchSize, BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use hookgate::testing::Message;
use hookgate::wire::anthropic::{parse, read_event};
use hookgate::wire::json::{Edits, find_duplicate};
use hookgate::wire::sse::Splitter;

/// A chunk as the network gives it: an HTTP/2 frame's usual size.
const CHUNK: usize = 16 << 10;

/// A streamed answer of about one megabyte, mostly text in small deltas.
fn stream() -> Bytes {
    let mut message = Message::new("msg_1");
    for _ in 0..2_000 {
        message = message.text("Some words of an answer, as models say them.");
    }
    let message = message.tool("toolu_1", "read", &format!(r#"{{"text":"{}"}}"#, "x".repeat(50_000)));
    message.sse()
}

/// A request with a history of about that many bytes.
fn request(size: usize) -> Bytes {
    let result = "A line of a tool's result with \\\"quotes\\\" and \\n in it. ".repeat(20);
    let mut messages = String::from(r#"{"role":"user","content":[{"type":"text","text":"Begin."}]}"#);
    let mut call = 0;
    while messages.len() < size {
        call += 1;
        messages.push_str(&format!(
            r#",{{"role":"assistant","content":[{{"type":"tool_use","id":"toolu_{call}","name":"read","input":{{"path":"a","limit":100}}}}]}},{{"role":"user","content":[{{"type":"tool_result","tool_use_id":"toolu_{call}","content":"{result}"}}]}}"#
        ));
    }
    format!(r#"{{"model":"m","max_tokens":1024,"stream":true,"messages":[{messages}]}}"#).into()
}

fn sse(criterion: &mut Criterion) {
    let stream = stream();
    let chunks: Vec<Bytes> =
        (0..stream.len()).step_by(CHUNK).map(|at| stream.slice(at..stream.len().min(at + CHUNK))).collect();
    let mut group = criterion.benchmark_group("sse");
    group.throughput(Throughput::Bytes(stream.len() as u64));
    for (name, read) in [("split", false), ("split_and_read", true)] {
        group.bench_function(name, |bencher| {
            bencher.iter(|| {
                let mut splitter = Splitter::new(8 << 20);
                let mut events = 0;
                for chunk in &chunks {
                    splitter.push(chunk.clone());
                    while let Some(event) = splitter.next().expect("the stream is well formed") {
                        events += 1;
                        if read {
                            let data = splitter.data(&event);
                            std::hint::black_box(read_event(splitter.name(&event), &data).is_ok());
                        }
                    }
                }
                events
            });
        });
    }
    group.finish();
}

fn requests(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("request");
    for (name, size) in [("10KB", 10 << 10), ("1MB", 1 << 20), ("10MB", 10 << 20)] {
        let request = request(size);
        group.throughput(Throughput::Bytes(request.len() as u64));
        group.bench_with_input(BenchmarkId::new("parse", name), &request, |bencher, request| {
            bencher.iter(|| parse(request, false).expect("the request is well formed"));
        });
    }
    group.finish();
}

fn splicing(criterion: &mut Criterion) {
    let request = request(1 << 20);
    let conversation = parse(&request, false).expect("the request is well formed");
    let mut group = criterion.benchmark_group("splice");
    group.throughput(Throughput::Bytes(request.len() as u64));
    group.bench_function("16_results_of_1MB", |bencher| {
        bencher.iter_batched(
            || {
                let mut edits = Edits::default();
                for message in conversation.messages.iter().filter(|message| !message.plain).take(16) {
                    edits.replace(message.span, Bytes::from_static(br#"{"role":"user","content":"replaced"}"#));
                }
                edits
            },
            |edits| edits.apply(&request),
            BatchSize::SmallInput,
        );
    });
    group.bench_function("find_duplicate_1MB", |bencher| bencher.iter(|| find_duplicate(&request).is_ok()));
    group.finish();
}

criterion_group!(benches, sse, requests, splicing);
criterion_main!(benches);
