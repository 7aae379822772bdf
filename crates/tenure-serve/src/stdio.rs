//! One client, the parent process: one message per line on standard input and output.
//!
//! Guaranteed: at most [`MOST_IN_FLIGHT`] requests are in progress; while a client sends more, or does not read the answers,
//! the server does not read from it. A line that is not a message is answered with an error that carries its id, if it has
//! one. The server ends when its input ends, when a signal asks it to, and when its parent dies, even if another process
//! still holds the pipes open.

use std::collections::HashSet;
use std::io::{self, BufReader, Write};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use rmcp::RoleServer;
use rmcp::model::{
    ClientJsonRpcMessage, ClientNotification, ClientRequest, ErrorCode, ErrorData, JsonRpcMessage, RequestId,
    ServerJsonRpcMessage,
};
use rmcp::transport::Transport;
use serde_json::Value;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use crate::connection::{Connection, Shared, end};
use crate::lines::{self, LONGEST, Line};
use crate::parent::parent_died;
use crate::session::lock;
use crate::sys::asked_to_stop;

/// How many requests may be in progress at a time.
const MOST_IN_FLIGHT: usize = 64;
/// Capacity of the channels between the threads.
const CHANNEL: usize = 16;
/// How long the server waits, before it ends, for the client to read the last answer.
const LAST_WRITE: Duration = Duration::from_secs(1);

/// Serves one client until it disconnects or the process is asked to stop.
pub(crate) async fn serve(shared: Arc<Shared>) -> io::Result<()> {
    let stop = CancellationToken::new();
    let (transport, waits) = (Stdio::open(shared.shutdown.clone())?, shared.shutdown.clone());
    let cancelled = stop.clone();
    let watch = tokio::spawn(async move {
        tokio::select! {
            () = asked_to_stop() => {}
            () = parent_died() => {}
        }
        waits.cancel();
        cancelled.cancel();
    });
    let connection = Connection::new(&shared);
    let session = Arc::clone(&connection.session);
    if let Ok(running) = rmcp::service::serve_server_with_ct(connection, transport, stop).await {
        let _ = running.waiting().await;
    }
    watch.abort();
    shared.shutdown.cancel();
    let leases = Arc::clone(&shared.leases);
    shared.queue.ask(move |handler| end(handler, &leases, &session)).await;
    Ok(())
}

/// Requests that were read and are not answered yet.
#[derive(Debug, Default)]
struct InFlight {
    ids: Mutex<HashSet<RequestId>>,
    fewer: Condvar,
}

impl InFlight {
    fn begin(&self, id: RequestId) {
        let mut ids = lock(&self.ids);
        while ids.len() >= MOST_IN_FLIGHT {
            ids = self.fewer.wait(ids).unwrap_or_else(PoisonError::into_inner);
        }
        ids.insert(id);
    }

    fn done(&self, id: &RequestId) {
        if lock(&self.ids).remove(id) {
            self.fewer.notify_one();
        }
    }
}

/// A line to write, the request that it answers, and a channel that reports when it is written.
#[derive(Debug, Default)]
struct Outgoing {
    line: Vec<u8>,
    answers: Option<RequestId>,
    written: Option<oneshot::Sender<()>>,
}

/// Reads and writes on two threads, because standard input may be a file or a terminal, which cannot be polled.
#[derive(Debug)]
struct Stdio {
    incoming: mpsc::Receiver<ClientJsonRpcMessage>,
    outgoing: Option<mpsc::Sender<Outgoing>>,
}

impl Stdio {
    /// `disconnected` is cancelled when the client has closed its end.
    fn open(disconnected: CancellationToken) -> io::Result<Self> {
        let in_flight = Arc::new(InFlight::default());
        let (send, incoming) = mpsc::channel(CHANNEL);
        let (outgoing, to_write) = mpsc::channel(CHANNEL);
        let reader = Reader { in_flight: Arc::clone(&in_flight), send, replies: outgoing.clone() };
        let closed = disconnected.clone();
        std::thread::Builder::new().name("mcp-read".into()).spawn(move || {
            reader.run();
            closed.cancel();
        })?;
        std::thread::Builder::new().name("mcp-write".into()).spawn(move || {
            write_all(to_write, &in_flight);
            disconnected.cancel();
        })?;
        Ok(Self { incoming, outgoing: Some(outgoing) })
    }
}

fn write_all(mut lines: mpsc::Receiver<Outgoing>, in_flight: &InFlight) {
    let mut stdout = io::stdout().lock();
    while let Some(next) = lines.blocking_recv() {
        if stdout.write_all(&next.line).and_then(|()| stdout.flush()).is_err() {
            return;
        }
        if let Some(id) = next.answers {
            in_flight.done(&id);
        }
        if let Some(written) = next.written {
            let _ = written.send(());
        }
    }
}

#[derive(Debug)]
struct Reader {
    in_flight: Arc<InFlight>,
    send: mpsc::Sender<ClientJsonRpcMessage>,
    replies: mpsc::Sender<Outgoing>,
}

impl Reader {
    fn run(self) {
        let mut input = BufReader::with_capacity(64 * 1024, io::stdin().lock());
        while let Ok(Some(line)) = lines::next(&mut input, LONGEST) {
            let continues = match line {
                Line::Whole(line) => match read(&line) {
                    Ok(message) => self.pass_on(message),
                    Err(InvalidMessage { id: None, .. }) => true,
                    Err(InvalidMessage { error, id: Some(id) }) => self.reply(&error, &id),
                },
                Line::TooLong(id) => {
                    let error = ErrorData::invalid_request(
                        format!("the message is too long; {} MiB are the most", LONGEST >> 20),
                        None,
                    );
                    let id = id.and_then(|id| serde_json::from_slice(&id).ok()).unwrap_or(Value::Null);
                    self.reply(&error, &id)
                }
            };
            if !continues {
                return;
            }
        }
    }

    fn pass_on(&self, message: ClientJsonRpcMessage) -> bool {
        match &message {
            JsonRpcMessage::Request(request) => self.in_flight.begin(request.id.clone()),
            // A cancelled request is not answered.
            JsonRpcMessage::Notification(notification) => {
                if let ClientNotification::CancelledNotification(cancelled) = &notification.notification
                    && let Some(id) = &cancelled.params.request_id
                {
                    self.in_flight.done(id);
                }
            }
            _ => {}
        }
        self.send.blocking_send(message).is_ok()
    }

    fn reply(&self, error: &ErrorData, id: &Value) -> bool {
        let error = serde_json::json!({"jsonrpc": "2.0", "id": id, "error": error});
        let line = format!("{error}\n").into_bytes();
        self.replies.blocking_send(Outgoing { line, ..Outgoing::default() }).is_ok()
    }
}

/// A line that is not a valid message. `id` is `None` for a notification, which is not answered.
#[derive(Debug)]
struct InvalidMessage {
    error: Box<ErrorData>,
    id: Option<Value>,
}

fn read(line: &[u8]) -> Result<ClientJsonRpcMessage, InvalidMessage> {
    let invalid = |value: &Value, error: ErrorData| {
        let id = value.get("id").filter(|id| id.is_string() || id.is_number()).cloned();
        // The protocol asks servers to ignore unknown notifications.
        let is_notification = id.is_none() && value.get("method").is_some();
        let id = if is_notification { None } else { Some(id.unwrap_or(Value::Null)) };
        Err(InvalidMessage { error: Box::new(error), id })
    };
    match serde_json::from_slice::<ClientJsonRpcMessage>(line) {
        Ok(JsonRpcMessage::Request(request)) => match &request.request {
            // A method of the protocol whose parameters could not be parsed.
            ClientRequest::CustomRequest(custom) if is_known(&custom.method) => {
                let value = serde_json::from_slice(line).unwrap_or(Value::Null);
                invalid(
                    &value,
                    ErrorData::invalid_params(
                        format!("the parameters of {} do not fit", custom.method),
                        None,
                    ),
                )
            }
            _ => Ok(JsonRpcMessage::Request(request)),
        },
        Ok(message) => Ok(message),
        Err(wrong) => match serde_json::from_slice::<Value>(line) {
            Err(_) => {
                let message = format!("this is not JSON: {wrong}");
                let error = Box::new(ErrorData::new(ErrorCode::PARSE_ERROR, message, None));
                Err(InvalidMessage { error, id: Some(Value::Null) })
            }
            Ok(value) => {
                invalid(&value, ErrorData::invalid_request("this is not a message of the protocol", None))
            }
        },
    }
}

fn is_known(method: &str) -> bool {
    matches!(
        method,
        "initialize"
            | "tools/call"
            | "tools/list"
            | "resources/list"
            | "resources/read"
            | "resources/templates/list"
    )
}

impl Transport<RoleServer> for Stdio {
    type Error = io::Error;

    fn send(
        &mut self,
        item: ServerJsonRpcMessage,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        let outgoing = self.outgoing.clone();
        async move {
            let closed = || io::Error::from(io::ErrorKind::BrokenPipe);
            let answers = match &item {
                JsonRpcMessage::Response(response) => Some(response.id.clone()),
                JsonRpcMessage::Error(error) => error.id.clone(),
                _ => None,
            };
            let mut line = serde_json::to_vec(&item).map_err(io::Error::other)?;
            line.push(b'\n');
            let outgoing = outgoing.ok_or_else(closed)?;
            outgoing.send(Outgoing { line, answers, ..Outgoing::default() }).await.map_err(|_| closed())
        }
    }

    async fn receive(&mut self) -> Option<ClientJsonRpcMessage> {
        self.incoming.recv().await
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        // The process and its threads may end after this, so the queued answers are written first.
        if let Some(outgoing) = self.outgoing.take() {
            let (written, done) = oneshot::channel();
            let last = Outgoing { written: Some(written), ..Outgoing::default() };
            let _ = tokio::time::timeout(LAST_WRITE, async {
                if outgoing.send(last).await.is_ok() {
                    let _ = done.await;
                }
            })
            .await;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_message_is_answered_under_its_id_and_notifications_are_not() {
        let answer = |line: &str| {
            read(line.as_bytes()).map(drop).map_err(|invalid| (invalid.error.code.0, invalid.id))
        };
        assert_eq!(answer("{"), Err((-32700, Some(Value::Null))));
        assert_eq!(answer("[]"), Err((-32600, Some(Value::Null))));
        assert_eq!(answer("17"), Err((-32600, Some(Value::Null))));
        assert_eq!(answer(r#"{"id": 3}"#), Err((-32600, Some(3.into()))));
        let invalid = r#"{"jsonrpc":"2.0","id":"a","method":"tools/call","params":{"name":5}}"#;
        assert_eq!(answer(invalid), Err((-32602, Some("a".into()))));
        let fine = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"explain"}}"#;
        assert_eq!(answer(fine), Ok(()));
        let unknown = r#"{"jsonrpc":"2.0","id":1,"method":"no/such","params":{}}"#;
        assert_eq!(answer(unknown), Ok(()), "the protocol's own answer");
        let notice = r#"{"jsonrpc":"1.0","method":"notifications/odd"}"#;
        assert!(matches!(answer(notice), Ok(()) | Err((_, None))));
    }
}
