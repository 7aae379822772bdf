//! Addresses that only this machine can reach, for servers.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// `ADDRESS:PORT`, or a port alone.
pub(crate) fn parse_address(text: &str) -> Result<SocketAddr, String> {
    let address = match text.parse::<u16>() {
        Ok(port) => SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port),
        Err(_) => text
            .replacen("localhost:", "127.0.0.1:", 1)
            .parse()
            .map_err(|_| "write it as 127.0.0.1:7077, or a port alone".to_owned())?,
    };
    if address.ip().is_loopback() {
        Ok(address)
    } else {
        Err("only this machine may connect: 127.0.0.1, [::1] or localhost".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::parse_address;

    #[test]
    fn only_loopback_addresses_are_taken() {
        for good in ["0", "7077", "127.0.0.1:1", "127.1.2.3:1", "[::1]:7077", "localhost:7077"] {
            assert!(parse_address(good).is_ok(), "{good}");
        }
        for bad in ["", "0.0.0.0:7077", "[::]:7077", "192.168.0.1:80", "example.org:80", "127.0.0.1", "70777"]
        {
            assert!(parse_address(bad).is_err(), "{bad}");
        }
    }
}
