//! Calls a webhook.
//!
//! Guarantees: one request within the timeout; no redirect is followed, because the headers are meant for the configured
//! server; no part of the URL appears in a failure.

use std::collections::BTreeMap;
use std::io::Read;
use std::net::IpAddr;
use std::time::{Duration, Instant};

use tenure_core::config::Hook;
use ureq::http::{HeaderName, HeaderValue, Method, Request, Uri};
use ureq::{Agent, Error, Proxy};

use super::fill::Filler;
use super::outcome::Failure;
use super::wait::{PolledThread, WaitEnd, wait};
use crate::template::{Piece, pieces};

/// How many bytes of an error response are read. An outcome quotes one line of them.
const KEPT: u64 = 2 * 1024;

#[derive(Debug)]
pub(super) struct WebhookRequest {
    request: Request<Vec<u8>>,
    has_body: bool,
    /// Whether the URL contains a variable. Then not even the host name may be shown.
    is_secret: bool,
    timeout: Duration,
}

pub(super) struct Template<'a> {
    pub(super) url: &'a str,
    pub(super) method: &'a str,
    pub(super) headers: &'a BTreeMap<String, String>,
    pub(super) body: Option<&'a str>,
}

impl WebhookRequest {
    pub(super) fn prepare(
        hook: &Hook,
        template: &Template<'_>,
        payload: &str,
        fill: &mut Filler<'_>,
    ) -> Result<Self, Failure> {
        let impossible = |why: &str| Failure::Request(why.to_owned());
        let url = fill.url("url", template.url)?;
        let uri: Uri = url.trim().parse().map_err(|_| impossible("the URL is not one"))?;
        if !matches!(uri.scheme_str(), Some("http" | "https")) || uri.host().is_none() {
            return Err(impossible("the URL must begin with http:// or https://"));
        }
        let method = Method::from_bytes(template.method.as_bytes())
            .map_err(|_| impossible("there is no such method"))?;
        let takes_body = matches!(method, Method::POST | Method::PUT | Method::PATCH);
        if template.body.is_some() && !takes_body {
            return Err(Failure::Request(format!("{method} has no body")));
        }
        let mut request = Request::builder().method(method).uri(uri);
        let mut content_type = None;
        for (name, value) in template.headers {
            let field = format!("headers.{name}");
            let value = fill.header(&field, value)?;
            let header: HeaderName =
                name.parse().map_err(|_| Failure::Request(format!("{name:?} cannot be a header")))?;
            let value = HeaderValue::from_bytes(value.as_bytes())
                .map_err(|_| Failure::Request(format!("{field} has characters that no header may have")))?;
            if header == "content-type" {
                content_type = Some(value.to_str().unwrap_or_default().to_owned());
            }
            request = request.header(header, value);
        }
        let body = match template.body {
            None => payload.to_owned(),
            Some(body) if is_json(content_type.as_deref(), body) => fill.json("body", body)?,
            Some(body) => fill.argument("body", body)?,
        };
        if content_type.is_none() && takes_body {
            let is_json = template.body.is_none_or(|body| is_json(None, body));
            request = request.header(
                "content-type",
                if is_json { "application/json" } else { "text/plain; charset=utf-8" },
            );
        }
        let body = if takes_body { body.into_bytes() } else { Vec::new() };
        let request = request.body(body).map_err(|_| impossible("the headers do not go together"))?;
        let is_secret = template.url.contains("${");
        Ok(Self { request, has_body: takes_body, is_secret, timeout: hook.timeout })
    }

    /// Sends the request; the text is the server's response to a failed request.
    pub(super) fn send(&self, stop: Option<rustix::fd::BorrowedFd<'_>>) -> (Result<(), Failure>, String) {
        let (request, has_body, timeout) = (self.request.clone(), self.has_body, self.timeout);
        // In a thread, so that the wait for the server can be interrupted.
        let work = match PolledThread::begin(move || exchange(request, has_body, timeout)) {
            Ok(work) => work,
            Err(error) => return (Err(Failure::NotStarted(error.to_string())), String::new()),
        };
        // The agent enforces the timeout itself; this is for a name lookup that does not end.
        let end = Instant::now() + timeout + Duration::from_secs(2);
        match wait(Some(work.fd()), stop, end) {
            WaitEnd::Stopped => (Err(Failure::Stopped), String::new()),
            WaitEnd::TimedOut => (Err(Failure::TimedOut(timeout)), String::new()),
            WaitEnd::Done => match work.result() {
                None => (Err(Failure::Unreachable("the request broke off".into())), String::new()),
                Some(Ok((200..=299, _))) => (Ok(()), String::new()),
                Some(Ok((status, said))) => (Err(Failure::Status(status)), said),
                Some(Err(error)) => (Err(self.failure(&error)), String::new()),
            },
        }
    }

    fn failure(&self, error: &Error) -> Failure {
        Failure::Unreachable(match error {
            Error::Timeout(_) => return Failure::TimedOut(self.timeout),
            Error::BadUri(_) | Error::Http(_) => return Failure::Request("the URL is not one".into()),
            Error::Io(error) => match error.kind() {
                std::io::ErrorKind::TimedOut => return Failure::TimedOut(self.timeout),
                kind => kind.to_string(),
            },
            Error::HostNotFound => "the host was not found".into(),
            Error::ConnectionFailed => "no connection".into(),
            Error::Rustls(error) if !self.is_secret => error.to_string(),
            Error::Rustls(_) | Error::Tls(_) => "the secure connection failed".into(),
            _ if self.is_secret => "the request failed".into(),
            other => other.to_string(),
        })
    }
}

fn exchange(request: Request<Vec<u8>>, has_body: bool, timeout: Duration) -> Result<(u16, String), Error> {
    // A server on this machine is reached without the proxy.
    let proxy = if is_local(request.uri()) { None } else { Proxy::try_from_env() };
    let agent: Agent = Agent::config_builder()
        .proxy(proxy)
        .timeout_global(Some(timeout))
        .http_status_as_error(false)
        .max_redirects(0)
        .max_redirects_will_error(false)
        .user_agent(concat!("tenure/", env!("CARGO_PKG_VERSION")))
        .build()
        .into();
    let mut response = if has_body { agent.run(request) } else { agent.run(request.map(|_| ())) }?;
    let status = response.status().as_u16();
    let mut said = Vec::new();
    if !(200..=299).contains(&status) {
        let _ = response.body_mut().as_reader().take(KEPT).read_to_end(&mut said);
    }
    // A line that was cut may contain part of a secret, which redaction would not recognise.
    let is_cut = u64::try_from(said.len()).is_ok_and(|length| length >= KEPT);
    let said = String::from_utf8_lossy(&said).into_owned();
    let whole = if is_cut { said.rsplit_once('\n').map(|(whole, _)| whole.to_owned()) } else { Some(said) };
    Ok((status, whole.unwrap_or_default()))
}

fn is_local(uri: &Uri) -> bool {
    let host = uri.host().unwrap_or_default().trim_matches(['[', ']']);
    host.eq_ignore_ascii_case("localhost")
        || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

fn is_json(content_type: Option<&str>, body: &str) -> bool {
    if let Some(content_type) = content_type {
        return content_type.to_ascii_lowercase().contains("json");
    }
    let body = body.trim();
    match pieces(body).as_slice() {
        [Piece::Placeholder(_)] => true,
        [Piece::Placeholder(_), ..] => false,
        _ => body.starts_with(['{', '[', '"']),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_is_json_if_its_header_or_its_beginning_says_so() {
        for (content_type, body, expected) in [
            (None, " {\"a\": 1}", true),
            (None, "{{task}}", true),
            (None, "{{task.title}} is done", false),
            (None, "Done: {{task.title}}", false),
            (Some("application/json; charset=utf-8"), "x", true),
            (Some("text/plain"), "{}", false),
        ] {
            assert_eq!(is_json(content_type, body), expected, "{body}");
        }
    }
}
