//! Content codings: reading what was compressed.

use async_compression::tokio::bufread::{BrotliDecoder, GzipDecoder, ZlibDecoder, ZstdDecoder};
use bytes::Bytes;
use futures_util::{StreamExt, TryStreamExt};
use http::{HeaderMap, header};
use http_body_util::BodyStream;
use tokio::io::{AsyncBufRead, AsyncRead, AsyncReadExt};
use tokio_util::io::{ReaderStream, StreamReader};

use crate::{Body, BoxError};

/// The codings of a body, in the order in which they were applied; `identity` is none.
fn codings(headers: &HeaderMap) -> Vec<String> {
    headers
        .get_all(header::CONTENT_ENCODING)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .map(|coding| coding.trim().to_ascii_lowercase())
        .filter(|coding| !coding.is_empty() && coding != "identity")
        .collect()
}

/// Whether the body is compressed at all.
pub(super) fn is_encoded(headers: &HeaderMap) -> bool {
    !codings(headers).is_empty()
}

type Reader = Box<dyn AsyncBufRead + Send + Unpin>;

/// Undoes one coding.
fn undo(coding: &str, reader: Reader) -> Result<Reader, String> {
    fn buffered(reader: impl AsyncRead + Send + Unpin + 'static) -> Reader {
        Box::new(tokio::io::BufReader::new(reader))
    }
    match coding {
        "gzip" | "x-gzip" => {
            let mut decoder = GzipDecoder::new(reader);
            decoder.multiple_members(true);
            Ok(buffered(decoder))
        }
        "deflate" => Ok(buffered(ZlibDecoder::new(reader))),
        "br" => Ok(buffered(BrotliDecoder::new(reader))),
        "zstd" => Ok(buffered(ZstdDecoder::new(reader))),
        other => Err(format!("its content-encoding {other:?} is unknown; gzip, deflate, br and zstd can be read")),
    }
}

/// A whole body without its codings, at most `limit` bytes.
pub(super) async fn whole(headers: &HeaderMap, body: Bytes, limit: usize) -> Result<Bytes, String> {
    let codings = codings(headers);
    if codings.is_empty() {
        return Ok(body);
    }
    let mut reader: Reader = Box::new(std::io::Cursor::new(body));
    for coding in codings.iter().rev() {
        reader = undo(coding, reader)?;
    }
    let mut text = Vec::new();
    match reader.take(limit as u64 + 1).read_to_end(&mut text).await {
        Ok(_) if text.len() > limit => Err(format!("it is over {limit} bytes when it is decompressed")),
        Ok(_) => Ok(text.into()),
        Err(error) => Err(format!("it cannot be decompressed: {error}")),
    }
}

/// A streamed body without its codings: what can be decoded leaves as it comes.
pub(super) fn stream(headers: &HeaderMap, body: Body) -> Result<Body, String> {
    let codings = codings(headers);
    if codings.is_empty() {
        return Ok(body);
    }
    let frames = BodyStream::new(body).try_filter_map(|frame| async move { Ok(frame.into_data().ok()) });
    let frames = frames.map_err(std::io::Error::other);
    let mut reader: Reader = Box::new(StreamReader::new(Box::pin(frames)));
    for coding in codings.iter().rev() {
        reader = undo(coding, reader)?;
    }
    let frames = ReaderStream::new(reader).map(|chunk| chunk.map(http_body::Frame::data).map_err(BoxError::from));
    Ok(Body::wrap(http_body_util::StreamBody::new(frames)))
}

#[cfg(test)]
mod tests {
    use async_compression::tokio::bufread::{BrotliEncoder, GzipEncoder, ZlibEncoder, ZstdEncoder};
    use http_body_util::BodyExt;

    use super::*;

    async fn encode(coding: &str, text: &[u8]) -> Bytes {
        let text = std::io::Cursor::new(text.to_vec());
        let mut out = Vec::new();
        match coding {
            "gzip" => GzipEncoder::new(text).read_to_end(&mut out).await,
            "deflate" => ZlibEncoder::new(text).read_to_end(&mut out).await,
            "br" => BrotliEncoder::new(text).read_to_end(&mut out).await,
            _ => ZstdEncoder::new(text).read_to_end(&mut out).await,
        }
        .unwrap();
        out.into()
    }

    fn headers(value: &str) -> HeaderMap {
        [(header::CONTENT_ENCODING, value.parse().unwrap())].into_iter().collect()
    }

    #[tokio::test]
    async fn known_codings_are_undone_in_reverse_order() {
        for coding in ["gzip", "deflate", "br", "zstd"] {
            let body = encode(coding, b"hello").await;
            assert_eq!(whole(&headers(coding), body.clone(), 100).await.unwrap(), "hello");
            let streamed = stream(&headers(coding), Body::from(body)).unwrap();
            assert_eq!(streamed.collect().await.unwrap().to_bytes(), "hello");
        }
        let twice = encode("br", &encode("gzip", b"hello").await).await;
        assert_eq!(whole(&headers("gzip, br"), twice, 100).await.unwrap(), "hello");
        let members = [encode("gzip", b"he").await, encode("gzip", b"llo").await].concat();
        assert_eq!(whole(&headers("x-gzip"), members.into(), 100).await.unwrap(), "hello");
    }

    #[tokio::test]
    async fn what_cannot_be_read_says_why() {
        let bomb = encode("gzip", &[0; 100_000]).await;
        assert!(whole(&headers("gzip"), bomb, 1000).await.unwrap_err().contains("over 1000 bytes"));
        assert!(whole(&headers("rot13"), Bytes::new(), 10).await.unwrap_err().contains("\"rot13\""));
        assert!(whole(&headers("gzip"), Bytes::from_static(b"nope"), 10).await.is_err());
    }
}
