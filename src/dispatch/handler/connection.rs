//! `[connections.NAME]`: what a handler is reached with.

use std::fmt;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderName, HeaderValue};
use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;

/// A credential and the certificates that a handler's server is checked against. Neither is ever shown.
#[derive(Clone, Default)]
pub struct Connection {
    credential: Option<(HeaderName, HeaderValue)>,
    roots: Option<RootCertStore>,
}

/// What is wrong with a connection's material, without the material.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectionError {
    /// A header cannot carry the credential.
    #[error("the credential is empty or has characters that a header cannot carry")]
    Credential,
    /// The name is not one of a header that may hold a credential.
    #[error("the header's name is not valid here")]
    Header,
    /// There is no usable certificate.
    #[error("the file holds no valid PEM certificate, or something beside valid ones")]
    Certificates,
}

impl Connection {
    /// No credential, and the system's root certificates.
    pub fn new() -> Self {
        Self::default()
    }

    /// `authorization: Bearer TOKEN`
    ///
    /// # Errors
    /// When a header cannot carry the token.
    pub fn bearer(self, token: &str) -> Result<Self, ConnectionError> {
        self.secret(AUTHORIZATION, token, format!("Bearer {token}"))
    }

    /// `authorization: Basic …`, from `user:password`.
    ///
    /// # Errors
    /// When there is no colon.
    pub fn basic(self, user_and_password: &str) -> Result<Self, ConnectionError> {
        if !user_and_password.contains(':') {
            return Err(ConnectionError::Credential);
        }
        self.secret(AUTHORIZATION, user_and_password, format!("Basic {}", BASE64_STANDARD.encode(user_and_password)))
    }

    /// Any other header. Those that a request has anyway (`host`, `content-type`, `x-hookgate-…`, …) are refused.
    ///
    /// # Errors
    /// When the name is not valid here or a header cannot carry the value.
    pub fn header(self, name: &str, value: &str) -> Result<Self, ConnectionError> {
        const TAKEN: [&str; 10] = [
            "host",
            "content-type",
            "content-length",
            "transfer-encoding",
            "connection",
            "te",
            "upgrade",
            "user-agent",
            "idempotency-key",
            "traceparent",
        ];
        let name = HeaderName::try_from(name).map_err(|_| ConnectionError::Header)?;
        if TAKEN.contains(&name.as_str()) || name.as_str().starts_with("x-hookgate-") {
            return Err(ConnectionError::Header);
        }
        self.secret(name, value, value.to_owned())
    }

    /// Checks the server against these certificates (PEM) alone, and not against the system's.
    ///
    /// # Errors
    /// When there is none, or one is not valid.
    pub fn trusting(mut self, pem: &[u8]) -> Result<Self, ConnectionError> {
        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_slice_iter(pem) {
            let certificate = certificate.map_err(|_| ConnectionError::Certificates)?;
            roots.add(certificate).map_err(|_| ConnectionError::Certificates)?;
        }
        if roots.is_empty() {
            return Err(ConnectionError::Certificates);
        }
        self.roots = Some(roots);
        Ok(self)
    }

    fn secret(mut self, name: HeaderName, secret: &str, value: String) -> Result<Self, ConnectionError> {
        if secret.is_empty() {
            return Err(ConnectionError::Credential);
        }
        let mut value = HeaderValue::try_from(value).map_err(|_| ConnectionError::Credential)?;
        value.set_sensitive(true);
        self.credential = Some((name, value));
        Ok(self)
    }

    pub(super) fn authorize(&self, headers: &mut HeaderMap) {
        if let Some((name, value)) = &self.credential {
            headers.insert(name.clone(), value.clone());
        }
    }

    pub(super) fn roots(&self) -> Option<&RootCertStore> {
        self.roots.as_ref()
    }
}

/// Shows what there is, not what it is.
impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection")
            .field("header", &self.credential.as_ref().map(|(name, _)| name))
            .field("own_roots", &self.roots.is_some())
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(connection: Connection) -> HeaderMap {
        let mut headers = HeaderMap::new();
        connection.authorize(&mut headers);
        headers
    }

    #[test]
    fn credentials_become_headers_and_are_not_shown() {
        let bearer = Connection::new().bearer("s3cret").unwrap();
        assert!(!format!("{bearer:?}").contains("s3cret"), "{bearer:?}");
        let headers = sent(bearer);
        assert_eq!(headers[AUTHORIZATION], "Bearer s3cret");
        assert!(!format!("{headers:?}").contains("s3cret"));
        assert_eq!(sent(Connection::new().basic("u:p").unwrap())[AUTHORIZATION], "Basic dTpw");
        assert_eq!(sent(Connection::new().header("X-Key", "k").unwrap())["x-key"], "k");
        assert!(sent(Connection::new()).is_empty());
    }

    #[test]
    fn unusable_material_is_refused() {
        assert_eq!(Connection::new().bearer("").unwrap_err(), ConnectionError::Credential);
        assert_eq!(Connection::new().bearer("a\nb").unwrap_err(), ConnectionError::Credential);
        assert_eq!(Connection::new().basic("user").unwrap_err(), ConnectionError::Credential);
        for name in ["", "a b", "Host", "content-length", "traceparent", "X-Hookgate-Dispatch"] {
            assert_eq!(Connection::new().header(name, "v").unwrap_err(), ConnectionError::Header, "{name}");
        }
        for pem in ["", "no", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"] {
            assert_eq!(Connection::new().trusting(pem.as_bytes()).unwrap_err(), ConnectionError::Certificates, "{pem}");
        }
    }
}
