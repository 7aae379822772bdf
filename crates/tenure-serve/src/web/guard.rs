//! Decides, from the head of a request alone, whether it may be answered.
//!
//! Guaranteed: no request with another `Host` is answered, so the name of another site that resolves to this machine (DNS
//! rebinding) reaches nothing. A change or a stream is served only to a page of exactly this origin, port included, with the
//! session's cookie; a change also needs the session's CSRF value, so a page of another local port cannot make one.

use http::header::{CONTENT_TYPE, COOKIE, HOST, ORIGIN};
use http::{HeaderMap, HeaderName};

use super::sessions::Token;
use crate::http::is_equal;

const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
const SEC_FETCH_MODE: HeaderName = HeaderName::from_static("sec-fetch-mode");
/// The header with the session's CSRF value, for scripts. Forms have a field.
pub(crate) const CSRF: HeaderName = HeaderName::from_static("x-tenure-csrf");

/// The address of the server as browsers see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Address {
    /// The exact value of `Host`, with the port.
    pub authority: String,
    /// The numeric address with the port, which programs without a browser use for `/metrics`.
    pub numeric: String,
    /// Cookies ignore ports, so the name is unique to the server.
    pub cookie: String,
}

/// Why a request is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Denied {
    Host,
    Site,
    Origin,
    Csrf,
    ContentType,
}

impl Denied {
    pub(crate) fn sentence(self) -> &'static str {
        match self {
            Self::Host => "this server has another name; use the address that `tenure web` has printed",
            Self::Site => "only a page of this server may ask for this",
            Self::Origin => "the request comes from another page",
            Self::Csrf => "the form does not belong to this session; reload the page",
            Self::ContentType => "a change is sent as a form",
        }
    }
}

impl Address {
    pub(crate) fn check_host(&self, headers: &HeaderMap) -> Result<(), Denied> {
        if only(headers, &HOST) == Some(&self.authority) { Ok(()) } else { Err(Denied::Host) }
    }

    /// For `/metrics`, which needs a token and is read by programs that use the numeric address.
    pub(crate) fn check_numeric_host(&self, headers: &HeaderMap) -> Result<(), Denied> {
        let is_numeric = only(headers, &HOST) == Some(&self.numeric);
        if is_numeric { Ok(()) } else { self.check_host(headers) }
    }

    /// The session's token in the request's cookies.
    pub(crate) fn token(&self, headers: &HeaderMap) -> Option<Token> {
        let cookies = headers.get_all(COOKIE).into_iter().filter_map(|value| value.to_str().ok());
        let pairs = cookies.flat_map(|text| text.split(';')).filter_map(|pair| pair.trim().split_once('='));
        pairs.filter(|(name, _)| *name == self.cookie).map(|(_, value)| Token::new(value)).next()
    }

    /// A page may be opened by following a link from anywhere, but only scripts of this server may fetch it.
    pub(crate) fn check_page(headers: &HeaderMap) -> Result<(), Denied> {
        let is_own = matches!(only(headers, &SEC_FETCH_SITE), None | Some("same-origin" | "none"));
        let is_navigation = only(headers, &SEC_FETCH_MODE) == Some("navigate");
        if is_own || is_navigation { Ok(()) } else { Err(Denied::Site) }
    }

    pub(crate) fn check_stream(headers: &HeaderMap) -> Result<(), Denied> {
        if only(headers, &SEC_FETCH_SITE) == Some("same-origin") { Ok(()) } else { Err(Denied::Site) }
    }

    /// `field` is the form's CSRF value, if it has one.
    pub(crate) fn check_change(
        &self,
        headers: &HeaderMap,
        token: &Token,
        field: Option<&str>,
    ) -> Result<(), Denied> {
        Self::check_stream(headers)?;
        if only(headers, &ORIGIN) != Some(&format!("http://{}", self.authority)) {
            return Err(Denied::Origin);
        }
        if !only(headers, &CONTENT_TYPE).is_some_and(is_form) {
            return Err(Denied::ContentType);
        }
        let given = only(headers, &CSRF).or(field).unwrap_or_default();
        if is_equal(given, &token.csrf()) { Ok(()) } else { Err(Denied::Csrf) }
    }
}

fn is_form(value: &str) -> bool {
    let kind = value.split(';').next().unwrap_or_default().trim();
    kind.eq_ignore_ascii_case("application/x-www-form-urlencoded")
}

/// The value of a header that must be given once.
fn only<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Option<&'h str> {
    let mut values = headers.get_all(name).into_iter();
    let first = values.next()?;
    if values.next().is_some() { None } else { first.to_str().ok() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address() -> Address {
        Address {
            authority: "tenure-ab12.localhost:7000".to_owned(),
            numeric: "127.0.0.1:7000".to_owned(),
            cookie: "tenure-ab12".to_owned(),
        }
    }

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        let mut all = HeaderMap::new();
        for (name, value) in pairs {
            all.append(HeaderName::from_static(name), value.parse().unwrap());
        }
        all
    }

    #[test]
    fn only_the_exact_name_and_port_is_this_server() {
        let check = |host: &str| address().check_host(&headers(&[("host", host)]));
        assert_eq!(check("tenure-ab12.localhost:7000"), Ok(()));
        for other in [
            "tenure-ab12.localhost",
            "tenure-ab12.localhost:7001",
            "127.0.0.1:7000",
            "localhost:7000",
            "evil.example:7000",
            "tenure-ab12.localhost:7000.evil.example",
            "tenure-AB12.localhost:7000",
        ] {
            assert_eq!(check(other), Err(Denied::Host), "{other}");
        }
        let twice = headers(&[("host", "tenure-ab12.localhost:7000"), ("host", "evil.example")]);
        assert_eq!(address().check_host(&twice), Err(Denied::Host));
        assert_eq!(address().check_host(&HeaderMap::new()), Err(Denied::Host));
        assert_eq!(address().check_numeric_host(&headers(&[("host", "127.0.0.1:7000")])), Ok(()));
    }

    #[test]
    fn a_change_needs_the_site_the_origin_the_form_and_the_sessions_value() {
        let token = Token::new("secret");
        let csrf = token.csrf();
        let good = [
            ("sec-fetch-site", "same-origin"),
            ("origin", "http://tenure-ab12.localhost:7000"),
            ("content-type", "application/x-www-form-urlencoded"),
            ("x-tenure-csrf", &csrf),
        ];
        let check = |pairs: &[(&'static str, &str)]| address().check_change(&headers(pairs), &token, None);
        assert_eq!(check(&good), Ok(()));
        let with = |at: usize, value: &'static str| {
            let mut pairs = good;
            pairs[at].1 = value;
            check(&pairs)
        };
        for site in ["same-site", "cross-site", "none", ""] {
            assert_eq!(with(0, site), Err(Denied::Site), "{site}");
        }
        for origin in [
            "null",
            "http://tenure-ab12.localhost:7001",
            "http://tenure-ab12.localhost",
            "http://127.0.0.1:7000",
        ] {
            assert_eq!(with(1, origin), Err(Denied::Origin), "{origin}");
        }
        assert_eq!(with(2, "text/plain"), Err(Denied::ContentType));
        assert_eq!(with(3, "wrong"), Err(Denied::Csrf));
        for missing in 0..good.len() {
            let pairs: Vec<_> = (0..good.len()).filter(|at| *at != missing).map(|at| good[at]).collect();
            assert!(check(&pairs).is_err(), "without {}", good[missing].0);
        }
        assert_eq!(address().check_change(&headers(&good[..3]), &token, Some(&csrf)), Ok(()));
    }

    #[test]
    fn a_page_is_not_loaded_by_a_script_of_another_port() {
        let check = |pairs: &[(&'static str, &str)]| Address::check_page(&headers(pairs));
        assert_eq!(check(&[]), Ok(()));
        assert_eq!(check(&[("sec-fetch-site", "cross-site"), ("sec-fetch-mode", "navigate")]), Ok(()));
        assert_eq!(
            check(&[("sec-fetch-site", "same-site"), ("sec-fetch-mode", "no-cors")]),
            Err(Denied::Site)
        );
    }
}
