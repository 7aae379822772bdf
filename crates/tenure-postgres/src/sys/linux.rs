//! Linux: a peer that does not acknowledge data is noticed too.

use std::io;
use std::time::Duration;

use rustix::net::sockopt;
use tokio::net::TcpStream;

/// Lets the system close the connection if the peer is silent for about this long.
pub(crate) fn notice_silence(stream: &TcpStream, limit: Duration) -> io::Result<()> {
    sockopt::set_socket_keepalive(stream, true)?;
    sockopt::set_tcp_keepidle(stream, limit)?;
    sockopt::set_tcp_keepintvl(stream, limit / 4)?;
    let millis = u32::try_from(limit.as_millis()).unwrap_or(u32::MAX);
    Ok(sockopt::set_tcp_user_timeout(stream, millis)?)
}
