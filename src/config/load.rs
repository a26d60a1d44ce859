//! From a path and an environment to a configuration.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::build::{Surroundings, build};
use super::describe::{Reader, Setting};
use super::document::{Environment, Node, Value, complete, overlay, parse};
use super::error::{ConfigErrors, Problems};
use super::files::Folder;
use super::keys::Root;
use super::model::{AuthFiles, Config};

/// The file that is read when none is named and it exists.
const DEFAULT_FILE: &str = "hookgate.toml";

impl Config {
    /// Reads the configuration file and everything that it refers to.
    ///
    /// 1. The file is `path`, else `./hookgate.toml` if there is one, else nothing: then every key has its default.
    /// 2. Variables of `environment` called `HOOKGATE__…` replace keys of the file; `HOOKGATE_HOOKS_MODE`,
    ///    `HOOKGATE_HOOKS` and `HOOKGATE_HOOK_ALLOWED_HOSTS` are short forms. Credentials are looked up there too.
    ///    The process's own environment is never read.
    /// 3. Unknown keys, wrong values, references to nothing and rules between keys are checked, then the hook documents.
    ///
    /// Nothing is opened but files, and nothing is sent.
    ///
    /// ```
    /// use hookgate::config::Config;
    /// let folder = tempfile::tempdir().unwrap();
    /// let file = folder.path().join("hookgate.toml");
    /// std::fs::write(&file, "[server]\nlisten = \"127.0.0.1:9000\"\n").unwrap();
    ///
    /// let config = Config::load(Some(&file), []).unwrap();
    /// assert_eq!(config.listen, ["127.0.0.1:9000".parse().unwrap()]);
    ///
    /// let environment = [("HOOKGATE__SERVER__LISTEN".to_owned(), "127.0.0.1:9001".to_owned())];
    /// let config = Config::load(Some(&file), environment).unwrap();
    /// assert_eq!(config.listen, ["127.0.0.1:9001".parse().unwrap()]);
    /// ```
    ///
    /// # Errors
    /// Every fault at once, each with its place, its key, what was found and what is accepted. Faults of a later step
    /// (1 to 3 above; rules between keys after the keys themselves) show when the earlier steps found none.
    pub fn load(
        path: Option<&Path>,
        environment: impl IntoIterator<Item = (String, String)>,
    ) -> Result<Config, ConfigErrors> {
        let environment: Environment = environment.into_iter().collect();
        let mut problems = Problems::default();
        let (folder, typed) = keys(path, &environment, &mut problems);
        let Some((root, node)) = typed else { return Err(problems.into_errors()) };
        let config = build(&root, node, &Surroundings { folder, environment: &environment }, &mut problems);
        problems.into_result().map(|()| config)
    }
}

impl AuthFiles {
    /// Finds the files where [`Config::load`] would. Nothing that the configuration refers to is looked at: who adds the
    /// first user has no users file yet, and not the environment of the proxy.
    ///
    /// # Errors
    /// The configuration file cannot be read, or one of its keys is at fault.
    pub fn load(
        path: Option<&Path>,
        environment: impl IntoIterator<Item = (String, String)>,
    ) -> Result<AuthFiles, ConfigErrors> {
        let mut problems = Problems::default();
        let (folder, typed) = keys(path, &environment.into_iter().collect(), &mut problems);
        let Some((root, _)) = typed else { return Err(problems.into_errors()) };
        let (users, keys) = (folder.resolve(&root.auth.users_file), folder.resolve(&root.auth.keys_file));
        problems.into_result().map(|()| AuthFiles { users, keys })
    }
}

/// The keys with their values, each well-formed, and the folder at which their paths start.
fn keys(path: Option<&Path>, environment: &Environment, problems: &mut Problems) -> (Folder, Option<(Root, Node)>) {
    let file = path.map(Path::to_owned).or_else(|| Some(PathBuf::from(DEFAULT_FILE)).filter(|file| file.exists()));
    let folder = Folder::of(file.as_deref().unwrap_or(Path::new("")));
    let shape = Root::shape();
    let mut root = match file {
        Some(file) => read(&file, problems),
        None => Node::default_value(Value::table()),
    };
    // Of a file that cannot be read every key would seem to be missing.
    if !problems.is_empty() {
        return (folder, None);
    }
    overlay(&mut root, &shape, environment, problems);
    complete(&mut root, &shape, "", problems);
    let keys = Root::read(&root, &shape, &mut Reader::new(problems));
    (folder, keys.map(|keys| (keys, root)))
}

fn read(file: &Path, problems: &mut Problems) -> Node {
    let name: Arc<str> = file.display().to_string().into();
    match fs::read_to_string(file) {
        Ok(text) => parse(&text, &name, problems),
        Err(error) => {
            problems.foreign(&*name, "", format!("the configuration file cannot be read: {error}"));
            None
        }
    }
    .unwrap_or_else(|| Node::default_value(Value::table()))
}
