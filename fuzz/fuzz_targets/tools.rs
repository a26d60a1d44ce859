#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| hookgate::fuzz::tools(data));
