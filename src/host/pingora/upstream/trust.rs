//! Whom a route's connections trust, and what they show: certificates from PEM files, checked before they are used.

use std::path::Path;
use std::sync::Arc;

use pingora::protocols::tls::CaType;
use pingora::utils::tls::{CertKey, WrappedX509, parse_x509};
use rustls::RootCertStore;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use super::super::ServeError;
use crate::config::RouteConfig;

/// The TLS side of a route. Empty: the system's authorities, no client certificate.
#[derive(Default)]
pub(super) struct Trust {
    pub(super) authorities: Option<Arc<CaType>>,
    pub(super) client: Option<Arc<CertKey>>,
}

impl Trust {
    pub(super) fn load(route: &RouteConfig) -> Result<Self, ServeError> {
        let authorities = route.ca_file.as_deref().map(authorities).transpose()?;
        let client = match &route.client_cert {
            Some(files) => Some(client(&files.cert, &files.key)?),
            None => None,
        };
        Ok(Trust { authorities, client })
    }
}

fn authorities(file: &Path) -> Result<Arc<CaType>, ServeError> {
    let certificates = certificates(file)?;
    Ok(certificates.into_iter().map(|der| WrappedX509::new(der.to_vec(), parse_x509)).collect())
}

fn client(chain: &Path, key: &Path) -> Result<Arc<CertKey>, ServeError> {
    let chain = certificates(chain)?.into_iter().map(|der| der.to_vec()).collect();
    let key = private_key(key)?.secret_der().to_vec();
    Ok(Arc::new(CertKey::new(chain, key)))
}

/// The certificates of a PEM file: at least one, each of which can be parsed. pingora panics on others.
pub(in crate::host::pingora) fn certificates(file: &Path) -> Result<Vec<CertificateDer<'static>>, ServeError> {
    let certificates: Vec<_> = CertificateDer::pem_file_iter(file)
        .and_then(Iterator::collect)
        .map_err(|error| ServeError::certificate(file, error))?;
    if certificates.is_empty() {
        return Err(ServeError::certificate(file, "there is no certificate in it"));
    }
    for certificate in &certificates {
        RootCertStore::empty().add(certificate.clone()).map_err(|error| ServeError::certificate(file, error))?;
    }
    Ok(certificates)
}

/// The first private key of a PEM file.
pub(in crate::host::pingora) fn private_key(file: &Path) -> Result<PrivateKeyDer<'static>, ServeError> {
    PrivateKeyDer::from_pem_file(file).map_err(|error| ServeError::certificate(file, error))
}
