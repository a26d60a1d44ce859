//! One suite of scenarios for both hosts. A scenario is an async function of a setting; the lists make each of them a test
//! for each host and each kind of answer, and run it with a time limit that only a hang reaches.

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

/// Runs a scenario.
pub(crate) fn play(scenario: impl Future<Output = Outcome>) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    match runtime.block_on(async { tokio::time::timeout(PATIENCE, scenario).await }) {
        Ok(Ok(())) => {}
        Ok(Err(error)) => panic!("{error}"),
        Err(_) => panic!("the scenario hangs"),
    }
}

/// Makes the tests of one setting, in a module two levels below that of the scenarios.
macro_rules! tests {
    ($setting:expr, $($file:ident: $($name:ident),+;)+) => {
        $($(
            #[test]
            fn $name() {
                use super::super::*;
                crate::suite::play($file::$name($setting));
            }
        )+)+
    };
}

/// Makes the tests of all hosts: scenarios that are played both ways, and those of streamed answers only. The module has a
/// type `Setting` with `host` and `stream`.
macro_rules! suite {
    (both { $($both:tt)+ } streamed { $($streamed:tt)+ }) => {
        mod layer_host {
            mod streamed {
                tests!(Setting { host: Host::Layer, stream: true }, $($both)+ $($streamed)+);
            }
            mod whole {
                tests!(Setting { host: Host::Layer, stream: false }, $($both)+);
            }
        }
        mod proxy_host {
            mod streamed {
                tests!(Setting { host: Host::Proxy, stream: true }, $($both)+ $($streamed)+);
            }
            mod whole {
                tests!(Setting { host: Host::Proxy, stream: false }, $($both)+);
            }
        }
    };
}
