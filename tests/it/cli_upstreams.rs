//! A route with several servers, of which one is away for a while.

use crate::away::Away;
use crate::cli_support::{Running, policy, serve};
use crate::config_support::Folder;

const AWAY: &str = "the upstream cannot be connected to";
const BACK: &str = "the upstream is back";

/// A proxy that has found out that the first one of its two servers is away.
fn with_one_away(away: &Away, check_interval: &str) -> Running {
    let there = policy("\"there\"");
    let folder = Folder::with(&format!(
        "[server]\nlisten = \"127.0.0.1:0\"\n[log]\nformat = \"json\"\n[[routes]]\nname = \"r\"\nkind = \"passthrough\"\n\
         path_prefix = \"/\"\nupstream = [\"http://{}\", \"http://{there}\"]\ncheck_interval = \"{check_interval}\"\n",
        away.address
    ));
    let running = Running::start(&folder);
    assert_eq!(running.logged(AWAY)["upstream"], away.address.to_string());
    running
}

/// Who answers these requests.
fn answers(running: &Running, count: usize) -> Vec<String> {
    let ask = || running.ask("GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n");
    (0..count).map(|_| ask().split("\r\n\r\n").nth(1).unwrap().to_owned()).collect()
}

/// It could be connected to again, but until the next look it is not even tried.
#[tokio::test]
async fn a_server_that_is_away_is_taken_out() {
    let away = Away::new();
    let running = with_one_away(&away, "1h");
    serve(away.listen(), "\"back\"");
    assert_eq!(answers(&running, 6), ["\"there\""; 6]);
}

#[tokio::test]
async fn a_server_that_listens_again_is_taken_in_its_turn() {
    let away = Away::new();
    let address = away.address.to_string();
    let running = with_one_away(&away, "100ms");
    assert_eq!(answers(&running, 4), ["\"there\""; 4]);
    serve(away.listen(), "\"back\"");
    assert_eq!(running.logged(BACK)["upstream"], address);
    let mut answers = answers(&running, 4);
    answers.sort_unstable();
    assert_eq!(answers, ["\"back\"", "\"back\"", "\"there\"", "\"there\""]);
}
