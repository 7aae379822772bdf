//! `tenure demo`: the smallest true one. A project in a temporary folder, a claim, a refusal, and a late write that bounces.

use std::ffi::OsString;
use std::io::Write;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tenure_core::ErrorCode;

use crate::answer::Answer;
use crate::app::App;
use crate::env::{Env, Output};
use crate::report::{Outcome, Report};
use crate::text::{Style, Text};

/// See it work: a project in a temporary folder, two agents, and what each is told
///
/// Example: tenure demo
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Leave the folder behind
    #[arg(long)]
    keep: bool,
}

pub(crate) fn run(app: &mut App<'_>, args: Args) -> Outcome<Answer> {
    if app.global.dry_run {
        return Err(Report::usage(
            "the demo writes, if only to a temporary folder; it goes without --dry-run",
        ));
    }
    let folder = std::env::temp_dir().join(format!("tenure-demo-{}", app.env.ids.hex8().to_lowercase()));
    std::fs::create_dir_all(&folder)
        .map_err(|e| Report::new(ErrorCode::General, format!("cannot make {}: {e}", folder.display())))?;
    let mut stage = Stage { env: stage_env(app.env, &folder), text: Text::new(), checks: Vec::new() };
    play(&mut stage);
    if !args.keep {
        let _ = std::fs::remove_dir_all(&folder);
    }
    let failed = stage.checks.iter().filter(|(_, ok)| !ok).count();
    let mut text = stage.text;
    text.blank();
    for (what, ok) in &stage.checks {
        let (style, mark) = if *ok { (Style::Good, "ok  ") } else { (Style::Bad, "FAIL") };
        text.styled(style, mark).and(Style::Plain, format!("  {what}"));
    }
    let checks: Vec<Value> = stage.checks.iter().map(|(what, ok)| json!({"check": what, "ok": ok})).collect();
    let data = json!({"checks": checks, "folder": args.keep.then_some(&folder)});
    let answer = Answer::new(data, text).exit(u8::from(failed > 0));
    Ok(if args.keep {
        answer.hint("look around", format!("tenure -C {} status", folder.display()))
    } else {
        answer
    })
}

/// Commands are run as a user would type them, in a world without the user's own settings.
struct Stage {
    env: Env,
    text: Text,
    checks: Vec<(&'static str, bool)>,
}

fn stage_env(env: &Env, folder: &std::path::Path) -> Env {
    let mut env = env.clone();
    env.vars.retain(|name, _| !name.to_string_lossy().starts_with("TENURE_"));
    env.vars.insert("TENURE_HOME".into(), folder.join("home").into());
    folder.clone_into(&mut env.cwd);
    env
}

fn play(stage: &mut Stage) {
    stage.type_in(&["init", "--name", "demo"]);
    stage.type_in(&["tasks", "add", "Fix the login page", "--id", "F001"]);
    let (code, first) = stage.type_in(&["task", "claim", "F001", "--agent", "ann", "--ttl", "1s"]);
    stage.check("the first agent gets the task", code == 0);
    let fence = first["data"]["lease"]["fence"].as_i64().unwrap_or_default().to_string();
    let (code, second) = stage.type_in(&["task", "claim", "F001", "--agent", "bob"]);
    let told = second["error"]["details"]["lockedBy"] == "ann";
    stage.check("the second is refused and told who holds it", code == 6 && told);
    stage.say("…ann stops renewing; her lease runs out…");
    let (code, second) = stage.type_in(&["task", "claim", "F001", "--agent", "bob", "--wait", "10s"]);
    let newer = second["data"]["lease"]["fence"].as_i64().unwrap_or_default();
    stage.check(
        "the second takes it over with a higher fence",
        code == 0 && newer > fence.parse().unwrap_or(i64::MAX),
    );
    let (code, _) = stage.type_in(&["task", "done", "F001", "--fence", &fence]);
    stage.check("the first one's late write bounces", code == 8);
    let (code, done) = stage.type_in(&["task", "done", "F001", "--agent", "bob"]);
    stage.check("the holder finishes it", code == 0 && done["data"]["task"]["status"] == "completed");
}

impl Stage {
    fn say(&mut self, line: &str) {
        self.text.styled(Style::Dim, line);
    }

    fn check(&mut self, what: &'static str, ok: bool) {
        self.checks.push((what, ok));
    }

    /// Runs one command line, shows it and the gist of its answer, and hands the answer back.
    fn type_in(&mut self, words: &[&str]) -> (u8, Value) {
        // A flag is no word to be quoted.
        let quote =
            |word: &str| if word.starts_with("--") { word.to_owned() } else { crate::shell::quote(word) };
        self.text.styled(
            Style::Bold,
            format!("$ tenure {}", words.iter().map(|word| quote(word)).collect::<Vec<_>>().join(" ")),
        );
        let sink = Sink::default();
        let mut output = Output {
            out: Box::new(sink.clone()),
            err: Box::new(std::io::sink()),
            out_is_terminal: false,
            err_is_terminal: false,
            width: 80,
        };
        let mut args: Vec<OsString> = vec!["tenure".into(), "--json".into()];
        args.extend(words.iter().map(OsString::from));
        let code = crate::run_with(&args, &self.env, &mut output);
        let bytes = sink.0.lock().map(|b| b.clone()).unwrap_or_default();
        let answer: Value = serde_json::from_slice(&bytes).unwrap_or(Value::Null);
        let line = match &answer["error"]["message"] {
            Value::String(message) => format!("  exit {code}: {message}"),
            _ => match &answer["data"]["lease"]["fence"] {
                Value::Number(fence) => format!("  exit {code}, fence {fence}"),
                _ => format!("  exit {code}"),
            },
        };
        self.text.line(line);
        (code, answer)
    }
}

#[derive(Clone, Default)]
struct Sink(Arc<Mutex<Vec<u8>>>);

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        if let Ok(mut buffer) = self.0.lock() {
            buffer.extend_from_slice(bytes);
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}
