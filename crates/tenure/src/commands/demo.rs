//! `tenure demo`: runs `tenure_demo::demo` and prints what it shows and finds.

use serde_json::{Value, json};
use tenure_core::hints;
use tenure_demo::Check;
use tenure_demo::demo::{self, Line, Progress, Screen, Tone};

use crate::answer::Answer;
use crate::app::App;
use crate::interrupt::Interrupts;
use crate::report::{CommandResult, Report};
use crate::text::{Style, Text};

/// Watch two runners with simulated agents in a temporary folder, and what happens when they are killed
///
/// Only the agents are simulated; processes, leases, fences and the exclusive lock are real. The demo takes about ten
/// seconds, checks its observations, and exits 1 if a guarantee was violated.
///
/// Example: tenure demo
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Keep the folder
    #[arg(long)]
    keep: bool,
    /// Run as one of the simulated agents
    #[arg(long, hide = true)]
    pretend: bool,
}

impl Args {
    pub(super) fn is_pretend_agent(&self) -> bool {
        self.pretend
    }
}

pub(crate) fn run(app: &mut App<'_>, args: Args) -> CommandResult<Option<Answer>> {
    if args.pretend {
        demo::run_pretend_agent();
        return Ok(None);
    }
    if app.global.dry_run {
        return Err(Report::usage("demo does not support --dry-run; it writes only to a temporary folder")
            .hint(hints::run_demo()));
    }
    let program = app.own_program()?;
    let interrupts = Interrupts::listen()?;
    let mut screen = TerminalScreen { app };
    let findings = demo::run(&program, &interrupts, &mut screen, args.keep);
    screen.clear_progress();
    let findings = findings?;

    let checks = &findings.checks;
    let data = json!({
        "checks": checks.iter().map(check_json).collect::<Vec<Value>>(),
        "handOffMs": findings.hand_off_ms,
        "takeoverMs": findings.takeover_ms,
        "folder": args.keep.then_some(&findings.folder),
    });
    let mut text = Text::new();
    text.blank();
    for check in checks {
        let (style, mark) = if check.holds() { (Style::Good, "ok  ") } else { (Style::Bad, "FAIL") };
        text.styled(style, mark).and(Style::Plain, format!("  {}", check.what));
        if let Some(fault) = &check.fault {
            text.styled(Style::Dim, format!("      {fault}"));
        }
    }
    let failed = checks.iter().any(|check| !check.holds());
    let answer = Answer::new(data, text).exit(u8::from(failed));
    Ok(Some(if args.keep {
        answer.hint(hints::show_demo(crate::shell_quote::quote(&findings.folder.to_string_lossy())))
    } else {
        answer
    }))
}

pub(super) fn check_json(check: &Check) -> Value {
    json!({"check": check.what, "ok": check.holds(), "why": check.fault})
}

/// Lines on standard output, and on a terminal a progress bar below them.
struct TerminalScreen<'s, 'a> {
    app: &'s mut App<'a>,
}

impl TerminalScreen<'_, '_> {
    fn has_progress(&self) -> bool {
        self.app.printer.err_is_terminal() && !self.app.printer.json && !self.app.env.flag("CI")
    }

    fn clear_progress(&mut self) {
        if self.has_progress() {
            self.app.printer.draw("\r\x1b[K");
        }
    }
}

impl Screen for TerminalScreen<'_, '_> {
    fn show(&mut self, line: Line<'_>) {
        let mut text = Text::new();
        match line {
            Line::Scene(title) => text.blank().styled(Style::Bold, title),
            Line::Command { args, background } => {
                let args: Vec<String> = args.iter().map(|arg| quote(arg)).collect();
                text.line(format!("$ tenure {}{}", args.join(" "), if background { " &" } else { "" }))
            }
            Line::Failure { exit, message } => text.styled(Style::Dim, format!("exit {exit}: {message}")),
            Line::Note { elapsed, tone, text: note } => {
                let style = match tone {
                    Tone::Plain => Style::Plain,
                    Tone::Good => Style::Good,
                    Tone::Warning => Style::Warn,
                    Tone::Faint => Style::Dim,
                };
                text.styled(Style::Dim, format!("{:>5.1}s  ", elapsed.as_secs_f64())).and(style, note)
            }
        };
        self.clear_progress();
        if !self.app.printer.quiet {
            self.app.printer.show(&text);
        }
    }

    fn show_progress(&mut self, progress: Progress) {
        if !self.has_progress() {
            return;
        }
        let Progress { elapsed, completed, tasks } = progress;
        let bar: String = (0..tasks).map(|n| if n < completed { '#' } else { '.' }).collect();
        let seconds = elapsed.as_secs_f64();
        self.app.printer.draw(&format!("\r\x1b[K{seconds:>5.1}s  [{bar}] {completed} of {tasks} tasks"));
    }
}

/// Quotes an argument unless it is a flag.
fn quote(arg: &str) -> String {
    if arg.starts_with('-') { arg.to_owned() } else { crate::shell_quote::quote(arg) }
}
