//! The certificate that listeners show, which can be replaced while they run.

use std::sync::Arc;

use arc_swap::ArcSwap;
use pingora::listeners::tls::{Acceptor, TlsSettings};
use rustls::crypto::ring;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;

use super::ServeError;
use super::upstream::trust::{certificates, private_key};
use crate::config::TlsFiles;

/// The certificate of all TLS listeners.
#[derive(Debug)]
pub(super) struct Certificate {
    files: TlsFiles,
    current: ArcSwap<CertifiedKey>,
}

impl Certificate {
    pub(super) fn load(files: &TlsFiles) -> Result<Arc<Self>, ServeError> {
        let current = ArcSwap::from_pointee(read(files)?);
        Ok(Arc::new(Certificate { files: files.clone(), current }))
    }

    /// Reads the files again. On an error the old certificate stays.
    pub(super) fn reload(&self) -> Result<(), ServeError> {
        self.current.store(Arc::new(read(&self.files)?));
        Ok(())
    }

    /// What a listener needs: this certificate, HTTP/2 or else HTTP/1.1.
    pub(super) fn acceptor(self: &Arc<Self>) -> Result<Acceptor, ServeError> {
        let mut settings = TlsSettings::intermediate("", "").map_err(ServeError::setup)?;
        settings.set_cert_resolver(self.clone());
        settings.enable_h2();
        Ok(settings.build())
    }
}

impl ResolvesServerCert for Certificate {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.current.load_full())
    }
}

fn read(files: &TlsFiles) -> Result<CertifiedKey, ServeError> {
    let chain = certificates(&files.cert)?;
    let key = private_key(&files.key)?;
    CertifiedKey::from_der(chain, key, &ring::default_provider())
        .map_err(|error| ServeError::certificate(&files.key, error))
}
