//! Agents' cards, whose addresses lead to the agent until they are rewritten.

use std::sync::Arc;

use url::Url;

use super::tree::{elements, member, members, string, text, within};
use crate::wire::json::{Edits, Inserts, Node, Span, Value, parse_tree, quote, splice};

/// Where a route is, as its clients see it, and where it leads.
#[derive(Clone, Debug)]
pub struct Place<'a> {
    /// Scheme and authority, without a slash at the end.
    pub origin: &'a str,
    /// The path below which the route is: empty, or without a slash at the end.
    pub prefix: &'a str,
    /// What the paths of the agent's own addresses may begin with, and those of the route do not.
    pub bases: &'a [Arc<str>],
}

/// What was read in a card.
#[derive(Clone, Debug, Default)]
pub struct Card {
    /// The agent's name.
    pub name: Option<String>,
    /// What makes its addresses those of the route.
    pub edits: Edits,
    /// Its signatures are taken out with it: they are about the addresses too.
    pub loses_signatures: bool,
}

/// Has all addresses of a card lead to the route. A way in that hookgate does not know (gRPC, for one) is taken out, since it
/// would lead round it. A card whose addresses are those of the route already stays as it is.
///
/// ```
/// use bytes::Bytes;
/// use hookgate::wire::a2a::{Place, rewrite};
/// use hookgate::wire::json::Span;
/// let card = Bytes::from_static(br#"{"name": "Billing", "url": "http://10.0.0.7:9000/rpc", "signatures": [{}]}"#);
/// let place = Place { origin: "https://agents.example.com", prefix: "/billing", bases: &[] };
/// let read = rewrite(&card, Span { start: 0, end: card.len() }, &place).unwrap();
/// let out = read.edits.apply(&card).to_bytes();
/// assert_eq!(out, r#"{"name": "Billing", "url": "https://agents.example.com/billing/rpc"}"#);
/// assert!(read.loses_signatures);
/// ```
///
/// `None`: the text at `span` is no JSON object.
pub fn rewrite(json: &[u8], span: Span, place: &Place<'_>) -> Option<Card> {
    let tree = parse_tree(span.of(json)).ok()?;
    let Value::Object(all) = &tree.value else { return None };
    let mut card = Card { name: text(&tree, &["name"]), ..Card::default() };
    for found in all {
        if found.key.is("url") {
            relocate(&found.value, span.start, place, &mut card.edits);
        }
        if LISTS.iter().any(|list| found.key.is(list)) {
            interfaces(&found.value, span.start, place, &mut card.edits);
        }
    }
    if !card.edits.is_empty() {
        let spans = all.iter().map(|found| Span { start: found.key.span().start, end: found.value.span.end });
        let spans: Vec<Span> = spans.map(|found| within(span.start, found)).collect();
        let drop: Vec<bool> = all.iter().map(|found| found.key.is("signatures")).collect();
        card.loses_signatures = drop.contains(&true);
        splice(&mut card.edits, &spans, &drop, Inserts::default());
    }
    Some(card)
}

/// Where a card lists its ways in.
const LISTS: [&str; 4] =
    ["supportedInterfaces", "supported_interfaces", "additionalInterfaces", "additional_interfaces"];

fn interfaces(list: &Node<'_>, offset: usize, place: &Place<'_>, edits: &mut Edits) {
    let entries = elements(list);
    let drop: Vec<bool> = entries.iter().map(|entry| !is_known(entry)).collect();
    for (entry, _) in entries.iter().zip(&drop).filter(|(_, drop)| !**drop) {
        for found in members(entry).iter().filter(|found| found.key.is("url")) {
            relocate(&found.value, offset, place, edits);
        }
    }
    let spans: Vec<Span> = entries.iter().map(|entry| within(offset, entry.span)).collect();
    splice(edits, &spans, &drop, Inserts::default());
}

/// Whether hookgate reads what comes that way.
fn is_known(entry: &Node<'_>) -> bool {
    let binding = member(entry, &["protocolBinding", "protocol_binding", "transport"]).map(string);
    match binding {
        Some(Some(binding)) => binding.eq_ignore_ascii_case("JSONRPC") || binding.eq_ignore_ascii_case("HTTP+JSON"),
        Some(None) => false,
        None => true,
    }
}

fn relocate(url: &Node<'_>, offset: usize, place: &Place<'_>, edits: &mut Edits) {
    let Some(found) = string(url) else { return };
    let moved = moved(&found, place);
    if moved != found {
        edits.replace(within(offset, url.span), quote(&moved));
    }
}

/// The address on the route for one of the agent's. What has no path that could be kept becomes the route's own address.
fn moved(address: &str, place: &Place<'_>) -> String {
    let own = || format!("{}{}", place.origin, place.prefix);
    let Ok(url) = Url::parse(address) else { return own() };
    if !matches!(url.scheme(), "http" | "https") {
        return own();
    }
    let path = if url.path() == "/" && !address.ends_with('/') { "" } else { url.path() };
    let is_ours = Url::parse(place.origin).is_ok_and(|origin| origin.origin() == url.origin());
    if is_ours && below(path, place.prefix).is_some() {
        return address.to_owned();
    }
    // The longest one, so that of `/a` and `/a/b` the right one goes.
    let rest = place.bases.iter().filter_map(|base| below(path, base)).min_by_key(|rest| rest.len()).unwrap_or(path);
    let query = url.query().map(|query| format!("?{query}")).unwrap_or_default();
    format!("{}{rest}{query}", own())
}

/// What of a path is below another one.
fn below<'a>(path: &'a str, base: &str) -> Option<&'a str> {
    path.strip_prefix(base).filter(|rest| rest.is_empty() || rest.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    const ORIGIN: &str = "https://gate.example";

    fn rewritten(text: &str, prefix: &str, bases: &[Arc<str>]) -> String {
        let card = Bytes::copy_from_slice(text.as_bytes());
        let place = Place { origin: ORIGIN, prefix, bases };
        let read = rewrite(&card, Span { start: 0, end: card.len() }, &place).unwrap();
        String::from_utf8(read.edits.apply(&card).to_bytes().to_vec()).unwrap()
    }

    #[test]
    fn addresses_lose_what_the_upstream_adds_and_get_what_the_route_takes() {
        let bases = ["/base".into(), "/base/deep".into()];
        for (address, expected) in [
            ("http://up:9000", "https://gate.example/p"),
            ("http://up:9000/", "https://gate.example/p/"),
            ("http://up:9000/rpc?x=1", "https://gate.example/p/rpc?x=1"),
            ("http://up:9000/base", "https://gate.example/p"),
            ("http://up:9000/base/rpc", "https://gate.example/p/rpc"),
            ("http://up:9000/base/deep/rpc", "https://gate.example/p/rpc"),
            ("http://up:9000/baseline", "https://gate.example/p/baseline"),
            // It is the route's own already, or only its origin is.
            ("https://gate.example/p/rpc", "https://gate.example/p/rpc"),
            ("https://gate.example:443/p", "https://gate.example:443/p"),
            ("https://gate.example/rpc", "https://gate.example/p/rpc"),
            ("http://gate.example/p", "https://gate.example/p/p"),
            ("/rpc", "https://gate.example/p"),
            ("grpc://up:1", "https://gate.example/p"),
        ] {
            let place = Place { origin: ORIGIN, prefix: "/p", bases: &bases };
            assert_eq!(moved(address, &place), expected, "{address}");
        }
    }

    #[test]
    fn a_card_of_0_3_has_three_places() {
        let text = r#"{"url":"http://up/a","preferredTransport":"JSONRPC","provider":{"url":"https://acme.example"},
            "additionalInterfaces":[{"url":"http://up:1","transport":"GRPC"},{"url":"http://up/b","transport":"HTTP+JSON"}],
            "iconUrl":"https://acme.example/i"}"#;
        let expected = r#"{"url":"https://gate.example/p/a","preferredTransport":"JSONRPC","provider":{"url":"https://acme.example"},
            "additionalInterfaces":[{"url":"https://gate.example/p/b","transport":"HTTP+JSON"}],
            "iconUrl":"https://acme.example/i"}"#;
        assert_eq!(rewritten(text, "/p", &[]), expected);
    }

    #[test]
    fn a_card_of_1_0_loses_what_leads_round_hookgate() {
        let text = r#"{"signatures":[{"protected":"x"}],"supportedInterfaces":[{"url":"http://up/rpc","protocolBinding":"JSONRPC"},
            {"url":"up:50051","protocolBinding":"GRPC"},{"url":"wss://up","protocolBinding":"https://example/ws"}],"name":"A"}"#;
        let expected =
            r#"{"supportedInterfaces":[{"url":"https://gate.example/rpc","protocolBinding":"JSONRPC"}],"name":"A"}"#;
        assert_eq!(rewritten(text, "", &[]), expected);
    }

    #[test]
    fn a_card_that_leads_here_already_keeps_its_signatures() {
        let text = r#"{"signatures": [1], "supportedInterfaces":[{"url":"https://gate.example/p","protocolBinding":"JSONRPC"}]}"#;
        assert_eq!(rewritten(text, "/p", &[]), text);
    }

    #[test]
    fn each_of_two_equal_members_is_rewritten() {
        assert_eq!(
            rewritten(r#"{"url":"http://up/a","u\u0072l":"http://up/b"}"#, "", &[]),
            r#"{"url":"https://gate.example/a","u\u0072l":"https://gate.example/b"}"#
        );
    }

    #[test]
    fn what_is_no_card_is_none() {
        let place = Place { origin: ORIGIN, prefix: "", bases: &[] };
        for text in ["", "[]", "7", "{"] {
            assert!(rewrite(text.as_bytes(), Span { start: 0, end: text.len() }, &place).is_none(), "{text}");
        }
    }
}
