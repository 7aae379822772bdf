//! Leaving one's caller behind: a session of one's own, and none of its open files.

/// Becomes a session of its own and closes every inherited descriptor but the standard three.
///
/// To be called first of all: whatever was opened before is closed with the rest.
pub fn detach() {
    // Refused only to the leader of a group, which nobody is who was just started.
    let _ = rustix::process::setsid();
    let Ok(entries) = std::fs::read_dir("/dev/fd") else { return };
    let open: Vec<i32> = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).collect();
    for descriptor in open.into_iter().filter(|number| *number > 2) {
        // The listing's own is among them and is closed by now.
        let _ = nix::unistd::close(descriptor);
    }
}
