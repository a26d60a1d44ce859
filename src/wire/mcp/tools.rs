//! The answer to `tools/list`.

use bytes::Bytes;

use crate::wire::json::{Cursor, Edits, Inserts, JsonError, Kind, Span, Str, splice};

/// A tool of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedTool {
    /// Its name.
    pub name: String,
    /// The JSON Schema of its arguments.
    pub schema: Option<Bytes>,
    span: Span,
}

/// The result of `tools/list`, or one page of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolList {
    /// The tools, in order.
    pub tools: Vec<ListedTool>,
    /// What to ask for the next page with.
    pub next: Option<String>,
}

impl ToolList {
    /// Reads the `result` at `span`.
    ///
    /// ```
    /// use hookgate::wire::json::Span;
    /// use hookgate::wire::mcp::ToolList;
    /// let text = br#"{"tools": [{"name": "read", "inputSchema": {"type": "object"}}], "nextCursor": "2"}"#;
    /// let list = ToolList::read(text, Span { start: 0, end: text.len() }).unwrap();
    /// assert_eq!((&*list.tools[0].name, list.next.as_deref()), ("read", Some("2")));
    /// ```
    ///
    /// # Errors
    /// When it is not JSON of that shape.
    pub fn read(text: &[u8], span: Span) -> Result<Self, JsonError> {
        let mut list = ToolList::default();
        let mut cursor = Cursor::new_at(text, span.start);
        cursor.object(|cursor, key| {
            if key.is("tools") && cursor.kind()? == Kind::Array {
                cursor.array(|cursor| {
                    list.tools.push(tool(cursor)?);
                    Ok(())
                })?;
            } else if key.is("nextCursor") {
                list.next = cursor.string_or_skip()?.map(|next| next.decode().into_owned());
            } else {
                cursor.skip()?;
            }
            Ok(())
        })?;
        Ok(list)
    }

    /// The edits that take tools out of the text that the list was read from.
    pub fn hide(&self, hidden: impl Fn(&str) -> bool, edits: &mut Edits) {
        let drop: Vec<bool> = self.tools.iter().map(|tool| hidden(&tool.name)).collect();
        if drop.contains(&true) {
            let spans: Vec<Span> = self.tools.iter().map(|tool| tool.span).collect();
            splice(edits, &spans, &drop, Inserts::default());
        }
    }
}

fn tool(cursor: &mut Cursor<'_>) -> Result<ListedTool, JsonError> {
    let (mut name, mut schema): (Option<Str<'_>>, Option<Span>) = (None, None);
    let span = cursor.object(|cursor, key| {
        if key.is("name") {
            name = cursor.string_or_skip()?;
        } else if key.is("inputSchema") {
            schema = Some(cursor.skip()?);
        } else {
            cursor.skip()?;
        }
        Ok(())
    })?;
    let text = cursor.text();
    let schema = schema.map(|span| Bytes::copy_from_slice(span.of(text)));
    Ok(ListedTool { name: name.map_or_else(String::new, |name| name.decode().into_owned()), schema, span })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hidden_tools_leave_nothing_behind() {
        let text = Bytes::from_static(br#"{"tools":[{"name":"a"}, {"name":"b","x":[1]},{"name":"c"}],"ttlMs":1}"#);
        let list = ToolList::read(&text, Span { start: 0, end: text.len() }).unwrap();
        let without = |hidden: &[&str]| {
            let mut edits = Edits::default();
            list.hide(|name| hidden.contains(&name), &mut edits);
            String::from_utf8(edits.apply(&text).to_bytes().to_vec()).unwrap()
        };
        assert_eq!(without(&[]), String::from_utf8_lossy(&text));
        for hidden in [&["a"][..], &["b"], &["c"], &["a", "c"], &["a", "b", "c"]] {
            let left: serde_json::Value = serde_json::from_str(&without(hidden)).unwrap();
            let names: Vec<_> =
                left["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect();
            let expected: Vec<_> = ["a", "b", "c"].into_iter().filter(|name| !hidden.contains(name)).collect();
            assert_eq!(names, expected);
        }
    }
}
