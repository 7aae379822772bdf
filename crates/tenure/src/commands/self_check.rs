//! `tenure self-check`: runs `tenure_demo::self_check` and prints what it finds.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tenure_core::ErrorCode;
use tenure_core::hints;
use tenure_demo::self_check;

use crate::answer::Answer;
use crate::app::App;
use crate::commands::demo::check_json;
use crate::interrupt::Interrupts;
use crate::report::{CommandResult, Report};
use crate::text::{Style, Text};

/// Check that this installation works on this machine
///
/// Runs a few commands in a temporary folder, in about a second: a race for one task, a waiter, a late write and a killed
/// process. Exits 7 if one of them failed. For the state of a project, see doctor.
///
/// Example: tenure self-check
#[derive(Debug, clap::Args)]
pub(crate) struct Args {}

pub(crate) fn run(app: &mut App<'_>, _: Args) -> CommandResult<Answer> {
    if app.global.dry_run {
        return Err(Report::usage(
            "self-check does not support --dry-run; it writes only to a temporary folder",
        )
        .hint(hints::run_self_check()));
    }
    let program = app.own_program()?;
    let interrupts = Interrupts::listen()?;
    let checks = self_check::run(&program, &interrupts)?;

    let version = env!("CARGO_PKG_VERSION");
    let on_path = first_on_path(app.env.vars.get(&OsString::from("PATH")));
    let is_on_path = on_path.as_deref().is_some_and(|found| is_same_file(found, &program.binary));
    let data = json!({
        "program": program.binary,
        "version": version,
        "onPath": is_on_path,
        "checks": checks.iter().map(check_json).collect::<Vec<Value>>(),
    });
    let mut text = Text::new();
    text.line(format!("tenure {version}, {}", program.binary.display()));
    for check in &checks {
        let (style, mark) = if check.holds() { (Style::Good, "ok    ") } else { (Style::Bad, "FAIL  ") };
        text.styled(style, mark).and(Style::Plain, check.what.clone());
        if let Some(fault) = &check.fault {
            text.styled(Style::Dim, format!("      {fault}"));
        }
    }
    match on_path {
        Some(found) if !is_on_path => {
            text.styled(
                Style::Warn,
                format!("note  `tenure` on PATH is another program: {}", found.display()),
            );
        }
        None => {
            text.styled(Style::Warn, "note  its folder is not on PATH");
        }
        Some(_) => {}
    }
    let failed = checks.iter().filter(|check| !check.holds()).count();
    if failed == 0 {
        return Ok(Answer::new(data, text).hint(hints::demo_after_check()));
    }
    // The checks are the command's output, even though it fails.
    app.printer.show(&text);
    let message = format!("{failed} of {} checks failed", checks.len());
    let mut report = Report::new(ErrorCode::CheckFailed, message);
    report.details = Box::new(data);
    Err(report)
}

/// The program that a shell would run for `tenure`.
fn first_on_path(path: Option<&OsString>) -> Option<PathBuf> {
    std::env::split_paths(path?).map(|folder| folder.join("tenure")).find(|file| file.is_file())
}

fn is_same_file(one: &Path, other: &Path) -> bool {
    matches!((one.canonicalize(), other.canonicalize()), (Ok(one), Ok(other)) if one == other)
}
