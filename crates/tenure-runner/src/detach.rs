//! Detaches a process from its caller: a new session, without inherited files.

use crate::sys;

/// The variable that excludes a process from the attempt in which it was started, so that it survives the attempt. Without
/// the variable, the process would belong to the attempt as a descendant of its processes.
pub const NO_ATTEMPT: (&str, &str) = ("TENURE_ATTEMPT", "");

/// Starts a new session and closes every inherited descriptor except for the standard three.
///
/// Must be called before anything is opened, because it closes that too.
pub fn detach() {
    sys::leave_session();
}
