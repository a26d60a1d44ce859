//! One suite of scenarios for both hosts. A scenario is an async function of a setting; the lists make each of them a test
//! for each host and, where that matters, each kind of answer, and run it with a time limit that only a hang reaches.

use std::future::Future;
use std::time::Duration;

use hookgate::BoxError;

/// What a scenario gives.
pub(crate) type Outcome = Result<(), BoxError>;

/// The two ways in which hookgate is deployed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Host {
    /// `HookLayer` in a Tower stack on hyper, in front of a service that proxies.
    Layer,
    /// The standalone proxy on pingora, started from a configuration file.
    Proxy,
}

/// No scenario takes this long.
const PATIENCE: Duration = Duration::from_secs(30);

/// Runs a scenario, and gives what it gives.
pub(crate) fn play<T>(scenario: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let played = runtime.block_on(async { tokio::time::timeout(PATIENCE, scenario).await });
    played.unwrap_or_else(|_| panic!("the scenario hangs"))
}

/// Makes the tests of one setting, in a module below one that sees the scenarios.
macro_rules! tests {
    ($setting:expr, $($file:ident: $($name:ident),+;)+) => {
        $($(
            #[test]
            fn $name() -> impl std::process::Termination {
                use super::*;
                crate::suite::play($file::$name($setting))
            }
        )+)+
    };
}

/// Makes the tests of both hosts from scenarios for which the host is all of the setting.
macro_rules! on_both_hosts {
    ($($all:tt)+) => {
        mod layer_host {
            tests!(Host::Layer, $($all)+);
        }
        mod proxy_host {
            tests!(Host::Proxy, $($all)+);
        }
    };
}

/// Makes the tests of all hosts: scenarios that are played both ways, and those of streamed answers only. The module has a
/// type `Setting` with `host` and `stream`.
macro_rules! suite {
    (both { $($both:tt)+ } streamed { $($streamed:tt)+ }) => {
        mod layer_host {
            use super::*;

            mod streamed {
                tests!(Setting { host: Host::Layer, stream: true }, $($both)+ $($streamed)+);
            }
            mod whole {
                tests!(Setting { host: Host::Layer, stream: false }, $($both)+);
            }
        }
        mod proxy_host {
            use super::*;

            mod streamed {
                tests!(Setting { host: Host::Proxy, stream: true }, $($both)+ $($streamed)+);
            }
            mod whole {
                tests!(Setting { host: Host::Proxy, stream: false }, $($both)+);
            }
        }
    };
}
