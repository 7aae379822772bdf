//! Identifies this machine and its current boot.
//!
//! Guarantees: host id and boot id are constant for the lifetime of a process, and the host id never depends on the
//! hostname.
//! Does not guarantee that the host id is unique among machines cloned from one image including their machine id.

use std::sync::OnceLock;

use crate::sys;

/// The hostname, for display and for files that record nothing better; empty if the system has none. Read on every
/// call, because a hostname can change.
pub fn hostname() -> String {
    sys::process::hostname()
}

/// The machine id: `/etc/machine-id` or D-Bus's copy of it on Linux, the platform UUID on macOS, `MachineGuid` on
/// Windows.
///
/// If there is none (as in many container images), it is `boot:` and the boot id: equal for all processes of one
/// boot, so that a death can be proven, and different after a reboot, so that no process is declared dead by mistake.
/// Empty if there is no boot id either.
pub fn host_id() -> String {
    static HOST_ID: OnceLock<String> = OnceLock::new();
    HOST_ID.get_or_init(|| choose_host_id(sys::process::machine_id(), sys::process::boot_id())).clone()
}

/// The current boot of this machine, or an empty string if the system has no boot id.
///
/// Windows has none; there it identifies the machine, which suffices because start times are absolute there.
pub fn boot_id() -> String {
    static BOOT_ID: OnceLock<String> = OnceLock::new();
    BOOT_ID.get_or_init(|| sys::process::boot_id().unwrap_or_default()).clone()
}

fn choose_host_id(machine_id: Option<String>, boot_id: Option<String>) -> String {
    match (machine_id, boot_id) {
        (Some(machine), _) => machine,
        (None, Some(boot)) => format!("boot:{boot}"),
        (None, None) => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_machine_id_the_boot_names_the_host() {
        assert_eq!(choose_host_id(Some("m".into()), Some("b".into())), "m");
        assert_eq!(choose_host_id(None, Some("b".into())), "boot:b");
        assert_eq!(choose_host_id(None, None), "");
    }
}
