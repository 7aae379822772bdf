//! All output goes through here: answers to standard output, everything else to standard error.

use std::io::Write;

use serde_json::{Value, json};
use tenure_core::hints::Hint;

use crate::answer::Answer;
use crate::cli::Global;
use crate::env::{Env, Output};
use crate::pager::{Pager, Paging};
use crate::report::Report;
use crate::sys;
use crate::text::{RenderOptions, Style, Text};

#[derive(Debug)]
pub(crate) struct Printer<'a> {
    output: &'a mut Output,
    pub(crate) json: bool,
    pub(crate) quiet: bool,
    verbose: u8,
    color: bool,
    /// Sets `dryRun` in the envelope.
    dry_run: bool,
    /// How many lines the next redraw replaces.
    drawn: usize,
    /// The pager for long output, and that pager while it runs.
    pager: Option<Pager>,
    paging: Option<Paging>,
}

/// The command that an envelope belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CommandName<'a> {
    pub(crate) command: &'a str,
    pub(crate) subcommand: Option<&'a str>,
}

impl std::fmt::Display for CommandName<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.command)?;
        self.subcommand.map_or(Ok(()), |subcommand| write!(f, " {subcommand}"))
    }
}

impl<'a> Printer<'a> {
    pub(crate) fn new(output: &'a mut Output, global: &Global, color: bool) -> Self {
        Self {
            output,
            json: global.json,
            quiet: global.quiet,
            verbose: global.verbose,
            color: color && !global.no_color,
            dry_run: global.dry_run,
            drawn: 0,
            pager: None,
            paging: None,
        }
    }

    /// Shows long output in a pager, if a person reads it.
    #[must_use]
    pub(crate) fn with_pager(mut self, env: &Env, global: &Global) -> Self {
        self.pager = if self.output.out_is_terminal { Pager::of(env, global) } else { None };
        self
    }

    /// Shows all further output in the pager, if there is one. For output whose length is not known beforehand.
    pub(crate) fn page(&mut self) {
        if self.paging.is_none() {
            self.paging = self.pager.take().and_then(|pager| pager.start());
        }
    }

    /// Shows a manual page with `man`, if a person reads it. Returns whether it was shown.
    pub(crate) fn show_manual(&self, page: &str) -> bool {
        self.pager.as_ref().is_some_and(|pager| pager.show_manual(page))
    }

    pub(crate) fn render_options(&self) -> RenderOptions {
        RenderOptions {
            color: self.color && self.output.out_is_terminal,
            width: self.output.out_is_terminal.then_some(self.output.width),
        }
    }

    pub(crate) fn help_width(&self) -> usize {
        self.output.help_width()
    }

    pub(crate) fn out_is_terminal(&self) -> bool {
        self.output.out_is_terminal
    }

    /// Whether a person sees what a command waits for.
    pub(crate) fn shows_waits(&self) -> bool {
        self.output.err_is_terminal && !self.quiet
    }

    pub(crate) fn err_is_terminal(&self) -> bool {
        self.output.err_is_terminal
    }

    fn err_render_options(&self) -> RenderOptions {
        RenderOptions {
            color: self.color && self.output.err_is_terminal,
            width: self.output.err_is_terminal.then_some(self.output.width),
        }
    }

    /// Prints the answer of a command that succeeded. In a dry run the hints are left out.
    pub(crate) fn answer(&mut self, name: CommandName<'_>, answer: &Answer) {
        let next: &[Hint] = if self.dry_run { &[] } else { &answer.hints };
        if self.json {
            self.envelope(name, true, &answer.data, &Value::Null, next);
            return;
        }
        if let (true, Some(key)) = (self.quiet, &answer.key) {
            let mut text = Text::new();
            text.line(key);
            let shown = text.render(RenderOptions { width: None, ..self.render_options() });
            return self.write(&shown);
        }
        let mut text = answer.text.render(self.render_options());
        if !next.is_empty() && !self.quiet {
            text.push_str(&hints(next).render(self.render_options()));
        }
        self.write_paged(&text);
    }

    /// Prints a part of the answer before the rest is known, or before a failure. Prints nothing with `--json`.
    pub(crate) fn show(&mut self, text: &Text) {
        if !self.json {
            let shown = text.render(self.render_options());
            self.write(&shown);
        }
    }

    /// Prints the error of a command that failed.
    pub(crate) fn failure(&mut self, name: CommandName<'_>, report: &Report) {
        if report.message.is_empty() {
            return;
        }
        if self.json {
            let error = json!({
                "code": report.code.as_str(), "message": report.message, "details": report.details,
            });
            self.envelope(name, false, &Value::Null, &error, &report.hints);
            return;
        }
        let mut text = Text::new();
        let mut lines = report.message.lines();
        text.styled(Style::Bad, "Error:").and(Style::Plain, format!(" {}", lines.next().unwrap_or_default()));
        for line in lines {
            text.line(line);
        }
        for line in &report.context {
            text.line(line.clone());
        }
        let mut shown = text.render(self.err_render_options());
        shown.push_str(&hints(&report.hints).render(self.err_render_options()));
        self.write_err(&shown);
    }

    /// Prints one line of a stream: a JSON object, or text.
    pub(crate) fn stream(&mut self, object: &Value, text: &Text) {
        let line = if self.json { format!("{object}\n") } else { text.render(self.render_options()) };
        self.write(&line);
    }

    /// Prints the newest state of something that changes: a JSON object, or on a terminal text over the text before it.
    pub(crate) fn redraw(&mut self, object: &Value, text: &Text) {
        if self.json {
            return self.write(&format!("{object}\n"));
        }
        let shown = text.render(self.render_options());
        let height = sys::terminal_size().map_or(0, |(_, rows)| rows);
        let rows = if height > 1 { height - 1 } else { usize::MAX };
        let back = self.drawn.min(rows);
        let lines: Vec<&str> = shown.lines().take(rows).collect();
        self.drawn = lines.len();
        let up = if back > 0 { format!("\x1b[{back}A") } else { String::new() };
        // Disables wrapping, so that each line of text takes one line of the screen; the terminal cuts longer
        // lines.
        self.write(&format!("\x1b[?7l{up}{}\x1b[K\n\x1b[J\x1b[?7h", lines.join("\x1b[K\n")));
    }

    /// Prints a line of a log as it was recorded.
    pub(crate) fn recorded(&mut self, line: &str) {
        self.write(&format!("{line}\n"));
    }

    /// Prints to standard error while the command runs.
    pub(crate) fn notice(&mut self, text: &Text) {
        if !self.quiet {
            let shown = text.render(self.err_render_options());
            self.write_err(&shown);
        }
    }

    /// Prints a question to standard error, even with `--quiet` and `--json`.
    pub(crate) fn ask(&mut self, text: &Text) {
        let shown = text.render(self.err_render_options());
        self.write_err(&shown);
    }

    /// Prints to standard error if the verbosity is at least `level`.
    pub(crate) fn detail(&mut self, level: u8, line: impl FnOnce() -> String) {
        if self.verbose >= level {
            let mut text = Text::new();
            text.styled(Style::Dim, format!("tenure: {}", line()));
            let shown = text.render(self.err_render_options());
            self.write_err(&shown);
        }
    }

    pub(crate) fn warn(&mut self, message: &str) {
        let mut text = Text::new();
        text.styled(Style::Warn, "Warning:").and(Style::Plain, format!(" {message}"));
        self.notice(&text);
    }

    /// Writes bytes to standard error unescaped: a progress bar draws over itself.
    pub(crate) fn draw(&mut self, bytes: &str) {
        self.write_err(bytes);
    }

    /// Prints generated text unescaped: help, completions, a manual page.
    pub(crate) fn raw(&mut self, name: CommandName<'_>, key: &str, text: &str) {
        if self.json {
            self.envelope(name, true, &json!({key: text}), &Value::Null, &[]);
        } else {
            self.write_paged(text);
        }
    }

    fn envelope(
        &mut self,
        name: CommandName<'_>,
        success: bool,
        data: &Value,
        error: &Value,
        hints: &[Hint],
    ) {
        let mut object = json!({
            "schemaVersion": 1,
            "success": success,
            "command": name.command,
            "subcommand": name.subcommand,
            "data": data,
            "error": error,
        });
        if let Some(fields) = object.as_object_mut() {
            if self.dry_run && success {
                fields.insert("dryRun".into(), Value::Bool(true));
            }
            if !hints.is_empty() {
                let hints: Vec<_> =
                    hints.iter().map(|h| json!({"why": h.why, "command": h.command})).collect();
                fields.insert("hints".into(), Value::Array(hints));
            }
        }
        self.write(&format!("{object}\n"));
    }

    /// Writes text that is complete, in the pager if it is longer than the terminal.
    fn write_paged(&mut self, text: &str) {
        if self.pager.is_some() && text.lines().count() >= self.output.height {
            self.page();
        }
        self.write(text);
    }

    /// A failed write is ignored: the reader has closed the pipe.
    fn write(&mut self, text: &str) {
        if let Some(paging) = &mut self.paging {
            return paging.write(text);
        }
        let _ = self.output.out.write_all(text.as_bytes()).and_then(|()| self.output.out.flush());
    }

    fn write_err(&mut self, text: &str) {
        let _ = self.output.err.write_all(text.as_bytes()).and_then(|()| self.output.err.flush());
    }
}

fn hints(hints: &[Hint]) -> Text {
    let mut text = Text::new();
    for hint in hints {
        text.hint(&hint.why, &hint.command);
    }
    text
}
