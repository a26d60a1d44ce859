//! Heads of messages that get another body than the one they came with.

use bytes::Bytes;
use http::{HeaderMap, HeaderName, Response, header, response};

use crate::Body;

/// What is said of a body's bytes: how they are coded and how many they are, digests of them (RFC 9530 and before), and the
/// name of this very version.
const OF_THE_BYTES: [HeaderName; 7] = [
    header::CONTENT_ENCODING,
    header::CONTENT_LENGTH,
    header::ETAG,
    HeaderName::from_static("content-digest"),
    HeaderName::from_static("repr-digest"),
    HeaderName::from_static("content-md5"),
    HeaderName::from_static("digest"),
];

/// Takes out of a head what is untrue of another body.
pub(crate) fn strip_of_body(headers: &mut HeaderMap) {
    for name in &OF_THE_BYTES {
        headers.remove(name);
    }
}

/// An answer with a whole body: its length is known, and no trailers follow.
pub(crate) fn whole(mut head: response::Parts, body: impl Into<Bytes>) -> Response<Body> {
    let body = body.into();
    head.headers.remove(header::TRANSFER_ENCODING);
    head.headers.remove(header::TRAILER);
    head.headers.insert(header::CONTENT_LENGTH, body.len().into());
    Response::from_parts(head, body.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_of_the_old_bytes_goes_and_all_else_stays() {
        let mut response = Response::new(());
        for name in OF_THE_BYTES.iter().chain(&[header::TRAILER, header::TRANSFER_ENCODING, header::CONTENT_TYPE]) {
            response.headers_mut().insert(name, "x".parse().unwrap());
        }
        let mut head = response.into_parts().0;
        strip_of_body(&mut head.headers);
        let answer = whole(head, "body");
        assert_eq!(answer.headers().len(), 2);
        assert_eq!(
            (&answer.headers()["content-type"], &answer.headers()["content-length"]),
            (&"x".parse().unwrap(), &"4".parse().unwrap())
        );
    }
}
