//! Detaches a process from its caller: a new session, without inherited files.

use crate::sys;

/// The variable for a process that does not belong to the attempt in which it was started and must survive it. Without the
/// variable, it would belong to the attempt as a descendant of its processes.
pub const NO_ATTEMPT: (&str, &str) = ("TENURE_ATTEMPT", "");

/// Starts a new session and closes every inherited descriptor except for the standard three.
///
/// Must be called first: it also closes everything opened before.
pub fn detach() {
    sys::leave_session();
}
