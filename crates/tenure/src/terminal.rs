//! The controlling terminal of this process.

/// Its name, such as `pts/3` or `tty1`. Read from `/proc` if possible, because all standard streams may be pipes.
pub(crate) fn controlling() -> Option<String> {
    from_proc().or_else(from_streams)
}

fn from_proc() -> Option<String> {
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    // The command name may contain spaces and parentheses, so the fields are read after the last parenthesis.
    let number: u64 = stat.rsplit_once(')')?.1.split_whitespace().nth(4)?.parse().ok()?;
    let major = (number >> 8) & 0xfff;
    let minor = (number & 0xff) | ((number >> 12) & 0xfff00);
    match major {
        136..=143 => Some(format!("pts/{}", (major - 136) * 256 + minor)),
        4 if minor < 64 => Some(format!("tty{minor}")),
        4 => Some(format!("ttyS{}", minor - 64)),
        _ => None,
    }
}

/// The fallback for systems without `/proc`.
fn from_streams() -> Option<String> {
    if cfg!(target_os = "linux") {
        return None;
    }
    let name = rustix::termios::ttyname(std::io::stdin(), Vec::new()).ok()?;
    let name = name.to_str().ok()?;
    Some(name.strip_prefix("/dev/").unwrap_or(name).to_owned())
}
