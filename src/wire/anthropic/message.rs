//! A whole answer: the body of a `200` that is not streamed.

use bytes::Bytes;

use super::block::read_block;
use super::event::usage;
use crate::wire::answer::{Ending, Message};
use crate::wire::json::{Cursor, JsonError, Names, Span};

/// Reads a whole answer.
///
/// # Errors
/// When it is not JSON, has no content, or a member that matters stands twice.
pub fn read_message(text: &Bytes) -> Result<Message, JsonError> {
    let mut message = Message { text: text.clone(), ..Message::default() };
    let mut content = false;
    let mut names = Names::default();
    Cursor::document(text, |cursor| {
        cursor.object(|cursor, key| {
            let name = key.decode().into_owned();
            if !names.add(key) {
                return Err(JsonError { what: "a member of the answer stands twice", offset: key.span().start });
            }
            let start = cursor.position();
            match name.as_str() {
                "id" => message.id = cursor.string_or_skip()?.map_or(String::new(), |id| id.decode().into_owned()),
                "model" => {
                    message.model = cursor.string_or_skip()?.map_or(String::new(), |it| it.decode().into_owned())
                }
                "stop_reason" => {
                    let reason = cursor.string_or_skip()?.map_or(String::new(), |it| it.decode().into_owned());
                    message.ending.stop_reason = reason;
                }
                "usage" => message.ending = Ending { usage: usage(cursor)?, ..std::mem::take(&mut message.ending) },
                "content" => {
                    content = true;
                    cursor.array(|cursor| {
                        let span = cursor.skip()?;
                        message.blocks.push((span, read_block(&text.slice(span.start..span.end))?));
                        Ok(())
                    })?;
                }
                _ => drop(cursor.skip()?),
            }
            message.members.push((name, Span { start, end: cursor.offset() }));
            Ok(())
        })
    })?;
    if content { Ok(message) } else { Err(JsonError { what: "the answer has no content", offset: 0 }) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::answer::BlockKind;

    #[test]
    fn reads_blocks_and_their_places() {
        let text = Bytes::from_static(
            br#"{"id":"m","model":"x","content":[{"type":"text","text":"t"}, {"type":"tool_use","id":"t1","name":"n","input":{"a":1}}],"stop_reason":"tool_use","usage":{"output_tokens":3}}"#,
        );
        let message = read_message(&text).unwrap();
        assert_eq!((message.id.as_str(), message.ending.stop_reason.as_str()), ("m", "tool_use"));
        assert!(matches!(&message.blocks[1].1.kind, BlockKind::Call(call) if call.input == r#"{"a":1}"#));
        assert_eq!(message.blocks[0].0.of(&text), br#"{"type":"text","text":"t"}"#);
        assert!(read_message(&Bytes::from_static(b"{}")).is_err());
        assert!(read_message(&Bytes::from_static(br#"{"content":[],"content":[]}"#)).is_err());
    }
}
