//! The MCP server of one connection: tools and resources, executed by the request handler.

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, ErrorData, Implementation, ListResourceTemplatesResult,
    ListResourcesResult, ListToolsResult, PaginatedRequestParams, ProtocolVersion, ReadResourceRequestParams,
    ReadResourceResponse, ReadResourceResult, ResourceContents, ServerCapabilities, ServerConfig, Tool,
};
use rmcp::service::RequestContext;
use rmcp::{RoleServer, ServerHandler};
use serde_json::json;
use tenure_lock::BootTime;
use tokio_util::sync::CancellationToken;

use crate::answer;
use crate::call::{self, Call, ToolRequest};
use crate::client_leases::ClientLeases;
use crate::pages::{self, Page};
use crate::request_handler::{Effect, Refusal, Reply, RequestHandler, RequestQueue};
use crate::session::{Roster, Session};
use crate::tools;

const INSTRUCTIONS: &str = include_str!("instructions.md");

/// State that all connections share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) queue: RequestQueue,
    pub(crate) leases: Arc<ClientLeases>,
    pub(crate) roster: Arc<Roster>,
    /// Cancelled when the server ends; this ends every wait.
    pub(crate) shutdown: CancellationToken,
    pub(crate) numbers: AtomicU64,
    /// Whether clients are identified by protocol sessions, which the newest protocol version does not have.
    pub(crate) by_session: bool,
}

impl Shared {
    pub(crate) fn number(&self) -> u64 {
        self.numbers.fetch_add(1, Ordering::Relaxed)
    }
}

#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) shared: Arc<Shared>,
    pub(crate) session: Arc<Session>,
}

impl Connection {
    pub(crate) fn new(shared: &Arc<Shared>) -> Self {
        Self { shared: Arc::clone(shared), session: shared.roster.enter(shared.number()) }
    }
}

/// The client has disconnected: stops the renewals of its leases and ends its session.
pub(crate) fn end(handler: &mut dyn RequestHandler, leases: &ClientLeases, session: &Session) {
    if session.end() {
        let held = leases.take(session);
        handler.end(session, held);
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        let (leases, roster) = (Arc::clone(&self.shared.leases), Arc::clone(&self.shared.roster));
        let session = Arc::clone(&self.session);
        self.shared.queue.post(move |handler| {
            end(handler, &leases, &session);
            roster.leave(&session);
        });
    }
}

/// Starts the renewal of a lease that a request sent at `asked` was granted, or stops that of a lease that it
/// has ended.
pub(crate) fn apply_effect(leases: &ClientLeases, session: &Arc<Session>, effect: &Effect, asked: BootTime) {
    match effect {
        Effect::Nothing => {}
        Effect::Holds { task, lease, reacquired } => {
            session.note_grant(lease);
            leases.keep(session, task.clone(), lease.as_ref().clone(), *reacquired, asked);
        }
        Effect::Ended(fence) => {
            session.forget_grant(*fence);
            leases.forget(*fence);
        }
    }
}

/// Registers the session's agent at its first call. A call that only reads works without one.
pub(crate) fn join(
    handler: &mut dyn RequestHandler,
    session: &Session,
    client: &str,
    reads: bool,
) -> Result<(), Refusal> {
    if session.has_ended() {
        return Err(Refusal::new(tenure_core::ErrorCode::General, "this session is over"));
    }
    match session.join(handler, client) {
        // Reading works even if the project cannot be written.
        Err(_) if reads => Ok(()),
        joined => joined,
    }
}

pub(crate) fn client_of(context: &RequestContext<RoleServer>) -> String {
    context.client_info().map_or_else(|| "client".to_owned(), |info| info.name)
}

fn only_reads(call: &Call) -> bool {
    matches!(call, Call::GetStatus(_) | Call::ListTasks(_) | Call::GetTask(_) | Call::Explain(_))
}

fn closing() -> ErrorData {
    ErrorData::internal_error("the server is shutting down", None)
}

impl ServerHandler for Connection {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder().enable_tools().enable_resources().build();
        let version = self.newest_version();
        ServerConfig::new(capabilities)
            .with_server_info(Implementation::new("tenure", env!("CARGO_PKG_VERSION")))
            .with_instructions(INSTRUCTIONS)
            .with_protocol_version(version)
    }

    fn supported_protocol_versions(&self) -> Cow<'static, [ProtocolVersion]> {
        Cow::Borrowed(ProtocolVersion::known_up_to(&self.newest_version()))
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(tools::all()))
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        tools::all().into_iter().find(|tool| tool.name == name)
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let Some(tool_request) = call::read(&request.name, request.arguments) else {
            let name = answer::shortened(&request.name);
            return Err(ErrorData::invalid_params(format!("there is no tool {name:?}"), None));
        };
        let outcome = match tool_request {
            // This is an answer and not a protocol error, so that the model can correct its arguments.
            Err(wrong) => Err(Refusal::invalid(format!("the arguments do not fit: {wrong}"))),
            Ok(ToolRequest::Call(call)) => {
                self.answer(call, client_of(&context)).await.ok_or_else(closing)?
            }
            Ok(ToolRequest::Claim(claim)) => self.claim(claim, &context).await.ok_or_else(closing)?,
        };
        Ok(answer::result(outcome, self.session.take_losses()).into())
    }

    async fn list_resources(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        Ok(ListResourcesResult::with_all_items(pages::all()))
    }

    async fn list_resource_templates(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        Ok(ListResourceTemplatesResult::with_all_items(pages::templates()))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let uri = request.uri;
        let missing = |why: &str| ErrorData::resource_not_found(why.to_owned(), None);
        let Some(page) = Page::of(&uri) else { return Err(missing("there is no such resource")) };
        let mime_type = page.mime_type();
        let session = Arc::clone(&self.session);
        let read =
            self.shared.queue.ask(move |handler| handler.read(&session, &page)).await.ok_or_else(closing)?;
        match read {
            Ok(text) => {
                let contents = ResourceContents::text(text, uri).with_mime_type(mime_type);
                Ok(ReadResourceResult::new(vec![contents]).into())
            }
            Err(refusal) => {
                let data = Some(json!({"code": refusal.code.as_str(), "details": refusal.details}));
                let message = answer::shortened(&refusal.message);
                Err(match refusal.code.exit_code() {
                    2 | 4 => ErrorData::resource_not_found(message, data),
                    _ => ErrorData::internal_error(message, data),
                })
            }
        }
    }
}

impl Connection {
    /// Over HTTP a client is identified by its session, so only protocol versions with sessions are offered.
    fn newest_version(&self) -> ProtocolVersion {
        if self.shared.by_session { ProtocolVersion::LATEST_WITH_INITIALIZE } else { ProtocolVersion::LATEST }
    }

    async fn answer(&self, call: Call, client: String) -> Option<Result<Reply, Refusal>> {
        let (leases, session) = (Arc::clone(&self.shared.leases), Arc::clone(&self.session));
        let request = move |handler: &mut dyn RequestHandler| {
            let _span = tracing::debug_span!("call", ?call, client).entered();
            join(handler, &session, &client, only_reads(&call))?;
            let asked = BootTime::now();
            let reply = handler.answer(&session, &call)?;
            apply_effect(&leases, &session, &reply.effect, asked);
            Ok(reply)
        };
        self.shared.queue.ask(request).await
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_instructions_are_short_and_name_only_tools_that_exist() {
        let text = super::INSTRUCTIONS;
        assert!(text.len() < 2048, "{}", text.len());
        let names: Vec<_> = crate::tools::all().into_iter().map(|tool| tool.name).collect();
        for word in text
            .split('`')
            .skip(1)
            .step_by(2)
            .filter(|w| w.contains('_') && w.starts_with(char::is_lowercase))
        {
            assert!(names.iter().any(|name| name == word), "{word}");
        }
        assert!(!text.contains("force"));
    }
}
