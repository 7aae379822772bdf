//! TLS: the configured mode, and how much of the server's identity is verified.

use std::path::Path;
use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use tenure_core::{Error, Result};

/// The values of `sslmode`, as in libpq.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TlsMode {
    Disable,
    /// Encrypted if the server can; its identity is not checked.
    Prefer,
    /// Encrypted, without checking the identity; with a root certificate as `verify-ca`.
    Require,
    /// A certificate that is signed by a trusted authority, for any name.
    VerifyCa,
    /// As `verify-ca`, and the certificate is for this host.
    VerifyFull,
}

impl TlsMode {
    pub(crate) fn parse(text: &str) -> Option<Self> {
        Some(match text {
            "disable" => Self::Disable,
            // `allow` permits encryption, so it is used if the server supports it.
            "allow" | "prefer" => Self::Prefer,
            "require" => Self::Require,
            "verify-ca" => Self::VerifyCa,
            "verify-full" => Self::VerifyFull,
            _ => return None,
        })
    }
}

/// Whether the mode verifies that the server is the one that the user means. An authority that certifies anybody proves this
/// only together with the name.
pub(crate) fn verifies(mode: TlsMode, root: Option<&Path>) -> bool {
    let own_authority = root.is_some_and(|root| root != Path::new("system"));
    match mode {
        TlsMode::VerifyFull => true,
        TlsMode::VerifyCa | TlsMode::Require => own_authority,
        TlsMode::Prefer | TlsMode::Disable => false,
    }
}

pub(crate) fn client_config(mode: TlsMode, root: Option<&Path>) -> Result<ClientConfig> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let broken = |e: rustls::Error| Error::store(format!("encryption cannot be set up: {e}"));
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(broken)?;
    let verifies_chain =
        matches!(mode, TlsMode::VerifyCa | TlsMode::VerifyFull) || mode == TlsMode::Require && root.is_some();
    let chain = if verifies_chain {
        let roots = Arc::new(trusted(root)?);
        let built = WebPkiServerVerifier::builder_with_provider(roots, Arc::clone(&provider)).build();
        Some(built.map_err(|e| Error::Config(format!("the root certificate cannot be used: {e}")))?)
    } else {
        None
    };
    let verifier = Verifier { chain, checks_name: mode == TlsMode::VerifyFull, provider };
    Ok(builder.dangerous().with_custom_certificate_verifier(Arc::new(verifier)).with_no_client_auth())
}

/// The certificates in the named file, or by default the root certificates of Mozilla.
fn trusted(root: Option<&Path>) -> Result<RootCertStore> {
    let mut roots = RootCertStore::empty();
    let Some(path) = root.filter(|path| *path != Path::new("system")) else {
        roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
        return Ok(roots);
    };
    let unreadable =
        |why: String| Error::Config(format!("cannot read sslrootcert {}: {why}", path.display()));
    let found = CertificateDer::pem_file_iter(path).map_err(|e| unreadable(e.to_string()))?;
    for certificate in found {
        let certificate = certificate.map_err(|e| unreadable(e.to_string()))?;
        roots.add(certificate).map_err(|e| unreadable(e.to_string()))?;
    }
    if roots.is_empty() {
        return Err(unreadable("there is no certificate in it".to_owned()));
    }
    Ok(roots)
}

/// Verifies as much as the mode requires.
#[derive(Debug)]
struct Verifier {
    chain: Option<Arc<WebPkiServerVerifier>>,
    checks_name: bool,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> std::result::Result<ServerCertVerified, rustls::Error> {
        let Some(chain) = &self.chain else { return Ok(ServerCertVerified::assertion()) };
        match chain.verify_server_cert(end_entity, intermediates, server_name, ocsp, now) {
            // The name is checked last, so everything else was valid.
            Err(rustls::Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) if !self.checks_name => Ok(ServerCertVerified::assertion()),
            other => other,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> std::result::Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        rustls::crypto::verify_tls12_signature(message, cert, dss, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> std::result::Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, cert, dss, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
