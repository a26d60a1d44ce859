//! The `hookgate` command.

use std::process::ExitCode;

fn main() -> ExitCode {
    hookgate::cli::main()
}
