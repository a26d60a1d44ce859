//! What the layer adds to an exchange: nothing is inspected, handlers exist for other tools, handlers are asked. And what it
//! takes to ask them, with nothing around it.

mod fixture;

use bytes::Bytes;
use criterion::measurement::WallTime;
use criterion::{BenchmarkGroup, Criterion, Throughput, criterion_group, criterion_main};
use fixture::{Answer, Call, EVENTS, exchange, gate, request};
use hookgate::Hookgate;
use tokio::runtime::{Builder, Runtime};

/// The cores that are compared. A core without handlers passes everything on, so it is what the bodies alone cost.
fn gates() -> [(&'static str, Hookgate); 4] {
    [
        ("no_handler", gate(0, "read")),
        ("1_for_another_tool", gate(1, "write")),
        ("1_handler", gate(1, "read")),
        ("5_handlers", gate(5, "read")),
    ]
}

fn runtime() -> Runtime {
    Builder::new_current_thread().enable_all().build().expect("a runtime can be made")
}

fn run(group: &mut BenchmarkGroup<'_, WallTime>, request: &Bytes, answer: &Answer) {
    let runtime = runtime();
    for (name, gate) in gates() {
        group.bench_function(name, |bencher| {
            bencher.iter(|| runtime.block_on(exchange(&gate, request.clone(), answer)));
        });
    }
}

fn whole(criterion: &mut Criterion) {
    for (name, call) in [("json/text", false), ("json/call", true)] {
        run(&mut criterion.benchmark_group(name), &request(1 << 10), &Answer::json(call));
    }
}

fn streamed(criterion: &mut Criterion) {
    for (name, call, one_by_one) in [
        ("stream/text_at_once", false, false),
        ("stream/text_one_by_one", false, true),
        ("stream/call_one_by_one", true, true),
    ] {
        let mut group = criterion.benchmark_group(name);
        group.throughput(Throughput::Elements(EVENTS as u64));
        run(&mut group, &request(1 << 10), &Answer::streamed(call, one_by_one));
    }
}

fn history(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("history/1MB");
    let request = request(1 << 20);
    group.throughput(Throughput::Bytes(request.len() as u64));
    run(&mut group, &request, &Answer::json(false));
}

/// Finding whom a call concerns, what each is told, the verdict, and the record: handlers answer at once.
fn dispatch(criterion: &mut Criterion) {
    let runtime = runtime();
    let mut group = criterion.benchmark_group("dispatch");
    for (name, handlers, tool) in
        [("100_for_another_tool", 100, "write"), ("1_handler", 1, "read"), ("5_handlers", 5, "read")]
    {
        let call = Call::new(handlers, tool);
        group.bench_function(name, |bencher| bencher.iter(|| runtime.block_on(call.decide())));
    }
}

criterion_group!(benches, whole, streamed, history, dispatch);
criterion_main!(benches);
