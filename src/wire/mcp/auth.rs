//! What OAuth says of an MCP server's address (RFC 9728), for a server that is reached by another one.

use bytes::Bytes;

use crate::wire::json::{Cursor, Edits, JsonError, Kind, quote};

/// Where a server's metadata is: in front of the server's own path.
pub const PROTECTED_RESOURCE: &str = "/.well-known/oauth-protected-resource";

/// The value of a `www-authenticate` header whose `resource_metadata` is another address. `None`: it has none, or one that is not
/// at the [well-known place](PROTECTED_RESOURCE), of which nobody knows what it would be here.
///
/// ```
/// use hookgate::wire::mcp::with_metadata_at;
/// let challenge = r#"Bearer scope="a", resource_metadata="http://127.0.0.1/.well-known/oauth-protected-resource/mcp""#;
/// let public = "https://agents.example.com/.well-known/oauth-protected-resource/files";
/// assert_eq!(with_metadata_at(challenge, public).unwrap(), format!("Bearer scope=\"a\", resource_metadata=\"{public}\""));
/// ```
pub fn with_metadata_at(challenge: &str, url: &str) -> Option<String> {
    let mut out = String::with_capacity(challenge.len() + url.len());
    let (mut rest, mut changed) = (challenge, false);
    while let Some(at) = parameter(rest, "resource_metadata") {
        let (before, value) = rest.split_at(at);
        let end = value_end(value);
        let (old, behind) = value.split_at(end);
        out.push_str(before);
        if is_well_known(old.trim_matches('"')) {
            out.push('"');
            out.push_str(url);
            out.push('"');
            changed = true;
        } else {
            out.push_str(old);
        }
        rest = behind;
    }
    out.push_str(rest);
    changed.then_some(out)
}

/// Where the value of a parameter starts; what stands in quotes is no parameter.
fn parameter(challenge: &str, name: &str) -> Option<usize> {
    let (mut before, mut quoted_to) = (',', 0);
    for (at, letter) in challenge.char_indices() {
        let starts = matches!(std::mem::replace(&mut before, letter), ' ' | '\t' | ',');
        let Some(here) = challenge.get(at..).filter(|_| at >= quoted_to) else { continue };
        if letter == '"' {
            quoted_to = at + value_end(here);
            continue;
        }
        let behind = here.get(..name.len()).filter(|found| starts && found.eq_ignore_ascii_case(name));
        let behind = behind.and_then(|_| here.get(name.len()..)).map(str::trim_start);
        if let Some(value) = behind.and_then(|rest| rest.strip_prefix('=')) {
            return Some(challenge.len() - value.trim_start().len());
        }
    }
    None
}

/// How long a value is: up to its closing quote, or to what ends a token.
fn value_end(value: &str) -> usize {
    if !value.starts_with('"') {
        return value.find([',', ' ', '\t']).unwrap_or(value.len());
    }
    let mut escaped = false;
    for (at, letter) in value.char_indices().skip(1) {
        match letter {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return at + 1,
            _ => {}
        }
    }
    value.len()
}

fn is_well_known(url: &str) -> bool {
    let path = url.split_once("://").and_then(|(_, rest)| rest.find('/').and_then(|at| rest.get(at..)));
    let below = path.and_then(|path| path.strip_prefix(PROTECTED_RESOURCE));
    below.is_some_and(|rest| rest.is_empty() || rest.starts_with(['/', '?']))
}

/// Metadata of a server whose own address (`resource`) is another one; everything else stays, such as the addresses of
/// authorization servers.
///
/// # Errors
/// It is no JSON object, or it says no address.
pub fn with_resource(metadata: &Bytes, url: &str) -> Result<Bytes, JsonError> {
    let mut edits = Edits::default();
    Cursor::document(metadata, |cursor| {
        if cursor.kind()? != Kind::Object {
            return Err(JsonError { what: "expected an object", offset: 0 });
        }
        cursor.object(|cursor, key| {
            let value = cursor.skip()?;
            if key.is("resource") {
                edits.replace(value, quote(url));
            }
            Ok(())
        })
    })?;
    if edits.is_empty() {
        return Err(JsonError { what: "it has no member \"resource\"", offset: 0 });
    }
    Ok(edits.apply(metadata).to_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    const URL: &str = "https://a.example/.well-known/oauth-protected-resource/f";

    #[test]
    fn only_the_address_of_the_metadata_changes() {
        let old = "http://x:1/.well-known/oauth-protected-resource";
        for (before, after) in [
            (format!("Bearer resource_metadata=\"{old}\""), Some(format!("Bearer resource_metadata=\"{URL}\""))),
            (
                format!(
                    "Basic realm=\"a, resource_metadata=\\\"b\", Bearer Resource_Metadata = {old}/mcp, error=\"e\""
                ),
                Some(format!(
                    "Basic realm=\"a, resource_metadata=\\\"b\", Bearer Resource_Metadata = \"{URL}\", error=\"e\""
                )),
            ),
            ("Bearer resource_metadata=\"https://x/meta\"".to_owned(), None),
            ("Bearer resource_metadata=\"https://x/.well-known/oauth-protected-resources\"".to_owned(), None),
            (format!("Bearer x_resource_metadata=\"{old}\""), None),
            ("Bearer realm=\"é".to_owned(), None),
            (String::new(), None),
        ] {
            assert_eq!(with_metadata_at(&before, URL), after, "{before}");
        }
    }

    #[test]
    fn only_the_resource_changes() {
        let before =
            Bytes::from_static(br#"{ "authorization_servers": ["https://as.example"], "resource" : "http://x/mcp" }"#);
        let after = r#"{ "authorization_servers": ["https://as.example"], "resource" : "https://a.example/f" }"#;
        assert_eq!(with_resource(&before, "https://a.example/f").unwrap(), after);
        for bad in ["[]", "{}", "{", "x"] {
            assert!(with_resource(&Bytes::from_static(bad.as_bytes()), URL).is_err(), "{bad}");
        }
    }
}
