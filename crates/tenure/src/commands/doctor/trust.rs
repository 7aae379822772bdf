//! Trust: whether the project's settings count and agents may be started, and whether its database came with it.

use tenure_core::config::{Authority, TrustState};
use tenure_core::hints;

use super::Examination;
use super::finding::Finding;
use crate::app::App;
use crate::project::Project;
use crate::shell_quote::quote;
use crate::{tracked, trust};

/// False if the project's database must not be opened.
pub(super) fn examine(app: &App<'_>, project: &Project, found: &mut Examination) -> bool {
    if let Err(report) = tracked::refuse(app.env, &project.paths) {
        let list = || hints::list_folder(quote(&project.paths.folder().to_string_lossy()));
        let hint = report.hints.into_iter().next().unwrap_or_else(list);
        found.findings.push(Finding::problem("trust", report.message, hint));
        return false;
    }
    if let Ok(config) = &project.config {
        let users = config.ignored.iter().filter(|setting| setting.authority == Authority::UserOnly);
        for setting in users {
            let sentence = format!("{} has no effect in the project's file", setting.key);
            found.findings.push(Finding::warning("configuration", sentence, hints::edit_config()));
        }
    }
    // An invalid file is reported by the check of the store.
    let Ok(examined) = trust::examine(app.env, &project.paths) else { return true };
    let sentence = match examined.state {
        _ if examined.allows_agents(app.env) => {
            found.checks.push(("trust", "agents may be started in this project".to_owned()));
            return true;
        }
        TrustState::Changed => "this project has changed since it was trusted, so no agent is started in it",
        _ if examined.content.is_empty() => "this project is not trusted, so no agent is started in it",
        _ => {
            "this project is not trusted, so no agent is started in it and some of its settings have no effect"
        }
    };
    let hint = hints::trust_at(quote(&examined.root.to_string_lossy()));
    found.findings.push(Finding::warning("trust", sentence, hint));
    true
}
