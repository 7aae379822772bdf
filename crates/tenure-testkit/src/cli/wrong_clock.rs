//! The program `faketime`, which gives a process a wrong wall clock.

use std::fs;
use std::path::Path;
use std::process::Command;

/// The command `faketime`, without arguments. A killed `faketime` leaves shared memory named after its pid behind, and a
/// later one with the same pid would fail. So the shared memory of dead processes is removed first.
pub fn faketime() -> Command {
    for entry in fs::read_dir("/dev/shm").into_iter().flatten().flatten() {
        let name = entry.file_name();
        let pid = ["sem.faketime_sem_", "faketime_shm_"]
            .into_iter()
            .find_map(|prefix| name.to_str()?.strip_prefix(prefix)?.parse::<u32>().ok());
        if pid.is_some_and(|pid| !Path::new("/proc").join(pid.to_string()).exists()) {
            // Another test may have removed it.
            let _ = fs::remove_file(entry.path());
        }
    }
    Command::new("faketime")
}
