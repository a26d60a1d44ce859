//! Where a string ends: its bytes are looked through in blocks, as marks of which bytes do not stand for themselves.

use wide::u8x16;

use super::JsonError;

/// A vector's bytes.
const LANES: usize = 16;

/// The bytes of a block: as many as a mark has bits.
const BLOCK: usize = 64;

/// Finds the quote that closes the string whose first quote is before `start`, if it is near and no escape is before it:
/// so it is with names, and with most values that are not texts.
#[inline(always)]
pub(super) fn near_quote(text: &[u8], start: usize) -> Option<usize> {
    let (ends, backslashes) = marks(text.get(start..)?.first_chunk()?);
    let at = start + (ends | backslashes | 1 << LANES).trailing_zeros() as usize;
    (text.get(at) == Some(&b'"')).then_some(at)
}

/// Finds the quote that closes the string whose first quote is before `start`, and says whether there are escapes.
///
/// # Errors
/// The first malformed escape or control character, or the text's end.
pub(super) fn closing_quote(text: &[u8], start: usize) -> Result<(usize, bool), JsonError> {
    let mut pos = start;
    let mut any = false;
    // Whether the byte before the block is a backslash that begins an escape.
    let mut carried = false;
    let mut last = [b' '; BLOCK];
    loop {
        let rest = text.get(pos..).unwrap_or_default();
        let block = rest.first_chunk().unwrap_or_else(|| {
            last[..rest.len()].copy_from_slice(rest);
            &last
        });
        let (mut ends, backslashes) = block_marks(block);
        if backslashes != 0 || carried {
            let (escaped, carry) = escaped_bytes(backslashes, carried);
            carried = carry;
            ends &= !escaped;
            // Only what stands before the end is part of the string.
            let within = ends.wrapping_sub(1) & !ends;
            any |= backslashes & within != 0;
            let mut unchecked = escaped & within & !plain_escapes(block, backslashes);
            while unchecked != 0 {
                let at = pos + unchecked.trailing_zeros() as usize;
                check_escape(text, at - 1)?;
                unchecked &= unchecked - 1;
            }
        }
        if ends != 0 {
            let at = pos + ends.trailing_zeros() as usize;
            return match text.get(at) {
                Some(b'"') => Ok((at, any)),
                _ => Err(JsonError { what: "control character in a string", offset: at }),
            };
        }
        pos += BLOCK;
        if rest.len() < BLOCK {
            return Err(JsonError { what: "unterminated string", offset: text.len() });
        }
    }
}

/// Which bytes end a string, as quotes and control characters do, and which are backslashes: the first byte as the
/// lowest bit.
fn marks(vector: &[u8; LANES]) -> (u32, u32) {
    let bytes = u8x16::new(*vector);
    // A flipped bit puts the quote right behind the control characters, and mixes nothing else among them.
    let ends = (bytes ^ u8x16::splat(2)).simd_lt(u8x16::splat(0x21));
    (ends.to_bitmask(), bytes.simd_eq(u8x16::splat(b'\\')).to_bitmask())
}

fn block_marks(block: &[u8; BLOCK]) -> (u64, u64) {
    let (mut ends, mut backslashes) = (0, 0);
    for (index, vector) in block.as_chunks().0.iter().enumerate() {
        let marks = marks(vector);
        ends |= u64::from(marks.0) << (index * LANES);
        backslashes |= u64::from(marks.1) << (index * LANES);
    }
    (ends, backslashes)
}

/// Which bytes may stand behind a backslash without a closer look: the most frequent ones.
fn plain_escapes(block: &[u8; BLOCK], backslashes: u64) -> u64 {
    let mut plain = backslashes;
    for (index, vector) in block.as_chunks::<LANES>().0.iter().enumerate() {
        let bytes = u8x16::new(*vector);
        let equal = bytes.simd_eq(u8x16::splat(b'"')) | bytes.simd_eq(u8x16::splat(b'n'));
        plain |= u64::from(equal.to_bitmask()) << (index * LANES);
    }
    plain
}

/// Which bytes stand behind a backslash that begins an escape, and whether the block's last byte is such a backslash.
///
/// In a row of backslashes every second one is escaped by the one before. Where a row begins at an even place, a
/// subtraction carries through its odd bits up to the byte behind it; `ODD` gives the odd rows the same form.
fn escaped_bytes(backslashes: u64, carried: bool) -> (u64, bool) {
    const ODD: u64 = 0xaaaa_aaaa_aaaa_aaaa;
    let carried = u64::from(carried);
    let first = backslashes & !carried;
    let beginnings_and_ends = ((first << 1 | ODD).wrapping_sub(first)) ^ ODD;
    let escaped = beginnings_and_ends ^ (backslashes | carried);
    (escaped, beginnings_and_ends & backslashes & 1 << (BLOCK - 1) != 0)
}

/// Checks the escape whose backslash is at `at`.
fn check_escape(text: &[u8], at: usize) -> Result<(), JsonError> {
    match text.get(at + 1) {
        Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => Ok(()),
        Some(b'u') => match text.get(at + 2..at + 6) {
            Some(hex) if hex.iter().all(u8::is_ascii_hexdigit) => Ok(()),
            _ => Err(JsonError { what: "malformed \\u escape", offset: at }),
        },
        _ => Err(JsonError { what: "unknown escape in a string", offset: at }),
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;
    use serde::de::IgnoredAny;

    use super::*;

    /// Compares with serde: what is taken, where it ends, and whether there is an escape; then gives the result.
    fn check(body: &[u8]) -> Result<(usize, bool), JsonError> {
        let text = [b"\"", body].concat();
        let found = closing_quote(&text, 1);
        let mut theirs = serde_json::Deserializer::from_slice(&text).into_iter::<IgnoredAny>();
        let ends = matches!(theirs.next(), Some(Ok(_))).then(|| theirs.byte_offset() - 1);
        assert_eq!(found.as_ref().ok().map(|found| found.0), ends, "{}", text.escape_ascii());
        let near = ends.filter(|end| *end <= 1 + LANES && text.len() > LANES && !text[..*end].contains(&b'\\'));
        assert_eq!(near_quote(&text, 1), near, "{}", text.escape_ascii());
        if let Ok((quote, escaped)) = found {
            assert_eq!(escaped, text[..quote].contains(&b'\\'), "{}", text.escape_ascii());
        }
        found
    }

    #[test]
    fn the_marks_of_a_block_are_those_of_its_bytes() {
        for byte in 0..=255_u8 {
            for at in 0..BLOCK {
                let mut block = [b"a!#[ \x7f\x80\xff]~0z\xc3\xa9(\"", &[b'\\'; 16][..], &[b'q'; 32]].concat();
                block[at] = byte;
                let (ends, backslashes) = block_marks(block.first_chunk().unwrap());
                for (at, byte) in block.into_iter().enumerate() {
                    assert_eq!(ends >> at & 1 == 1, byte < 0x20 || byte == b'"', "{byte} at {at}");
                    assert_eq!(backslashes >> at & 1 == 1, byte == b'\\', "{byte} at {at}");
                }
            }
        }
    }

    /// Signs at every place around the blocks' borders, with more behind them and as the text's last.
    #[test]
    fn every_sign_counts_at_every_place() {
        let inside = ["\\\"", "\\\\", "\\n", "\\t", "\\/", "\\u00e9", "\\uD800"];
        let wrong = ["\\x", "\\u00g9", "\\u00\"", "\\u\\n00", "\\\x1f", "\\\u{e9}", "\x00", "\x1f"];
        for before in 0..=BLOCK * 2 + 2 {
            let start = "a".repeat(before);
            for after in ["\"", " \"", " behind it is more than a vector\"", &format!("{}\" \"", "b".repeat(BLOCK))] {
                assert_eq!(check(format!("{start}\"{after}").as_bytes()), Ok((before + 1, false)));
                for sign in inside {
                    let quote = 1 + before + sign.len() + after.find('"').unwrap();
                    assert_eq!(check(format!("{start}{sign}{after}").as_bytes()), Ok((quote, true)));
                    let error = check(format!("{start}{sign}").as_bytes()).unwrap_err();
                    assert_eq!(error, JsonError { what: "unterminated string", offset: 1 + before + sign.len() });
                }
                for sign in wrong {
                    assert_eq!(check(format!("{start}{sign}{after}").as_bytes()).unwrap_err().offset, before + 1);
                    assert_eq!(check(format!("{start}{sign}").as_bytes()).unwrap_err().offset, before + 1);
                }
                for cut in ["\\", "\\u", "\\u00", "\\u00e"] {
                    assert_eq!(check(format!("{start}{cut}").as_bytes()).unwrap_err().offset, before + 1);
                }
            }
        }
    }

    #[test]
    fn a_row_of_backslashes_escapes_by_its_length() {
        for before in 0..=BLOCK + 1 {
            for row in 1..=BLOCK + 2 {
                let body = [&vec![b'a'; before], &vec![b'\\'; row][..], b"\"n\""].concat();
                let end = 1 + before + row + if row % 2 == 0 { 0 } else { 2 };
                assert_eq!(check(&body), Ok((end, true)));
            }
        }
    }

    proptest! {
        #[test]
        fn a_string_ends_where_serde_ends_it(
            pieces in vec(prop::sample::select(&["\\\\", "\\\"", "\\n", "\\u12aB", "\\u", "\\", "\"", "\x1f", "é", "a", "some text of more words"][..]), 0..40),
            weight in vec(0..4_u8, 40),
        ) {
            // Mostly what goes on, so that strings grow over several blocks.
            let pieces = pieces.iter().zip(weight).filter(|(piece, weight)| *weight == 0 || !["\\u", "\\", "\"", "\x1f"].contains(*piece));
            let body: String = pieces.map(|(piece, _)| *piece).collect();
            let _ = check(body.as_bytes());
            let _ = check(format!("{body}\"").as_bytes());
        }
    }
}
