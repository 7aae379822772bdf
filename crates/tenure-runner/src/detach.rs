//! Detaches a process from its caller: a new session, without inherited files.

/// The variable for a process that does not belong to the attempt in which it was started and must survive it. Without the
/// variable, it would belong to the attempt as a descendant of its processes.
pub const NO_ATTEMPT: (&str, &str) = ("TENURE_ATTEMPT", "");

/// Starts a new session and closes every inherited descriptor except for the standard three.
///
/// Must be called first: it also closes everything opened before.
pub fn detach() {
    // `setsid` fails only for a process-group leader; a freshly spawned process is not one.
    let _ = rustix::process::setsid();
    let Ok(entries) = std::fs::read_dir("/dev/fd") else { return };
    let open: Vec<i32> = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).collect();
    for descriptor in open.into_iter().filter(|number| *number > 2) {
        // Includes the descriptor of the listing itself, which is already closed.
        let _ = nix::unistd::close(descriptor);
    }
}
