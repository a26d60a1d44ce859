//! Which request is which tool's.

use std::sync::Arc;

use bytes::Bytes;
use http::Method;

use crate::dispatch::ToolSchema;
use crate::wire::http_tool::{Parameter, PlainPath, Template, TemplateError};

/// A tool that is a method and a template of paths.
#[derive(Clone, Debug)]
pub struct HttpTool {
    pub(super) name: Arc<str>,
    pub(super) method: Method,
    pub(super) template: Template,
    pub(super) schema: Option<Bytes>,
}

impl HttpTool {
    /// A tool. A path in braces is a parameter: `/v1/charges/{charge}/refund`.
    ///
    /// # Errors
    /// [`TemplateError`]: the path is no template.
    pub fn new(name: &str, method: Method, path: &str) -> Result<Self, TemplateError> {
        Ok(HttpTool { name: name.into(), method, template: Template::parse(path)?, schema: None })
    }

    /// The JSON Schema of the tool's arguments, which are `{"path": {…}, "query": {…}, "body": …}`. What a handler puts in their
    /// place has to fit it.
    ///
    /// # Errors
    /// Why it is not a usable schema, and where.
    pub fn schema(mut self, raw: &[u8]) -> Result<Self, String> {
        ToolSchema::compile(raw)?;
        self.schema = Some(Bytes::copy_from_slice(raw));
        Ok(self)
    }
}

/// The tools of one route. Of several that match a path the one counts that has a literal where the others first have a
/// parameter.
///
/// ```
/// use hookgate::{HttpTool, HttpTools, Route};
/// use http::Method;
/// let refund = HttpTool::new("refund", Method::POST, "/v1/charges/{charge}/refund").unwrap();
/// let again = HttpTool::new("again", Method::POST, "/v1/charges/{id}/refund").unwrap();
/// let route = Route::http_tool("billing", HttpTools::new([refund.clone()]).unwrap());
/// assert_eq!(route.kind.name(), "http-tool");
/// assert_eq!(HttpTools::new([refund, again]).unwrap_err().second, 1);
/// ```
#[derive(Clone, Debug, Default)]
pub struct HttpTools {
    /// The one that counts first.
    tools: Arc<[HttpTool]>,
}

/// Two tools of a table that match the same requests, by their places in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the tools at {first} and {second} match the same requests")]
#[non_exhaustive]
pub struct DuplicateTool {
    /// The first of them.
    pub first: usize,
    /// The second.
    pub second: usize,
}

/// What a table says of a request.
pub(super) enum Found<'a> {
    /// It is a call of this tool.
    Tool(&'a HttpTool, Vec<Parameter>),
    /// Its path is one of tools, but by these methods only.
    Methods(Vec<&'a Method>),
    /// Its path is none of a tool.
    Nothing,
}

impl HttpTools {
    /// A table.
    ///
    /// # Errors
    /// [`DuplicateTool`]: which of two tools is meant could not be told.
    pub fn new(tools: impl IntoIterator<Item = HttpTool>) -> Result<Self, DuplicateTool> {
        let mut tools: Vec<_> = tools.into_iter().enumerate().collect();
        // Stable, so that the second of two equals is the one that was given later.
        tools.sort_by(|(_, a), (_, b)| {
            a.template.precedence(&b.template).then_with(|| a.method.as_str().cmp(b.method.as_str()))
        });
        for ((first, a), (second, b)) in tools.iter().zip(tools.iter().skip(1)) {
            if a.method == b.method && a.template.precedence(&b.template).is_eq() {
                return Err(DuplicateTool { first: *first, second: *second });
            }
        }
        Ok(HttpTools { tools: tools.into_iter().map(|(_, tool)| tool).collect() })
    }

    /// Looks for the tool of a request. `HEAD` is what the path's `GET` is, unless a tool has it as its own: servers run the
    /// same code for both.
    pub(super) fn find(&self, method: &Method, path: &PlainPath) -> Found<'_> {
        let matching: Vec<_> =
            self.tools.iter().filter_map(|tool| Some((tool, tool.template.matches(path)?))).collect();
        let methods = || Found::Methods(matching.iter().map(|(tool, _)| &tool.method).collect());
        let by = |method: &Method| matching.iter().find(|(tool, _)| tool.method == *method).cloned();
        match by(method).or_else(|| by(&Method::GET).filter(|_| *method == Method::HEAD)) {
            Some((tool, parameters)) => Found::Tool(tool, parameters),
            None if matching.is_empty() => Found::Nothing,
            None => methods(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> HttpTools {
        let tool = |name, method, path| HttpTool::new(name, method, path).unwrap();
        HttpTools::new([
            tool("show", Method::GET, "/v1/charges/{charge}"),
            tool("change", Method::POST, "/v1/charges/{charge}"),
            tool("search", Method::GET, "/v1/charges/search"),
            tool("peek", Method::HEAD, "/v1/charges/search"),
        ])
        .unwrap()
    }

    fn found(method: Method, path: &str) -> String {
        match table().find(&method, &PlainPath::read(path).unwrap()) {
            Found::Tool(tool, parameters) => {
                let values: Vec<_> = parameters.iter().map(|parameter| format!(" {}", parameter.value)).collect();
                format!("{}{}", tool.name, values.concat())
            }
            Found::Methods(methods) => format!("{methods:?}"),
            Found::Nothing => "nothing".into(),
        }
    }

    #[test]
    fn the_most_specific_tool_of_the_method_is_found() {
        for (method, path, expected) in [
            (Method::GET, "/v1/charges/search", "search"),
            (Method::GET, "/v1/charges/%73earch/", "search"),
            (Method::GET, "/v1/charges/ch_1", "show ch_1"),
            (Method::POST, "/v1/charges/search", "change search"),
            (Method::HEAD, "/v1/charges/ch_1", "show ch_1"),
            (Method::HEAD, "/v1/charges/search", "peek"),
            (Method::DELETE, "/v1/charges/ch_1", "[GET, POST]"),
            (Method::GET, "/v1/charges", "nothing"),
        ] {
            assert_eq!(found(method.clone(), path), expected, "{method} {path}");
        }
    }

    #[test]
    fn the_same_requests_are_one_tools() {
        let tool = |method, path| HttpTool::new("t", method, path).unwrap();
        let duplicate = HttpTools::new([
            tool(Method::GET, "/a/{x}"),
            tool(Method::POST, "/a/{x}"),
            tool(Method::GET, "/a/b"),
            tool(Method::GET, "/a/{y}/"),
        ]);
        assert_eq!(duplicate.unwrap_err(), DuplicateTool { first: 0, second: 3 });
    }

    #[test]
    fn a_schema_that_is_none_says_where() {
        let tool = HttpTool::new("t", Method::GET, "/").unwrap();
        assert!(tool.clone().schema(b"{").unwrap_err().contains("JSON"));
        let error = tool.schema(br#"{"properties": {"path": {"type": "nothing"}}}"#).unwrap_err();
        assert!(error.contains("/properties/path"), "{error}");
    }
}
