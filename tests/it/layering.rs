//! Rules about the source tree that no tool knows: what a pure module may name, which way imports go, how long a file is.

use std::fs;
use std::path::{Path, PathBuf};

/// Modules that neither wait nor read a clock nor draw a random number: what they do depends on what they are given.
const PURE: [&str; 7] = [
    "wire",
    "hooks",
    "intercept",
    "dispatch/plan.rs",
    "callback/machine.rs",
    "callback/origin.rs",
    "callback/render.rs",
];

/// What a pure module must not name.
const IMPURE: [&str; 17] = [
    "tokio",
    "hyper",
    "hyper_util",
    "sqlx",
    "pingora",
    "axum",
    "rand",
    "Instant::now",
    "SystemTime::now",
    "Timestamp::now",
    "random_id",
    "Uuid::new_v4",
    "std::fs",
    "std::env",
    "std::net",
    "std::thread",
    "async fn",
];

/// The modules in layers: a module imports only from layers above its own line, and from itself.
const LAYERS: [&[&str]; 13] = [
    &["id", "limits", "time", "error"],
    &["wire"],
    &["body", "hooks", "linger", "counters"],
    &["problem"],
    &["upstream", "audit", "auth", "store"],
    &["dispatch"],
    &["ledger", "callback"],
    &["intercept"],
    &["drive"],
    &["config", "control"],
    &["host"],
    &["testing", "fuzz"],
    &["cli", "main"],
];

/// A file may be this long, its tests not counted.
const MAX_LINES: usize = 600;

struct Source {
    /// Relative to `src`.
    path: String,
    /// The text without comments, strings and unit tests; line by line as in the file.
    code: String,
}

#[test]
fn pure_modules_name_nothing_impure() {
    let mut found = Vec::new();
    for source in sources() {
        let module = PURE.iter().any(|pure| source.path == *pure || source.path.starts_with(&format!("{pure}/")));
        found.extend(impurities(&source.code).filter(|_| module).map(|what| format!("{}: {what}", source.path)));
    }
    assert!(found.is_empty(), "impure names in pure modules:\n{}", found.join("\n"));
}

#[test]
fn imports_go_one_way() {
    let sources = sources();
    let exports = root_exports(&sources);
    let mut found = Vec::new();
    for source in &sources {
        let Some(own) = layer(module_of(&source.path)) else {
            assert!(source.path == "lib.rs", "{} belongs to no layer", source.path);
            continue;
        };
        for name in crate_imports(&source.code) {
            let module = exports.iter().find(|(export, _)| *export == name).map_or(name.as_str(), |(_, module)| module);
            let allowed = module == module_of(&source.path) || layer(module).is_some_and(|layer| layer < own);
            if !allowed {
                found.push(format!("{} imports {name}", source.path));
            }
        }
    }
    assert!(found.is_empty(), "imports against the layers:\n{}", found.join("\n"));
}

#[test]
fn no_file_is_too_long() {
    let lengths = sources().into_iter().map(|source| (source.code.lines().count(), source.path));
    let long: Vec<_> = lengths.filter(|(lines, _)| *lines > MAX_LINES).collect();
    assert!(long.is_empty(), "files of more than {MAX_LINES} lines without their tests: {long:?}");
}

#[test]
fn the_rules_catch_what_they_are_for() {
    let code = strip(
        "use crate::{body::Body, hooks::{Event, Handler}};\n// tokio in a comment\nlet a = \"tokio \\\" {\"; let b = '\"';\n\
         tokio::spawn(crate::drive::go());\nlet randomly = 1;\n#[cfg(test)]\nmod tests { use crate::cli; }\n",
    );
    assert_eq!(crate_imports(&code), ["body", "hooks", "drive"]);
    assert_eq!(impurities(&code).collect::<Vec<_>>(), ["tokio"]);
    assert!(layer("wire") < layer("drive") && layer("drive") < layer("host"));
    assert_eq!(impurities(&strip("std::time::Instant::now()")).collect::<Vec<_>>(), ["Instant::now"]);
}

fn layer(module: &str) -> Option<usize> {
    LAYERS.iter().position(|layer| layer.contains(&module))
}

/// The top module of a file: `wire/json/mod.rs` and `wire.rs` are both `wire`.
fn module_of(path: &str) -> &str {
    path.split('/').next().unwrap_or(path).trim_end_matches(".rs")
}

fn sources() -> Vec<Source> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    collect(&root, &mut files);
    let relative = |file: &PathBuf| file.strip_prefix(&root).unwrap().to_str().unwrap().to_owned();
    let sources: Vec<Source> = files
        .iter()
        .map(|file| Source { path: relative(file), code: strip(&fs::read_to_string(file).unwrap()) })
        .filter(|source| !source.path.ends_with("tests.rs"))
        .collect();
    assert!(sources.len() > 20, "the source tree was not found");
    sources
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => collect(&path, files),
            false if path.extension().is_some_and(|extension| extension == "rs") => files.push(path),
            false => {}
        }
    }
}

/// Takes out what is not code: comments, the insides of strings and characters, unit tests at the end.
fn strip(text: &str) -> String {
    let code = text.split("\n#[cfg(test)]\nmod ").next().unwrap_or(text);
    let mut out = String::new();
    let mut rest = code;
    while let Some(first) = rest.chars().next() {
        let skip = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if rest.starts_with("/*") {
            rest.find("*/").map_or(rest.len(), |end| end + 2)
        } else if let Some(hashes) = raw_string(rest) {
            let end = format!("\"{}", "#".repeat(hashes));
            let start = hashes + 2;
            rest[start..].find(&end).map_or(rest.len(), |at| start + at + end.len())
        } else if first == '"' {
            string_end(rest)
        } else if rest.starts_with("'\\") {
            3 + rest[3..].find('\'').unwrap_or(0)
        } else if first == '\'' && rest.chars().nth(2) == Some('\'') {
            rest.char_indices().nth(3).map_or(rest.len(), |(at, _)| at)
        } else {
            out.push(first);
            rest = &rest[first.len_utf8()..];
            continue;
        };
        out.extend(rest[..skip].chars().filter(|character| *character == '\n'));
        rest = &rest[skip..];
    }
    out
}

/// How many `#` a raw string begins with, when one begins here.
fn raw_string(text: &str) -> Option<usize> {
    let after = text.strip_prefix('r')?;
    let hashes = after.len() - after.trim_start_matches('#').len();
    after[hashes..].starts_with('"').then_some(hashes)
}

fn string_end(text: &str) -> usize {
    let mut escaped = false;
    for (at, character) in text.char_indices().skip(1) {
        match character {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return at + 1,
            _ => {}
        }
    }
    text.len()
}

fn is_word(character: char) -> bool {
    character.is_alphanumeric() || character == '_'
}

fn impurities(code: &str) -> impl Iterator<Item = &'static str> {
    IMPURE.into_iter().filter(|name| {
        code.match_indices(name)
            .any(|(at, _)| !code[..at].ends_with(is_word) && !code[at + name.len()..].starts_with(is_word))
    })
}

/// The first names after each `crate::`, those in a `crate::{…}` list too.
fn crate_imports(code: &str) -> Vec<String> {
    let mut names = Vec::new();
    for (at, path) in code.match_indices("crate::") {
        if code[..at].ends_with(is_word) {
            continue;
        }
        let after = &code[at + path.len()..];
        match after.strip_prefix('{') {
            Some(list) => names.extend(top_names(list)),
            None => names.extend(first_word(after)),
        }
    }
    names
}

/// The first word of each item of a list whose bracket is open already.
fn top_names(list: &str) -> Vec<String> {
    let mut depth = 0;
    let mut names = Vec::new();
    let mut start = 0;
    for (at, character) in list.char_indices() {
        match character {
            '{' => depth += 1,
            '}' | ',' if depth == 0 => {
                names.extend(first_word(list[start..at].trim_start()));
                start = at + 1;
                if character == '}' {
                    break;
                }
            }
            '}' => depth -= 1,
            _ => {}
        }
    }
    names
}

fn first_word(text: &str) -> Option<String> {
    let word: String = text.chars().take_while(|character| is_word(*character)).collect();
    (!word.is_empty()).then_some(word)
}

/// What `lib.rs` exports at its root: name and module.
fn root_exports(sources: &[Source]) -> Vec<(String, String)> {
    let lib = sources.iter().find(|source| source.path == "lib.rs").unwrap();
    let mut exports = Vec::new();
    for (at, start) in lib.code.match_indices("pub use ") {
        let Some((path, _)) = lib.code[at + start.len()..].split_once(';') else { continue };
        let Some((module, names)) = path.split_once("::") else { continue };
        let names = names.rsplit("::").next().unwrap_or(names).trim_start_matches('{');
        exports.extend(top_names(&format!("{names}}}")).into_iter().map(|name| (name, module.to_owned())));
    }
    assert!(!exports.is_empty(), "lib.rs exports nothing");
    exports
}
