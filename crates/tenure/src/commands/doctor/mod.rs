//! `tenure doctor`: checks the installation and the project, and fixes what is safe to fix.

use serde_json::{Value, json};
use tenure_core::ErrorCode;
use tenure_core::hints::{self, Hint};
use tenure_runner::can_supervise;

use crate::answer::Answer;
use crate::app::App;
use crate::report::{CommandResult, Report};
use crate::supervised;
use crate::text::{Style, Text};

mod agents;
mod files;
mod finding;
mod store;
mod trust;
mod unattended;

use finding::{Finding, Severity};

/// Check the store, leases, runners, processes, the timer, agents, permissions and disk space
///
/// Read-only, unless --fix is given. Exits 7 if there is a problem; an incomplete setup, such as a missing timer, is only
/// a warning.
///
/// Example: tenure doctor --fix
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Fix everything that can be fixed safely
    #[arg(long)]
    fix: bool,
}

/// The checks that were made, and their findings.
#[derive(Debug, Default)]
struct Examination {
    findings: Vec<Finding>,
    /// One line for each check without a finding.
    checks: Vec<(&'static str, String)>,
    agents: Vec<Value>,
}

pub(crate) fn run(app: &mut App<'_>, args: Args) -> CommandResult<Answer> {
    if args.fix {
        supervised::check(app.env, "doctor --fix")?;
    }
    let before = examine(app)?;
    if !args.fix {
        return answer(app, &before, &[]);
    }
    if app.global.dry_run {
        return Ok(would_fix(&before));
    }
    fix(app)?;
    let after = examine(app)?;
    let fixed: Vec<Finding> = before.findings.into_iter().filter(|f| !after.findings.contains(f)).collect();
    answer(app, &after, &fixed)
}

fn examine(app: &mut App<'_>) -> CommandResult<Examination> {
    let mut examination = Examination::default();
    let project = match app.find() {
        Ok(project) => Some(project),
        Err(report) if report.code == ErrorCode::NotInitialized => None,
        Err(report) => return Err(report),
    };
    let paths = project.as_ref().map(|project| &project.paths);
    if let Some(project) = &project {
        // A database that came with the repository is not opened.
        if trust::examine(app, project, &mut examination) {
            store::examine(app, project, &mut examination);
        }
    }
    files::examine(app, paths, &mut examination);
    // Neither timers nor agents can be used where runners cannot.
    if can_supervise() {
        unattended::examine(app, paths, &mut examination)?;
        agents::examine(app, project.as_ref(), &mut examination);
    }
    examination.findings.sort_by_key(|finding| finding.severity);
    Ok(examination)
}

fn fix(app: &mut App<'_>) -> CommandResult<()> {
    let project = app.find().ok();
    if let Some(project) = &project
        && crate::tracked::refuse(app.env, &project.paths).is_ok()
    {
        store::fix(app, project)?;
    }
    files::fix(app, project.as_ref().map(|project| &project.paths));
    Ok(())
}

fn would_fix(found: &Examination) -> Answer {
    let fixable: Vec<&Finding> = found.findings.iter().filter(|finding| finding.fixable).collect();
    let mut text = Text::new();
    if fixable.is_empty() {
        text.line("There is nothing to fix.");
    }
    for finding in &fixable {
        text.line(format!("Would fix: {}", finding.sentence));
    }
    let rows: Vec<Value> = fixable.iter().map(|finding| finding.object()).collect();
    Answer::new(json!({"findings": rows, "total": rows.len()}), text)
}

fn answer(app: &mut App<'_>, found: &Examination, fixed: &[Finding]) -> CommandResult<Answer> {
    let problems = found.findings.iter().filter(|f| f.severity == Severity::Problem).count();
    let data = json!({
        "findings": found.findings.iter().map(Finding::object).collect::<Vec<_>>(),
        "total": found.findings.len(),
        "problems": problems,
        "fixed": fixed.iter().map(Finding::object).collect::<Vec<_>>(),
        "checks": found.checks.iter().map(|(check, result)| json!({"check": check, "result": result})).collect::<Vec<_>>(),
        "agents": found.agents,
    });
    let mut text = Text::new();
    for (check, result) in &found.checks {
        text.styled(Style::Good, "ok       ").and(Style::Plain, format!("{check}: {result}"));
    }
    for finding in fixed {
        text.styled(Style::Good, "fixed    ")
            .and(Style::Plain, format!("{}: {}", finding.check, finding.sentence));
    }
    for finding in &found.findings {
        let style = if finding.severity == Severity::Problem { Style::Bad } else { Style::Warn };
        text.styled(style, format!("{:<9}", finding.severity.as_str()))
            .and(Style::Plain, format!("{}: {}", finding.check, finding.sentence));
        text.styled(Style::Dim, format!("         {}", finding.hint.command));
    }
    let mut hints: Vec<Hint> = Vec::new();
    if found.findings.iter().any(|finding| finding.fixable) {
        hints.push(hints::fix());
    }
    if problems == 0 {
        let mut answer = Answer::new(data, text);
        answer.hints = hints;
        return Ok(answer);
    }
    let message =
        if problems == 1 { "1 problem found".to_owned() } else { format!("{problems} problems found") };
    let mut report = Report::new(ErrorCode::CheckFailed, message);
    report.details = Box::new(data);
    report.hints = hints;
    // The findings are the command's output, even though it fails.
    app.printer.show(&text);
    Err(report)
}
