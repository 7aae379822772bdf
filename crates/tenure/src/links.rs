//! Refuses symbolic links where a project keeps its files. A repository can contain such links, and they can
//! point anywhere.

use std::path::Path;

use serde_json::json;
use tenure_core::ErrorCode;

use crate::project::ProjectPaths;
use crate::report::{CommandResult, Report};

/// Refuses a project of which a folder or file is a symbolic link.
pub(crate) fn check(paths: &ProjectPaths) -> CommandResult<()> {
    paths.own_files().iter().try_for_each(|path| refuse(path))
}

/// [`check`], for the configuration alone, which is read before the store is known.
pub(crate) fn check_config(paths: &ProjectPaths) -> CommandResult<()> {
    refuse(&paths.folder())?;
    refuse(&paths.config())
}

fn refuse(path: &Path) -> CommandResult<()> {
    if !is_link(path) {
        return Ok(());
    }
    let message = format!("{} is a symbolic link, and tenure follows none there", path.display());
    let mut report = Report::new(ErrorCode::PermissionDenied, message);
    report
        .context
        .push("A repository can bring links that lead anywhere. Replace it by what it leads to.".into());
    report.details = Box::new(json!({"path": path.to_string_lossy()}));
    Err(report)
}

pub(crate) fn is_link(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|found| found.is_symlink())
}
