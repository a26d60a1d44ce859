//! Tools behind plain HTTP.

use std::path::PathBuf;

use http::Method;

use super::Name;
use crate::config::describe::{At, FromText, section};

section! {
    /// `[[routes]] tools`
    HttpTool {
        /// The tool's name, by which hooks know it.
        name: Name,
        /// The method of its requests. A HEAD request is what the path's GET is, unless a tool has it as its own.
        method: ToolMethod,
        /// The path of its requests, without the route's path_prefix; {name} stands for one segment.
        path: At<Name>,
        /// The JSON Schema of its arguments {"path": {…}, "query": {…}, "body": …}; what a hook puts in their place has to fit it.
        schema: Option<At<PathBuf>>,
    }
}

/// The method of a request.
#[derive(Clone, Debug)]
pub(crate) struct ToolMethod(pub(crate) Method);

impl FromText for ToolMethod {
    const WHAT: &'static str = "a method in capital letters, such as \"POST\"";

    fn from_text(text: &str) -> Option<Self> {
        let fits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_uppercase() || b"-_".contains(&byte));
        Method::from_bytes(text.as_bytes()).ok().filter(|method| fits && *method != Method::CONNECT).map(ToolMethod)
    }
}
