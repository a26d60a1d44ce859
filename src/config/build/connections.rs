//! `[connections.NAME]`: credentials for policy services.

use std::collections::BTreeMap;
use std::sync::Arc;

use http::header::AUTHORIZATION;
use http::{HeaderName, HeaderValue};

use super::{Surroundings, headers};
use crate::config::describe::{At, Named};
use crate::config::error::Problems;
use crate::config::keys::Connection as Keys;
use crate::config::model::Connection;

pub(super) fn resolve(
    connections: &Named<At<Keys>>,
    around: &Surroundings<'_>,
    problems: &mut Problems,
) -> BTreeMap<Arc<str>, Connection> {
    let resolve = |(name, keys): &(String, At<Keys>)| Some((name.as_str().into(), one(keys, around, problems)?));
    connections.0.iter().filter_map(resolve).collect()
}

fn one(keys: &At<Keys>, around: &Surroundings<'_>, problems: &mut Problems) -> Option<Connection> {
    let found = [
        keys.bearer_env.as_ref().map(|_| "bearer_env"),
        keys.bearer_file.as_ref().map(|_| "bearer_file"),
        keys.basic_env.as_ref().map(|_| "basic_env"),
    ];
    let found: Vec<&str> = found.into_iter().flatten().collect();
    if found.len() > 1 {
        keys.reject(problems, format!("found {}; expected one of them", found.join(" and ")));
        return None;
    }
    if found.is_empty() && keys.header.is_none() {
        keys.reject(problems, "found no credential; expected bearer_env, bearer_file, basic_env or header");
        return None;
    }
    let header = keys.header.as_ref().map(|header| {
        let name = headers::name(&header.name, header, problems);
        let value = headers::variable(&header.env, around, problems);
        let value = value.and_then(|value| headers::secret(value, &header.env, problems));
        if !found.is_empty() && name == Some(AUTHORIZATION) {
            header.reject(problems, format!("{} sets the header authorization already", found.concat()));
        }
        name.zip(value)
    });
    let headers: Option<Vec<_>> = [authorization(keys, around, problems), header].into_iter().flatten().collect();
    headers.map(|headers| Connection { headers })
}

/// The `authorization` header: absent, at fault (`Some(None)`), or there.
fn authorization(
    keys: &Keys,
    around: &Surroundings<'_>,
    problems: &mut Problems,
) -> Option<Option<(HeaderName, HeaderValue)>> {
    let value = if let Some(name) = &keys.bearer_env {
        headers::variable(name, around, problems).and_then(|token| bearer(token, name, problems))
    } else if let Some(path) = &keys.bearer_file {
        around.folder.read(path, problems).and_then(|token| bearer(token.trim(), path, problems))
    } else if let Some(name) = &keys.basic_env {
        headers::variable(name, around, problems).and_then(|pair| {
            if !pair.contains(':') {
                name.reject(problems, format!("the environment variable {} does not hold user:password", &***name));
                return None;
            }
            headers::secret(&format!("Basic {}", base64(pair.as_bytes())), name, problems)
        })
    } else {
        return None;
    };
    Some(value.map(|value| (AUTHORIZATION, value)))
}

fn bearer<T>(token: &str, at: &At<T>, problems: &mut Problems) -> Option<HeaderValue> {
    if token.is_empty() {
        at.reject(problems, "the token that this refers to is empty");
        return None;
    }
    headers::secret(&format!("Bearer {token}"), at, problems)
}

/// RFC 4648 §4, with padding.
fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let bits = chunk.iter().fold(0u32, |bits, byte| bits << 8 | u32::from(*byte)) << (8 * (3 - chunk.len()));
        for place in 0..4 {
            let letter = LETTERS[(bits >> (18 - 6 * place) & 63) as usize];
            text.push(if place <= chunk.len() { char::from(letter) } else { '=' });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::base64;

    #[test]
    fn base64_has_the_vectors_of_rfc_4648() {
        for (bytes, expected) in
            [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg=="), ("foobar", "Zm9vYmFy")]
        {
            assert_eq!(base64(bytes.as_bytes()), expected);
        }
        assert_eq!(base64(&[0xff, 0xfe, 0xfd]), "//79");
    }
}
