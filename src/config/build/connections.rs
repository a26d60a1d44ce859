//! `[connections.NAME]`: what policy services are reached with.

use std::collections::BTreeMap;
use std::fs;
use std::sync::Arc;

use super::{Surroundings, references};
use crate::config::describe::{At, Named};
use crate::config::error::Problems;
use crate::config::keys::Connection as Keys;
use crate::dispatch::{Connection, ConnectionError};

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
        keys.header.as_ref().map(|_| "header"),
    ];
    let found: Vec<&str> = found.into_iter().flatten().collect();
    if found.len() > 1 {
        keys.reject(problems, format!("found {}; expected one of them", found.join(" and ")));
        return None;
    }
    if found.is_empty() && keys.ca_file.is_none() {
        keys.reject(problems, "found nothing; expected bearer_env, bearer_file, basic_env, header or ca_file");
        return None;
    }
    let connection = credential(keys, around, problems)?;
    let Some(path) = &keys.ca_file else { return Some(connection) };
    let file = around.folder.certificates(path, problems)?;
    let trusting = fs::read(&file)
        .map_err(|error| error.to_string())
        .and_then(|pem| connection.trusting(&pem).map_err(|error| error.to_string()));
    trusting.map_err(|error| path.reject(problems, format!("{}: {error}", file.display()))).ok()
}

fn credential(keys: &Keys, around: &Surroundings<'_>, problems: &mut Problems) -> Option<Connection> {
    let none = Connection::new();
    if let Some(name) = &keys.bearer_env {
        let token = references::variable(name, around, problems)?;
        checked(none.bearer(token), name, problems)
    } else if let Some(path) = &keys.bearer_file {
        let token = around.folder.read(path, problems)?;
        checked(none.bearer(token.trim()), path, problems)
    } else if let Some(name) = &keys.basic_env {
        let pair = references::variable(name, around, problems)?;
        if !pair.contains(':') {
            name.reject(problems, format!("the environment variable {} does not hold user:password", &***name));
            return None;
        }
        checked(none.basic(pair), name, problems)
    } else if let Some(header) = &keys.header {
        let value = references::variable(&header.env, around, problems)?;
        checked(none.header(&header.name, value), header, problems)
    } else {
        Some(none)
    }
}

fn checked<T>(result: Result<Connection, ConnectionError>, at: &At<T>, problems: &mut Problems) -> Option<Connection> {
    result.map_err(|error| at.reject(problems, error.to_string())).ok()
}
