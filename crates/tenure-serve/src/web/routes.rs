//! The routes of the server, and what each of them requires.

use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Path, Query, Request, State};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::sse::{KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use futures::FutureExt as _;
use http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, LOCATION, REFERRER_POLICY, SET_COOKIE,
    WWW_AUTHENTICATE, X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use hyper::body::Incoming;
use hyper::service::{Service, service_fn};
use hyper_util::service::TowerToHyperService;
use maud::Markup;
use serde_json::json;
use tenure_core::ErrorCode;
use tokio::sync::Notify;

use super::forms::Form;
use super::guard::{Address, Denied};
use super::handler::Action;
use super::hub::Hub;
use super::metrics::{self, Metrics};
use super::pages::{self, Around, ProjectSummary, View};
use super::sessions::{Sessions, Token};
use super::streams::{self, FindLog, Streams};
use crate::http::has_token;
use crate::request_handler::Refusal;

pub(crate) const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; \
                                 form-action 'self'; base-uri 'none'; frame-ancestors 'none'";
const STYLE: &str = include_str!("board.css");
const SCRIPT: &str = include_str!("board.js");
const ICON: &str = include_str!("icon.svg");

/// The longest form: a description, with every byte of it escaped.
const LONGEST_FORM: usize = 3 * tenure_core::text::MAX_BODY_BYTES + 64 * 1024;
const SLOWEST_FORM: Duration = Duration::from_secs(10);
/// How long pages that follow the store share one rendered result.
const CACHE_LIFE: Duration = Duration::from_secs(1);
const MOST_CACHED: usize = 64;
/// How long the list of all projects waits for each project.
const SUMMARY_PATIENCE: Duration = Duration::from_secs(3);
/// Sent by the script, which shows the answer on the page.
const SCRIPTED: HeaderName = HeaderName::from_static("x-tenure-script");

/// The state that all requests share.
pub(crate) struct Site {
    address: Address,
    sessions: Arc<Sessions>,
    metrics_token: String,
    read_only: bool,
    home: Option<String>,
    hub: Arc<Hub>,
    streams: Streams,
    cache: Mutex<HashMap<String, Cached>>,
}

struct Cached {
    version: u64,
    made: Instant,
    page: Arc<str>,
}

impl std::fmt::Debug for Site {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Site").field("address", &self.address).finish_non_exhaustive()
    }
}

type SiteState = State<Arc<Site>>;

impl Site {
    pub(crate) fn new(
        address: Address,
        sessions: Arc<Sessions>,
        metrics_token: String,
        read_only: bool,
        home: Option<String>,
        hub: Arc<Hub>,
    ) -> Self {
        let (streams, cache) = (Streams::default(), Mutex::default());
        Self { address, sessions, metrics_token, read_only, home, hub, streams, cache }
    }

    fn session(&self, headers: &HeaderMap) -> Option<Token> {
        self.address.token(headers).filter(|token| self.sessions.is_open(token))
    }

    /// What every page of the session has in common.
    fn around<'a>(&'a self, token: &'a Token, project: Option<&'a str>) -> Around {
        Around { project: project.map(str::to_owned), csrf: token.csrf(), read_only: self.read_only }
    }

    /// A page that was rendered for the same URL, if the project has not changed since.
    fn cached(&self, project: &str, key: &str) -> Option<Arc<str>> {
        let version = self.hub.version(project)?;
        let cache = self.cache.lock().unwrap_or_else(PoisonError::into_inner);
        let found = cache.get(key)?;
        (found.version == version && found.made.elapsed() < CACHE_LIFE).then(|| Arc::clone(&found.page))
    }

    fn keep(&self, version: Option<u64>, key: String, page: &Arc<str>) {
        let Some(version) = version else { return };
        let mut cache = self.cache.lock().unwrap_or_else(PoisonError::into_inner);
        cache.retain(|_, earlier| earlier.made.elapsed() < CACHE_LIFE);
        if cache.len() >= MOST_CACHED {
            cache.clear();
        }
        cache.insert(key, Cached { version, made: Instant::now(), page: Arc::clone(page) });
    }
}

pub(crate) fn router(site: Arc<Site>) -> Router {
    let pages = Router::new()
        .route("/", get(front))
        .route("/projects", get(projects))
        .route("/p/{project}/", get(board))
        .route("/p/{project}/t/{task}", get(task))
        .route("/p/{project}/changes", get(changes))
        .route("/p/{project}/do/{verb}", post(change))
        .route("/p/{project}/{list}", get(list))
        .route("/logout", post(logout))
        .route_layer(from_fn_with_state(Arc::clone(&site), needs_session));
    let open = Router::new()
        .route("/login", get(login_form).post(login))
        .route("/style.css", get(async || asset("text/css; charset=utf-8", STYLE)))
        .route("/board.js", get(async || asset("text/javascript; charset=utf-8", SCRIPT)))
        .route("/icon.svg", get(async || asset("image/svg+xml", ICON)));
    Router::new()
        .merge(pages)
        .merge(open)
        .fallback(|| async { problem(StatusCode::NOT_FOUND, "there is no such page") })
        .layer(from_fn_with_state(Arc::clone(&site), needs_host))
        // Read by programs, through the numeric address.
        .route("/metrics", get(numbers))
        .layer(axum::middleware::map_response(with_headers))
        .with_state(site)
}

/// A request extension. Notifying it marks the connection as authorized, so that it is no longer a newcomer.
#[derive(Clone)]
struct Authorized(Arc<Notify>);

/// The service of one connection.
pub(crate) fn service(
    router: Router,
    authorized: Arc<Notify>,
) -> impl Service<
    http::Request<Incoming>,
    Response = Response,
    Error = Infallible,
    Future = impl Future<Output = Result<Response, Infallible>> + Send,
> + Send
+ 'static {
    let inner = TowerToHyperService::new(router);
    service_fn(move |mut request: http::Request<Incoming>| {
        request.extensions_mut().insert(Authorized(Arc::clone(&authorized)));
        inner.call(request.map(Body::new))
    })
}

async fn with_headers(mut response: Response) -> Response {
    let headers = response.headers_mut();
    for (name, value) in [
        (CONTENT_SECURITY_POLICY, POLICY),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (X_FRAME_OPTIONS, "DENY"),
        // Without a referrer, browsers would send a form's origin as `null`.
        (REFERRER_POLICY, "same-origin"),
        (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
        (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    headers.entry(CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    response
}

async fn needs_host(State(site): SiteState, request: Request, next: Next) -> Response {
    match site.address.check_host(request.headers()) {
        Ok(()) => next.run(request).await,
        Err(denied) => forbidden(denied),
    }
}

/// The session of an authorized request.
#[derive(Clone)]
struct RequestSession(Token);

async fn needs_session(State(site): SiteState, mut request: Request, next: Next) -> Response {
    let Some(token) = site.session(request.headers()) else {
        return signed_out(request.headers());
    };
    if let Err(denied) = Address::check_page(request.headers()) {
        return forbidden(denied);
    }
    if let Some(Authorized(authorized)) = request.extensions().get() {
        authorized.notify_one();
    }
    request.extensions_mut().insert(RequestSession(token));
    next.run(request).await
}

fn forbidden(denied: Denied) -> Response {
    problem(StatusCode::FORBIDDEN, denied.sentence())
}

fn signed_out(headers: &HeaderMap) -> Response {
    if headers.contains_key(SCRIPTED) {
        return problem(StatusCode::UNAUTHORIZED, "the session has ended; open a new link");
    }
    html(StatusCode::UNAUTHORIZED, pages::login(Some("You are not signed in.")))
}

fn problem(status: StatusCode, sentence: &str) -> Response {
    (status, [(CONTENT_TYPE, "text/plain; charset=utf-8")], format!("{sentence}\n")).into_response()
}

fn html(status: StatusCode, page: Markup) -> Response {
    (status, [(CONTENT_TYPE, "text/html; charset=utf-8")], page.into_string()).into_response()
}

fn moved(to: &str) -> Response {
    match HeaderValue::from_str(to) {
        Ok(to) => (StatusCode::SEE_OTHER, [(LOCATION, to)]).into_response(),
        Err(_) => problem(StatusCode::BAD_REQUEST, "there is no such page"),
    }
}

fn asset(kind: &'static str, text: &'static str) -> Response {
    ([(CONTENT_TYPE, kind), (CACHE_CONTROL, "no-cache")], text).into_response()
}

async fn login_form() -> Response {
    html(StatusCode::OK, pages::login(None))
}

/// A code in a form opens a session. The answer is a page that redirects by itself: after an HTTP redirect, the browser would
/// treat the next request as coming from the page with the form, and would not send a `SameSite=Strict` cookie.
async fn login(State(site): SiteState, request: Request) -> Response {
    let authorized = request.extensions().get::<Authorized>().cloned();
    let form = match form(request).await {
        Ok(form) => form,
        Err(refused) => return refused,
    };
    let code = form.get("code").unwrap_or_default();
    let Some(token) = site.sessions.open(code.trim()) else {
        let why = "This code has been used, or is older than a minute. Open a new link.";
        return html(StatusCode::FORBIDDEN, pages::login(Some(why)));
    };
    if let Some(Authorized(authorized)) = authorized {
        authorized.notify_one();
    }
    let cookie = format!(
        "{}={}; Path=/; HttpOnly; SameSite=Strict; Max-Age=604800",
        site.address.cookie,
        token.as_str()
    );
    let mut response = html(StatusCode::OK, pages::welcome());
    match HeaderValue::from_str(&cookie) {
        Ok(cookie) => {
            response.headers_mut().insert(SET_COOKIE, cookie);
            response
        }
        Err(_) => problem(StatusCode::INTERNAL_SERVER_ERROR, "the session cannot be opened"),
    }
}

async fn logout(State(site): SiteState, request: Request) -> Response {
    match own_form(&site, request).await {
        Ok(SentForm { token, .. }) => {
            site.sessions.close(&token);
            site.streams.close(&token.csrf());
            html(StatusCode::OK, pages::login(Some("You are signed out.")))
        }
        Err(refused) => refused,
    }
}

/// A form that was submitted from a page of this server.
struct SentForm {
    token: Token,
    form: Form,
    /// The script has sent it, and shows the answer on the page.
    is_scripted: bool,
}

/// Reads a form, and checks that a page of this session has sent it.
async fn own_form(site: &Site, request: Request) -> Result<SentForm, Response> {
    let headers = request.headers().clone();
    let Some(RequestSession(token)) = request.extensions().get().cloned() else {
        return Err(signed_out(&headers));
    };
    let form = form(request).await?;
    site.address.check_change(&headers, &token, form.get("csrf")).map_err(forbidden)?;
    Ok(SentForm { token, form, is_scripted: headers.contains_key(SCRIPTED) })
}

/// Reads a form, within limits for its size and time.
async fn form(request: Request) -> Result<Form, Response> {
    match tokio::time::timeout(SLOWEST_FORM, to_bytes(request.into_body(), LONGEST_FORM)).await {
        Ok(Ok(body)) => Ok(Form::parse(&body)),
        Ok(Err(_)) => Err(problem(StatusCode::PAYLOAD_TOO_LARGE, "the form is too long, or incomplete")),
        Err(_) => Err(problem(StatusCode::REQUEST_TIMEOUT, "the form takes too long")),
    }
}

async fn front(State(site): SiteState) -> Response {
    match &site.home {
        Some(project) => moved(&format!("/p/{project}/")),
        None => moved("/projects"),
    }
}

async fn projects(
    State(site): SiteState,
    axum::Extension(RequestSession(token)): axum::Extension<RequestSession>,
) -> Response {
    let all = site.hub.projects();
    let Ok(rows) = tokio::task::spawn_blocking(move || all.list()).await else {
        return problem(StatusCode::INTERNAL_SERVER_ERROR, "the projects cannot be listed");
    };
    let summaries = rows.iter().map(|row| async {
        if row.closed.is_some() {
            return ProjectSummary::Closed;
        }
        let asked = site.hub.ask(&row.slug, |handler| handler.board(&pages::summary_query()));
        match tokio::time::timeout(SUMMARY_PATIENCE, asked).await {
            Ok(Ok(board)) => ProjectSummary::Open(Box::new(board)),
            Ok(Err(refusal)) => ProjectSummary::Unreachable(refusal.message),
            Err(_) => ProjectSummary::Unreachable("it does not answer".to_owned()),
        }
    });
    let summaries = futures::future::join_all(summaries).await;
    let around = site.around(&token, None);
    html(StatusCode::OK, pages::projects(&around, rows.iter().zip(summaries).collect()))
}

type Params = Query<HashMap<String, String>>;

/// Renders a page of a project on the project's thread.
async fn show(site: &Site, token: &Token, project: &str, view: View) -> Response {
    let around = site.around(token, Some(project));
    let key = format!("{project} {} {view:?}", around.csrf);
    let version = site.hub.version(project);
    if let Some(page) = site.cached(project, &key) {
        return page_response(&page);
    }
    let rendered = site.hub.ask(project, move |handler| pages::render(handler, &around, &view)).await;
    match rendered {
        Ok(page) => {
            let page: Arc<str> = page.into();
            site.keep(version, key, &page);
            page_response(&page)
        }
        Err(refusal) => {
            let around = site.around(token, Some(project));
            html(status_of(refusal.code), pages::refused(&around, &refusal))
        }
    }
}

fn page_response(page: &str) -> Response {
    ([(CONTENT_TYPE, "text/html; charset=utf-8")], page.to_owned()).into_response()
}

async fn board(
    State(site): SiteState,
    axum::Extension(RequestSession(token)): axum::Extension<RequestSession>,
    Path(project): Path<String>,
    Query(params): Params,
) -> Response {
    show(&site, &token, &project, View::board(&params)).await
}

async fn task(
    State(site): SiteState,
    axum::Extension(RequestSession(token)): axum::Extension<RequestSession>,
    Path((project, task)): Path<(String, String)>,
) -> Response {
    show(&site, &token, &project, View::Task(task)).await
}

async fn list(
    State(site): SiteState,
    axum::Extension(RequestSession(token)): axum::Extension<RequestSession>,
    Path((project, list)): Path<(String, String)>,
) -> Response {
    match View::list(&list) {
        Some(view) => show(&site, &token, &project, view).await,
        None => problem(StatusCode::NOT_FOUND, "there is no such page"),
    }
}

async fn changes(
    State(site): SiteState,
    axum::Extension(RequestSession(token)): axum::Extension<RequestSession>,
    Path(project): Path<String>,
    Query(params): Params,
    headers: HeaderMap,
) -> Response {
    if let Err(denied) = Address::check_stream(&headers) {
        return forbidden(denied);
    }
    let Some(closed) = site.streams.register(&token.csrf()) else {
        return problem(StatusCode::SERVICE_UNAVAILABLE, "too many pages are open");
    };
    match site.hub.watch(&project) {
        Ok(watcher) => {
            let find_log = params.get("task").map(|task| find_log(&site, &project, task));
            let events = streams::events(watcher, closed, find_log);
            Sse::new(events).keep_alive(KeepAlive::default()).into_response()
        }
        Err(refusal) => problem(status_of(refusal.code), &refusal.message),
    }
}

/// Finds the log of a task's running attempt.
fn find_log(site: &Arc<Site>, project: &str, task: &str) -> FindLog {
    let (site, project, task) = (Arc::clone(site), project.to_owned(), task.to_owned());
    Box::new(move || {
        let (site, project, task) = (Arc::clone(&site), project.clone(), task.clone());
        async move {
            let asked = site.hub.ask(&project, move |handler| handler.live_log(&task));
            asked.await.ok().flatten()
        }
        .boxed()
    })
}

async fn change(
    State(site): SiteState,
    Path((project, verb)): Path<(String, String)>,
    request: Request,
) -> Response {
    let SentForm { token, form, is_scripted } = match own_form(&site, request).await {
        Ok(sent) => sent,
        Err(refused) => return refused,
    };
    if site.read_only {
        return problem(StatusCode::FORBIDDEN, "this server was started with --read-only");
    }
    let done = match form.action(&verb) {
        Ok(Some(action)) => act(&site, &project, action).await,
        Ok(None) => return problem(StatusCode::NOT_FOUND, "there is no such verb"),
        Err(refusal) => Err(refusal),
    };
    match done {
        Ok(sentence) if is_scripted => {
            ([(CONTENT_TYPE, "application/json")], json!({"message": sentence}).to_string()).into_response()
        }
        Ok(_) => moved(form.back()),
        Err(refusal) if is_scripted => {
            let body = json!({"message": refusal.message, "code": refusal.code.as_str(), "context": refusal.context});
            (status_of(refusal.code), [(CONTENT_TYPE, "application/json")], body.to_string()).into_response()
        }
        Err(refusal) => {
            let around = site.around(&token, Some(&project));
            html(status_of(refusal.code), pages::refused(&around, &refusal))
        }
    }
}

async fn act(site: &Site, project: &str, action: Action) -> Result<String, Refusal> {
    let done = if action.is_apart() {
        let (all, project) = (site.hub.projects(), project.to_owned());
        let acted = tokio::task::spawn_blocking(move || all.act_apart(&project, &action)).await;
        acted.unwrap_or_else(|_| Err(Refusal::new(ErrorCode::General, "the server is closing")))
    } else {
        site.hub.ask(project, move |handler| handler.act(&action)).await
    };
    site.hub.changed(project);
    done
}

/// `/metrics` of the server's project, or of all.
async fn numbers(State(site): SiteState, request: Request) -> Response {
    let headers = request.headers();
    if let Err(denied) = site.address.check_numeric_host(headers) {
        return forbidden(denied);
    }
    if !has_token(headers, &site.metrics_token) {
        let mut reply = problem(StatusCode::UNAUTHORIZED, "the token is missing or wrong");
        reply.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        return reply;
    }
    if let Some(Authorized(authorized)) = request.extensions().get() {
        authorized.notify_one();
    }
    let projects = match &site.home {
        Some(project) => vec![project.clone()],
        None => {
            let all = site.hub.projects();
            let rows = tokio::task::spawn_blocking(move || all.list()).await.unwrap_or_default();
            rows.into_iter().filter(|row| row.closed.is_none()).map(|row| row.slug).collect()
        }
    };
    let asked = projects.iter().map(|project| site.hub.ask(project, |handler| handler.metrics()));
    let answers = futures::future::join_all(asked).await;
    // A project that cannot be read is left out.
    let with_id = |(id, answer): (&String, Result<Metrics, Refusal>)| {
        answer.ok().map(|found| Metrics { id: id.clone(), ..found })
    };
    let found: Vec<_> = projects.iter().zip(answers).filter_map(with_id).collect();
    ([(CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], metrics::render(&found)).into_response()
}

fn status_of(code: ErrorCode) -> StatusCode {
    match code.exit_code() {
        2 if code == ErrorCode::InvalidTransition => StatusCode::CONFLICT,
        3 if code == ErrorCode::NotInitialized => StatusCode::NOT_FOUND,
        2 => StatusCode::BAD_REQUEST,
        4 => StatusCode::NOT_FOUND,
        5 => StatusCode::FORBIDDEN,
        6 | 8 | 10 => StatusCode::CONFLICT,
        _ => StatusCode::SERVICE_UNAVAILABLE,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_script_is_small_and_nothing_is_loaded_from_elsewhere() {
        assert!(SCRIPT.len() <= 10 * 1024, "{} bytes", SCRIPT.len());
        for text in [SCRIPT, STYLE, ICON] {
            let elsewhere = text.replace("http://www.w3.org/2000/svg", "");
            assert!(
                !elsewhere.contains("http:")
                    && !elsewhere.contains("https:")
                    && !elsewhere.contains("@import")
            );
        }
        for danger in ["innerHTML", "outerHTML", "insertAdjacentHTML", "eval(", "document.write"] {
            assert!(!SCRIPT.contains(danger), "{danger}");
        }
    }
}
