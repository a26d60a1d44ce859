//! The `hookgate` command.

use std::process::ExitCode;

/// Exchanges move between threads, and so does what they free: for that glibc's allocator makes threads wait for each other.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    hookgate::cli::main()
}
