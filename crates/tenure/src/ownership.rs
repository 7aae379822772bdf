//! Refuses a `.tenure/` that belongs to another user, as git does: `sudo` must not leave files owned by root behind,
//! and a configuration names commands to run.

use tenure_core::ErrorCode;

use crate::env::Env;
use crate::project::ProjectPaths;
use crate::report::{CommandResult, Report};
use crate::sys;

pub(crate) fn check(paths: &ProjectPaths, env: &Env) -> CommandResult<()> {
    let folder = paths.folder();
    let Ok(found) = std::fs::metadata(&folder) else { return Ok(()) };
    let Some((owner, me)) = sys::other_owner(&found) else { return Ok(()) };
    if env.flag("TENURE_TRUST_OWNER") {
        return Ok(());
    }
    let mut report = Report::new(
        ErrorCode::PermissionDenied,
        format!("{} belongs to another user (uid {owner}, you are {me})", folder.display()),
    );
    report
        .context
        .push("Run tenure as its owner, or set TENURE_TRUST_OWNER=1 if you trust its configuration.".into());
    Err(report)
}
