//! Content codings: reading what was compressed.

use async_compression::tokio::bufread::{BrotliDecoder, GzipDecoder, ZlibDecoder, ZstdDecoder};
use bytes::Bytes;
use futures_util::{StreamExt, TryStreamExt};
use http::{HeaderMap, header};
use http_body_util::BodyStream;
use tokio::io::{AsyncBufRead, AsyncRead, AsyncReadExt};
use tokio_util::io::{ReaderStream, StreamReader};

use crate::{Body, BoxError};

/// The names of a body's codings, in the order in which they were applied; `identity` is none.
fn names(headers: &HeaderMap) -> impl Iterator<Item = String> + '_ {
    let lists = headers.get_all(header::CONTENT_ENCODING).iter().filter_map(|value| value.to_str().ok());
    lists
        .flat_map(|list| list.split(','))
        .map(|coding| coding.trim().to_ascii_lowercase())
        .filter(|coding| !coding.is_empty() && coding != "identity")
}

/// Whether the body is compressed at all.
pub(super) fn is_encoded(headers: &HeaderMap) -> bool {
    names(headers).next().is_some()
}

/// A coding that can be undone.
#[derive(Clone, Copy)]
enum Coding {
    Gzip,
    Deflate,
    Brotli,
    Zstd,
}

/// The codings of a body, in the order in which they were applied.
fn codings(headers: &HeaderMap) -> Result<Vec<Coding>, String> {
    let coding = |name: String| match &*name {
        "gzip" | "x-gzip" => Ok(Coding::Gzip),
        "deflate" => Ok(Coding::Deflate),
        "br" => Ok(Coding::Brotli),
        "zstd" => Ok(Coding::Zstd),
        other => Err(format!("its content-encoding {other:?} is unknown; gzip, deflate, br and zstd can be read")),
    };
    names(headers).map(coding).collect()
}

type Reader = Box<dyn AsyncBufRead + Send + Unpin>;

impl Coding {
    fn undo(self, reader: Reader) -> Reader {
        fn buffered(reader: impl AsyncRead + Send + Unpin + 'static) -> Reader {
            Box::new(tokio::io::BufReader::new(reader))
        }
        match self {
            Coding::Gzip => {
                let mut decoder = GzipDecoder::new(reader);
                decoder.multiple_members(true);
                buffered(decoder)
            }
            Coding::Deflate => buffered(ZlibDecoder::new(reader)),
            Coding::Brotli => buffered(BrotliDecoder::new(reader)),
            Coding::Zstd => buffered(ZstdDecoder::new(reader)),
        }
    }
}

/// Without all of the codings.
fn undone(codings: &[Coding], reader: Reader) -> Reader {
    codings.iter().rev().fold(reader, |reader, coding| coding.undo(reader))
}

/// A whole body without its codings, at most `limit` bytes.
pub(super) async fn whole(headers: &HeaderMap, body: Bytes, limit: usize) -> Result<Bytes, String> {
    let codings = codings(headers)?;
    if codings.is_empty() {
        return Ok(body);
    }
    let reader = undone(&codings, Box::new(std::io::Cursor::new(body)));
    let mut text = Vec::new();
    match reader.take(limit as u64 + 1).read_to_end(&mut text).await {
        Ok(_) if text.len() > limit => Err(format!("it is over {limit} bytes when it is decompressed")),
        Ok(_) => Ok(text.into()),
        Err(error) => Err(format!("it cannot be decompressed: {error}")),
    }
}

/// A body whose coding is unknown, as it came, and what is wrong with it.
#[derive(Debug)]
pub(super) struct Unknown {
    pub(super) body: Body,
    pub(super) why: String,
}

/// A streamed body without its codings: what can be decoded leaves as it comes.
pub(super) fn stream(headers: &HeaderMap, body: Body) -> Result<Body, Unknown> {
    let codings = match codings(headers) {
        Ok(codings) => codings,
        Err(why) => return Err(Unknown { body, why }),
    };
    if codings.is_empty() {
        return Ok(body);
    }
    let frames = BodyStream::new(body).try_filter_map(|frame| async move { Ok(frame.into_data().ok()) });
    let frames = frames.map_err(std::io::Error::other);
    let reader = undone(&codings, Box::new(StreamReader::new(Box::pin(frames))));
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
