//! Algorithms that are known to be wrong or minimal, for the harness to detect and the bench to compare with.

use std::fs::OpenOptions;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

/// Creates the file, then writes to it. If it names a dead pid, removes it by name and tries again. Dropping removes
/// whatever file has the name.
pub(crate) struct CreateNew {
    path: PathBuf,
}

impl CreateNew {
    pub(crate) fn acquire(path: &Path, is_running: fn(u32) -> bool) -> Option<Self> {
        // The original recurses without a limit.
        for _ in 0..100 {
            match OpenOptions::new().write(true).create_new(true).open(path) {
                Ok(mut file) => {
                    file.write_all(foreign_json("job", std::process::id()).as_bytes()).ok()?;
                    return Some(Self { path: path.to_owned() });
                }
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                    let text = std::fs::read_to_string(path).ok()?;
                    let value: serde_json::Value = serde_json::from_str(&text).ok()?;
                    let pid = u32::try_from(value.get("process_id")?.as_u64()?).ok()?;
                    if is_running(pid) {
                        return None;
                    }
                    std::fs::remove_file(path).ok()?;
                }
                Err(_) => return None,
            }
        }
        None
    }
}

impl Drop for CreateNew {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

/// The four fields that every tool knows, on this host.
pub(crate) fn foreign_json(id: &str, pid: u32) -> String {
    format!(
        "{{\n  \"job_id\": \"{id}\",\n  \"process_id\": {pid},\n  \"hostname\": \"{}\",\n  \"acquired_at\": \
         \"2025-01-11T10:30:00.123456789Z\"\n}}",
        tenure_lock::hostname()
    )
}

/// The liveness check of the create-new algorithm: it runs `kill -0`. Where there is no such program (Windows), the library is
/// asked: if every holder seemed dead, the racers would remove each other's files up to the limit in each round.
pub(crate) fn kill_zero(pid: u32) -> bool {
    std::process::Command::new("kill")
        .args(["-0", &pid.to_string()])
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .status()
        .map_or_else(|_| tenure_lock::is_process_running(pid), |status| status.success())
}
