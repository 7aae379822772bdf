//! Accepts connections from HTTP clients, within limits.
//!
//! Guaranteed: a connection counts as a newcomer until its first authorized request. Newcomers have a small pool and little time, so
//! programs without a credential can keep clients out only briefly. A connection is accepted only with a permit; further ones
//! wait in the kernel's backlog.

use std::convert::Infallible;
use std::error::Error;
use std::io;
use std::net::TcpListener;
use std::sync::Arc;
use std::time::Duration;

use futures::future::select_all;
use http::{Request, Response};
use hyper::body::{Body, Incoming};
use hyper::server::conn::http1;
use hyper::service::HttpService;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::sync::{Notify, Semaphore};

use crate::sys::asked_to_stop;

const SLOWEST_HEAD: Duration = Duration::from_secs(30);

/// How many clients may be connected, and how long they may take to present a credential.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// Connections with an authorized request.
    pub(crate) connections: usize,
    pub(crate) newcomers: usize,
    pub(crate) newcomer_time: Duration,
}

/// Serves the connections of all listeners, of which there must be at least one, until the process is asked to stop. `service`
/// creates the service of one connection, which notifies its argument when a request is authorized.
pub(crate) async fn serve<S, B>(
    listeners: Vec<TcpListener>,
    limits: Limits,
    service: impl Fn(Arc<Notify>) -> S,
) -> io::Result<()>
where
    S: HttpService<Incoming, ResBody = B, Error = Infallible> + Send + 'static,
    S: hyper::service::Service<Request<Incoming>, Response = Response<B>, Error = Infallible>,
    <S as hyper::service::Service<Request<Incoming>>>::Future: Send,
    <S as HttpService<Incoming>>::Future: Send,
    B: Body + Send + 'static,
    B::Data: Send,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    let listeners = listeners.into_iter().map(|listener| {
        listener.set_nonblocking(true)?;
        tokio::net::TcpListener::from_std(listener)
    });
    let listeners = listeners.collect::<io::Result<Vec<_>>>()?;
    let connections = Arc::new(Semaphore::new(limits.connections));
    let newcomers = Arc::new(Semaphore::new(limits.newcomers));
    let stop = asked_to_stop();
    tokio::pin!(stop);
    loop {
        let newcomer = tokio::select! {
            permit = Arc::clone(&newcomers).acquire_owned() => match permit {
                Ok(permit) => permit,
                Err(_) => break,
            },
            () = &mut stop => break,
        };
        let stream = tokio::select! {
            (accepted, ..) = select_all(listeners.iter().map(|listener| Box::pin(listener.accept()))) => match accepted {
                Ok((stream, _)) => stream,
                // There are no free descriptors, or the client has already closed the connection.
                Err(_) => {
                    tokio::time::sleep(Duration::from_millis(50)).await;
                    continue;
                }
            },
            () = &mut stop => break,
        };
        let _ = stream.set_nodelay(true);
        let connections = Arc::clone(&connections);
        let authorized = Arc::new(Notify::new());
        let service = service(Arc::clone(&authorized));
        tokio::spawn(async move {
            let mut http = http1::Builder::new();
            http.timer(TokioTimer::new()).header_read_timeout(SLOWEST_HEAD);
            let connection = http.serve_connection(TokioIo::new(stream), service);
            tokio::pin!(connection);
            tokio::select! {
                _ = &mut connection => return,
                () = tokio::time::sleep(limits.newcomer_time) => return,
                () = authorized.notified() => {}
            }
            let Ok(_permit) = connections.acquire_owned().await else { return };
            drop(newcomer);
            let _ = connection.await;
        });
    }
    Ok(())
}
