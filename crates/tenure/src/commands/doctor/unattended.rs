//! Unattended operation: the registry of projects, and the timer, which must be installed and firing.

use std::path::Path;

use tenure_core::duration::format_rounded;
use tenure_core::hints::{self, Hint};
use tenure_runner::timer::Kind;
use tenure_sqlite::Directory;

use super::Examination;
use super::finding::Finding;
use crate::app::App;
use crate::candidates::unregistered;
use crate::commands::runners::cron;
use crate::project::ProjectPaths;
use crate::report::CommandResult;
use crate::shell_quote;
use crate::sys;

pub(super) fn examine(
    app: &App<'_>,
    paths: Option<&ProjectPaths>,
    found: &mut Examination,
) -> CommandResult<()> {
    let Ok(home) = app.home() else {
        let sentence = "neither HOME nor TENURE_HOME is set, so no project is registered";
        found.findings.push(Finding::problem("registry", sentence, hints::choose_home()));
        return Ok(());
    };
    match Directory::open_existing(&home, app.env.clock.clone()) {
        Ok(directory) => registry(app, paths, directory.as_ref(), found)?,
        Err(error) => {
            let path = Directory::file(&home);
            let text = path.to_string_lossy();
            let damaged = shell_quote::quote(&format!("{text}.damaged"));
            let hint = hints::set_registry_aside(shell_quote::quote(&text), damaged);
            let sentence = format!("cannot read the registry {}: {error}", path.display());
            found.findings.push(Finding::problem("registry", sentence, hint));
            return Ok(());
        }
    }
    timer(app, paths, found);
    Ok(())
}

fn registry(
    app: &App<'_>,
    paths: Option<&ProjectPaths>,
    directory: Option<&Directory>,
    found: &mut Examination,
) -> CommandResult<()> {
    let projects = directory.map(Directory::projects).transpose()?.unwrap_or_default();
    for project in &projects {
        if app.project_at(&project.path).is_none() {
            let sentence = format!("{} is registered but no longer exists", project.path.display());
            let hint = hints::unregister(shell_quote::last_arg(&project.path.to_string_lossy()));
            found.findings.push(Finding::warning("registry", sentence, hint));
        }
    }
    // An invalid user configuration is reported with the timer.
    for (path, hint) in unregistered(app, &projects).unwrap_or_default() {
        // The current project has its own finding below.
        if paths.is_none_or(|paths| paths.root != path) {
            let sentence = format!("{} is not registered, so wake-up ignores it", path.display());
            found.findings.push(Finding::warning("registry", sentence, hint));
        }
    }
    let Some(paths) = paths else { return Ok(()) };
    let path = shell_quote::last_arg(&paths.root.to_string_lossy());
    match projects.iter().find(|project| project.path == paths.root) {
        None => {
            let sentence = "this project is not registered, so wake-up ignores it";
            found.findings.push(Finding::warning("registry", sentence, hints::register_for_wakeup(path)));
        }
        Some(project) if !project.enabled => {
            let sentence = "wake-up is disabled for this project";
            found.findings.push(Finding::warning("registry", sentence, hints::enable_project(path)));
        }
        Some(_) => found.checks.push(("registry", "wake-up is enabled for this project".to_owned())),
    }
    Ok(())
}

fn timer(app: &App<'_>, paths: Option<&ProjectPaths>, found: &mut Examination) {
    let timers = match cron::timer_states(app, &Kind::ALL) {
        Ok(timers) => timers,
        // Also covers an invalid configuration, which the check of the store reports.
        Err(report) => {
            found.findings.push(Finding::problem("timer", report.message, hints::validate_config()));
            return;
        }
    };
    let now = app.env.clock.now();
    for timer in &timers {
        let kind = timer.kind.as_str();
        if let Some(trouble) = &timer.trouble {
            found.findings.push(Finding::warning("timer", format!("{kind}: {trouble}"), hints::show_timer()));
        }
        if timer.entry.is_none() {
            continue;
        }
        let home = app.env.user_home().and_then(|home| sys::real_path(home).ok());
        if let Some(folder) = home.zip(paths).and_then(|(home, paths)| hidden_folder(&home, &paths.root))
            && timer.kind == Kind::Launchd
        {
            let sentence = format!(
                "the project is in ~/{folder}, which macOS hides from launchd, so the timer starts no runner here; move it, or \
                 give tenure full disk access"
            );
            found.findings.push(Finding::warning("timer", sentence, hints::grant_disk_access()));
        }
        let last = timer.fired_at.map_or_else(
            || "it has never fired".to_owned(),
            |at| format!("it last fired {} ago", format_rounded(now.since(at))),
        );
        if let Some(binary) = timer.missing_binary() {
            let sentence = format!("the {kind} timer runs {}, which does not exist", binary.display());
            found.findings.push(Finding::problem("timer", sentence, hints::install_timer()));
        } else if timer.overdue {
            let sentence = format!("the {kind} timer is installed but does not fire: {last}");
            found.findings.push(Finding::problem("timer", sentence, how_to_start(timer.kind)));
        } else {
            found.checks.push(("timer", format!("installed with {kind}; {last}")));
        }
    }
    if timers.iter().all(|timer| timer.entry.is_none()) {
        let sentence = "no timer is installed, so runners are not started automatically";
        found.findings.push(Finding::warning("timer", sentence, hints::install_timer()));
    }
}

/// The folder below `home` that contains this project and that macOS hides from programs without permission
/// to read it.
fn hidden_folder(home: &Path, root: &Path) -> Option<&'static str> {
    ["Desktop", "Documents", "Downloads", "Library/Mobile Documents"]
        .into_iter()
        .find(|folder| root.starts_with(home.join(folder)))
}

fn how_to_start(kind: Kind) -> Hint {
    hints::start_timer(match kind {
        Kind::Cron => "sudo service cron start",
        Kind::Systemd => "systemctl --user enable --now tenure-wakeup.timer",
        Kind::Launchd => "launchctl kickstart \"gui/$(id -u)/tenure-wakeup\"",
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_below_a_protected_folder_of_the_home_is_hidden() {
        let hidden = |root: &str| hidden_folder(Path::new("/Users/ann"), Path::new(root));
        assert_eq!(hidden("/Users/ann/Documents/shop"), Some("Documents"));
        assert_eq!(hidden("/Users/ann/Desktop"), Some("Desktop"));
        assert_eq!(hidden("/Users/ann/Downloads/a/b"), Some("Downloads"));
        let cloud = "Library/Mobile Documents";
        assert_eq!(hidden(&format!("/Users/ann/{cloud}/com~apple~CloudDocs/shop")), Some(cloud));
        for root in
            ["/Users/ann/Documents2", "/Users/ann/code/Documents", "/Users/ben/Documents", "/Users/ann"]
        {
            assert_eq!(hidden(root), None, "{root}");
        }
    }
}
