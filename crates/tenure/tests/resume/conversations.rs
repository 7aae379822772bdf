//! The conversation of a killed agent continues, no matter how its task is resumed.

use std::process::{Child, Stdio};

use serde_json::json;
use tenure_testkit::cli::{until, write_program};

use crate::project::Project;
use crate::sessions::{id, session};

/// Built-in agents that print the same first line, remember their arguments and prompts, and wait if `go` does not exist.
struct Agents {
    p: Project,
    path: String,
}

impl Agents {
    fn new(names: &[&str], printed: &str) -> Self {
        Self::that_do(names, printed, "exec tenure task done \"$TENURE_TASK_ID\"")
    }

    fn that_do(names: &[&str], printed: &str, then: &str) -> Self {
        let p = Project::new();
        let folder = p.path("programs");
        std::fs::create_dir_all(&folder).unwrap();
        let shared = p.path("agent");
        let shared = shared.display();
        // The programs of claude's sandbox are never run.
        for name in names.iter().chain(&["bwrap", "socat"]) {
            let text = format!(
                "#!/bin/sh\ncat >>'{shared}/prompts'\necho \"$*\" >>'{shared}/args'\necho '{printed}'\n\
                 if test ! -e '{shared}/go'; then echo x >'{shared}/begun'; sleep 1000; fi\n{then}\n"
            );
            write_program(&folder.join(name), &text);
        }
        p.task("A", &[]);
        let path = format!("{}:{}", folder.display(), std::env::var("PATH").unwrap());
        Self { p, path }
    }

    fn start(&self, name: &str) -> Child {
        let mut command = self.p.command(&["runners", "start", "--foreground", "--preset", name]);
        command.env("PATH", &self.path).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
    }

    fn finish(&self, args: &[&str]) {
        self.p.give("go");
        let ended = self.p.command(args).env("PATH", &self.path).output().unwrap();
        assert!(ended.status.success(), "{ended:?}");
        self.p.wait_until("A", "completed");
    }

    /// The prompts after the first runner.
    fn second_prompt(&self) -> String {
        let all = self.p.marks("prompts").join("\n");
        all.split_once("Exit code 8").map(|(_, rest)| rest.to_owned()).unwrap()
    }
}

fn kill(runner: &mut Child) {
    runner.kill().unwrap();
    runner.wait().unwrap();
}

#[test]
fn an_agent_that_supports_it_continues_its_conversation() {
    for (name, printed, resumed) in [
        ("claude", r#"{"type":"system","subtype":"init","session_id":"c0ffee-1"}"#, " --resume c0ffee-1"),
        ("codex", r#"{"type":"thread.started","thread_id":"c0ffee-1"}"#, " resume c0ffee-1 -"),
        ("opencode", r#"{"type":"step_start","sessionID":"c0ffee-1","part":{}}"#, " --session c0ffee-1"),
    ] {
        let agents = Agents::new(&[name], printed);
        let mut runner = agents.start(name);
        agents.p.wait_for("begun");
        until("its conversation is in the checkpoint", || {
            session(&agents.p)["current"]["agentSession"] == "c0ffee-1"
        });
        kill(&mut runner);
        agents.finish(&["resume", &id(&agents.p)]);
        let args = agents.p.marks("args");
        assert_eq!(args.len(), 2, "{args:?}");
        assert!(!args[0].contains("resume") && args[1].ends_with(resumed), "{args:?}");
        // The conversation already contains the task.
        let prompt = agents.second_prompt();
        assert!(prompt.contains("Your work on task A was interrupted"), "{prompt}");
        assert!(!prompt.contains("## Description"), "{prompt}");
    }
}

#[test]
fn a_conversation_whose_name_was_chosen_goes_on_although_its_agent_printed_nothing() {
    for name in ["claude", "gemini", "copilot"] {
        let agents = Agents::new(&[name], "");
        let mut runner = agents.start(name);
        agents.p.wait_for("begun");
        kill(&mut runner);
        let chosen = session(&agents.p)["current"]["agentSession"].as_str().unwrap().to_owned();
        agents.finish(&["resume", &id(&agents.p)]);
        let args = agents.p.marks("args");
        assert!(args[0].ends_with(&chosen) && args[0].contains("--session-id"), "{args:?}");
        assert!(args[1].ends_with(&chosen) && args[1].contains("--resume"), "{args:?}");
    }
}

#[test]
fn another_runner_and_wake_up_go_on_in_the_conversation_of_a_killed_one() {
    for args in [&["runners", "start", "--foreground", "--preset", "claude"][..], &["runners", "wakeup"]] {
        let agents = Agents::new(&["claude"], "");
        agents.p.trust();
        let mut runner = agents.start("claude");
        agents.p.wait_for("begun");
        kill(&mut runner);
        let chosen = session(&agents.p)["current"]["agentSession"].as_str().unwrap().to_owned();
        agents.finish(args);
        let resumed = agents.p.marks("args");
        assert!(resumed[1].ends_with(&format!(" --resume {chosen}")), "{args:?}: {resumed:?}");
    }
}

#[test]
fn a_lost_conversation_is_not_tried_and_the_new_one_says_so() {
    let agents = Agents::new(&["claude"], "");
    let mut runner = agents.start("claude");
    agents.p.wait_for("begun");
    kill(&mut runner);
    // Claude Code stores its conversations here, and has none of this name.
    std::fs::create_dir_all(agents.p.path("home/.claude/projects/other")).unwrap();
    agents.finish(&["resume", &id(&agents.p)]);
    let args = agents.p.marks("args");
    assert_eq!(args.len(), 2, "{args:?}");
    assert!(!args[1].contains("--resume") && args[1].contains("--session-id"), "{args:?}");
    let prompt = agents.second_prompt();
    assert!(prompt.contains("is lost") && prompt.contains("## Description"), "{prompt}");
}

/// Codex prints the total of its conversation. What the killed run has used is part of the next total.
#[test]
fn what_a_killed_codex_has_used_is_counted_once() {
    let total = |input: u64| {
        json!({"type": "turn.completed", "usage": {"input_tokens": input, "output_tokens": 10}}).to_string()
    };
    let limit =
        json!({"type": "turn.failed", "error": {"message": "You've hit your usage limit. Try again later."}});
    let then = format!(
        "if test -e \"$0.limited\"; then tenure task done \"$TENURE_TASK_ID\" >&2; echo '{}'; exit; fi\n\
         touch \"$0.limited\"; echo '{}'; echo \"{limit}\"; exit 1",
        total(3000),
        total(1000),
        limit = limit.to_string().replace('"', "\\\""),
    );
    let agents = Agents::that_do(&["codex"], r#"{"type":"thread.started","thread_id":"c0ffee-1"}"#, &then);
    agents.p.give("go");
    agents.start("codex").wait().unwrap();
    assert_eq!(agents.p.status("A"), "pending");
    std::fs::remove_file(agents.p.path("agent/go")).unwrap();
    let mut runner = agents.start("codex");
    agents.p.wait_for("begun");
    kill(&mut runner);
    agents.p.give("go");
    agents.start("codex").wait().unwrap();
    let task = agents.p.show("A");
    assert_eq!(
        (&task["status"], &task["usage"]["inputTokens"]),
        (&json!("completed"), &json!(3000)),
        "{task}"
    );
    let args = agents.p.marks("args");
    assert!(args[1..].iter().all(|args| args.ends_with(" resume c0ffee-1 -")) && args.len() == 3, "{args:?}");
}
