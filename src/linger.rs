//! How long a refused request's body is still read.
//!
//! A client that is in the middle of sending gets an error of its own when the connection closes on it, and never sees
//! the refusal. So the rest of the body is read and dropped, within these bounds.

use std::pin::Pin;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::BodyExt;

/// At most this much is read. It leaves room for the largest request that the model APIs take (32 MB) many times.
pub(crate) const LINGER_BYTES: usize = 256 << 20;
/// Not for longer than this.
pub(crate) const LINGER_TIME: Duration = Duration::from_secs(10);

/// Reads on so that the client gets to read the refusal.
pub(crate) async fn linger<B: http_body::Body<Data = Bytes>>(mut body: Pin<Box<B>>) {
    let drain = async {
        let mut left = LINGER_BYTES;
        while let Some(Ok(frame)) = body.frame().await {
            left = left.saturating_sub(frame.data_ref().map_or(0, Bytes::len));
            if left == 0 {
                return;
            }
        }
    };
    let _ = tokio::time::timeout(LINGER_TIME, drain).await;
}
