//! Other systems: only an idle connection is checked; data that is not acknowledged is sent again for minutes.

use std::io;
use std::time::Duration;

use rustix::net::sockopt;
use tokio::net::TcpStream;

/// Lets the system close an idle connection if the peer is silent for some multiple of this time.
pub(crate) fn notice_silence(stream: &TcpStream, limit: Duration) -> io::Result<()> {
    sockopt::set_socket_keepalive(stream, true)?;
    sockopt::set_tcp_keepidle(stream, limit)?;
    Ok(sockopt::set_tcp_keepintvl(stream, limit / 4)?)
}
