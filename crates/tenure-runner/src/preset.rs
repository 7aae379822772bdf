//! Agent presets: the program that works on a task, its arguments and variables.
//!
//! Guarantees: a configured `command` replaces all built-in arguments; a configured `env` is added to the variables of the
//! program, which it can replace. Nothing is run or changed here. Not guaranteed: that the program still exists when it is started.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};
use tenure_core::config::Preset;
use tenure_core::parking::ParkingScope;
use tenure_core::supervised::callable_verbs;

use crate::agents::{Agent, BUILT_IN, VERBS};
use crate::program::{self, ProgramError};

/// The arguments of a built-in preset. [`VERBS`] stands for the verbs of tenure that an agent under a runner may use, as rules
/// of Claude Code.
fn words_of(agent: &Agent) -> Vec<String> {
    let rules: Vec<String> = callable_verbs().iter().map(|verb| format!("Bash(tenure {verb}:*)")).collect();
    let rules = rules.join(",");
    agent.command.iter().map(|word| word.replace(VERBS, &rules)).collect()
}

/// Variables by which an agent marks its child processes. An agent that finds them assumes that it runs inside the
/// agent that started the runner, or refuses to start. Settings and credentials (`CLAUDE_CODE_USE_BEDROCK`,
/// `CLAUDE_CODE_OAUTH_TOKEN`, …) are not among them.
pub const SESSION_MARKERS: &[&str] = &[
    "AI_AGENT",
    "CLAUDECODE",
    "CLAUDE_CODE_CHILD_SESSION",
    "CLAUDE_CODE_ENTRYPOINT",
    "CLAUDE_CODE_EXECPATH",
    "CLAUDE_CODE_REMOTE_SESSION_ID",
    "CLAUDE_CODE_SESSION_ID",
    "CLAUDE_CODE_SSE_PORT",
    "CLAUDE_EFFORT",
    "CLAUDE_ENV_FILE",
    "CLAUDE_PROJECT_DIR",
    "CODEX_CI",
    "CODEX_SANDBOX",
    "CODEX_SANDBOX_NETWORK_DISABLED",
    "CODEX_SESSION_ID",
    "CODEX_THREAD_ID",
    "CODEX_TOOL_CALL_ID",
    "CURSOR_AGENT",
    "CURSOR_TRACE_ID",
    "GEMINI_CLI",
    "GEMINI_CLI_NO_RELAUNCH",
    "OPENCODE",
    "OPENCODE_PID",
    "OPENCODE_SESSION_ID",
];

/// The markers that an editor also sets in the terminals of its user.
const EDITOR_MARKERS: [&str; 2] = ["CLAUDE_CODE_SSE_PORT", "CURSOR_TRACE_ID"];

/// A variable that only processes of agents have, among those that are set.
pub fn agent_session_variable(is_set: impl Fn(&str) -> bool) -> Option<&'static str> {
    SESSION_MARKERS.iter().copied().find(|name| !EDITOR_MARKERS.contains(name) && is_set(name))
}

/// An agent that can be started.
#[derive(Debug, Clone)]
pub struct AgentCommand {
    pub preset: String,
    /// What is known about the program, by its file name.
    pub agent: &'static Agent,
    pub program: PathBuf,
    pub args: Vec<String>,
    /// Added to the environment. May contain secrets, so it must never be logged.
    pub env: BTreeMap<String, String>,
    /// `presets.NAME.account`; the agent's name by default, and the preset's for a program that is not known.
    pub account: String,
}

impl AgentCommand {
    /// The arguments that resume a conversation, if the agent supports it.
    pub fn resuming(&self, conversation: &str) -> Option<Vec<String>> {
        self.agent.resuming(&self.args, conversation)
    }

    /// What can be parked because of this agent.
    pub fn scope(&self) -> ParkingScope {
        let mut hash = Sha256::new();
        let program = self.program.to_string_lossy();
        let variables = self.env.iter().flat_map(|(name, value)| [name.as_str(), value.as_str()]);
        let words = std::iter::once(program.as_ref()).chain(self.args.iter().map(String::as_str));
        for word in words.chain(variables) {
            hash.update(word.as_bytes());
            hash.update([0]);
        }
        let mut fingerprint = String::new();
        for byte in &hash.finalize()[..16] {
            let _ = write!(fingerprint, "{byte:02x}");
        }
        ParkingScope {
            preset: self.preset.clone(),
            account: self.account.clone(),
            host: tenure_lock::host_id(),
            fingerprint,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PresetError {
    #[error("there is no agent preset {name:?}{}", meant(nearest.as_deref()))]
    Unknown { name: String, nearest: Option<String> },
    #[error("the preset {name:?} has no command, and it is not built in")]
    NoCommand { name: String },
    #[error("the preset {name:?} cannot be run: {source}")]
    Program { name: String, source: ProgramError },
}

/// Resolves a preset's name, for a project at `root` and with this `PATH`.
pub fn resolve(
    name: &str,
    configured: &BTreeMap<String, Preset>,
    root: &Path,
    path: Option<&OsStr>,
) -> Result<AgentCommand, PresetError> {
    let own = configured.get(name);
    let built_in = BUILT_IN.iter().find(|agent| agent.name == name);
    let command: Vec<String> = match (own.filter(|preset| !preset.command.is_empty()), built_in) {
        (Some(preset), _) => preset.command.clone(),
        (None, Some(built_in)) => words_of(built_in),
        (None, None) if own.is_some() => return Err(PresetError::NoCommand { name: name.to_owned() }),
        (None, None) => {
            return Err(PresetError::Unknown { name: name.to_owned(), nearest: nearest(name, configured) });
        }
    };
    let Some((program, args)) = command.split_first() else {
        return Err(PresetError::NoCommand { name: name.to_owned() });
    };
    let program = program::find(program, root, path)
        .map_err(|source| PresetError::Program { name: name.to_owned(), source })?;
    let agent = Agent::of_program(&program);
    let mut env: BTreeMap<String, String> =
        agent.env.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect();
    env.extend(own.map(|preset| preset.env.clone()).unwrap_or_default());
    let default = if agent.is_known() { agent.name } else { name };
    let account = own.and_then(|preset| preset.account.clone()).unwrap_or_else(|| default.to_owned());
    Ok(AgentCommand { preset: name.to_owned(), agent, program, args: args.to_vec(), env, account })
}

/// All preset names, sorted.
pub fn names(configured: &BTreeMap<String, Preset>) -> Vec<&str> {
    let mut names: Vec<&str> = BUILT_IN.iter().map(|agent| agent.name).collect();
    names.extend(configured.keys().map(String::as_str));
    names.sort_unstable();
    names.dedup();
    names
}

/// The first preset whose program is available, preferably one that was tested with tenure.
pub fn any_runnable<'c>(
    configured: &'c BTreeMap<String, Preset>,
    root: &Path,
    path: Option<&OsStr>,
) -> Option<&'c str> {
    let untested = |name: &str| BUILT_IN.iter().any(|agent| agent.name == name && !agent.tested);
    let mut names = names(configured);
    names.sort_by_key(|name| untested(name) && !configured.contains_key(*name));
    names.into_iter().find(|name| resolve(name, configured, root, path).is_ok())
}

fn nearest(name: &str, configured: &BTreeMap<String, Preset>) -> Option<String> {
    let score = |other: &&str| strsim::jaro_winkler(name, other);
    let names = names(configured);
    let best = names.into_iter().max_by(|a, b| score(a).total_cmp(&score(b)))?;
    (score(&best) >= 0.7).then(|| best.to_owned())
}

fn meant(nearest: Option<&str>) -> String {
    nearest.map(|name| format!("; did you mean {name}?")).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    struct Project {
        folder: tempfile::TempDir,
    }

    impl Project {
        fn new(programs: &[&str]) -> Self {
            let folder = tempfile::tempdir().unwrap();
            for name in programs {
                let path = folder.path().join(name);
                std::fs::write(&path, "").unwrap();
                std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
            }
            Self { folder }
        }

        fn resolve(
            &self,
            name: &str,
            configured: &BTreeMap<String, Preset>,
        ) -> Result<AgentCommand, PresetError> {
            let root = self.folder.path();
            resolve(name, configured, root, Some(root.as_os_str()))
        }
    }

    type PresetRow<'a> = (&'a str, &'a [&'a str], &'a [(&'a str, &'a str)]);

    fn presets(entries: &[PresetRow<'_>]) -> BTreeMap<String, Preset> {
        let texts = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect();
        entries
            .iter()
            .map(|(name, command, env)| {
                let env = env.iter().map(|&(key, value)| (key.to_owned(), value.to_owned())).collect();
                ((*name).to_owned(), Preset { command: texts(command), env, account: None })
            })
            .collect()
    }

    #[test]
    fn the_built_in_presets_have_the_documented_arguments() {
        let project = Project::new(&["claude", "codex", "copilot", "gemini", "opencode"]);
        let args = |name| project.resolve(name, &BTreeMap::new()).unwrap().args.join(" ");
        let claude = "-p --output-format stream-json --verbose --permission-mode acceptEdits --allowedTools Bash(tenure ";
        assert!(args("claude").starts_with(claude) && args("claude").ends_with(":*),mcp__tenure"));
        assert_eq!(
            args("codex"),
            "exec --json -s workspace-write --skip-git-repo-check -c allow_login_shell=false -"
        );
        assert_eq!(args("copilot"), "--allow-all-tools --output-format json");
        assert_eq!(args("gemini"), "-o stream-json --approval-mode yolo");
        assert_eq!(args("opencode"), "run --auto --format json");
    }

    #[test]
    fn claude_may_run_exactly_the_verbs_that_an_agent_under_a_runner_may_use() {
        let project = Project::new(&["claude"]);
        let args = project.resolve("claude", &BTreeMap::new()).unwrap().args;
        let list = &args[args.iter().position(|arg| arg == "--allowedTools").unwrap() + 1];
        let allowed: Vec<&str> = list
            .split(',')
            .filter(|rule| *rule != "mcp__tenure")
            .map(|rule| rule.strip_prefix("Bash(tenure ").unwrap().strip_suffix(":*)").unwrap())
            .collect();
        assert_eq!(allowed, callable_verbs());
        for needed in ["task done", "tasks done", "task show", "task approve", "msg send", "task add"] {
            assert!(allowed.contains(&needed), "{needed}");
        }
        for shell in ["exclusive run", "task run", "tasks run", "jobs start", "hooks run", "config set"] {
            assert!(!allowed.contains(&shell), "{shell}");
        }
    }

    #[test]
    fn agents_that_support_it_resume_a_conversation() {
        let project =
            Project::new(&["agy", "amp", "claude", "codex", "copilot", "gemini", "opencode", "mine"]);
        let configured = presets(&[("mine", &["./mine"], &[])]);
        let args = |name| {
            let agent = project.resolve(name, &configured).unwrap();
            agent.resuming("c1").map(|args| args.join(" "))
        };
        for (name, end) in [
            ("claude", " --resume c1"),
            ("codex", " resume c1 -"),
            ("copilot", " --resume=c1"),
            ("gemini", " --resume c1"),
            ("opencode", "run --auto --format json --session c1"),
            ("agy", " --conversation c1 -p"),
        ] {
            let args = args(name).unwrap();
            assert!(args.ends_with(end), "{name}: {args}");
        }
        assert!(args("amp").unwrap().starts_with("threads continue c1 "));
        assert_eq!(args("mine"), None);
    }

    #[test]
    fn a_configured_variable_replaces_one_of_the_program() {
        let project = Project::new(&["gemini"]);
        let trust = |configured: &BTreeMap<String, Preset>| {
            let agent = project.resolve("gemini", configured).unwrap();
            agent.env.get("GEMINI_CLI_TRUST_WORKSPACE").cloned()
        };
        assert_eq!(trust(&BTreeMap::new()).as_deref(), Some("true"));
        let configured = presets(&[("gemini", &[], &[("GEMINI_CLI_TRUST_WORKSPACE", "false")])]);
        assert_eq!(trust(&configured).as_deref(), Some("false"));
    }

    #[test]
    fn a_configured_command_replaces_the_arguments_and_its_variables_are_added() {
        let project = Project::new(&["claude", "agent.sh"]);
        let configured = presets(&[
            ("claude", &[], &[("MODEL", "large")]),
            ("mine", &["./agent.sh", "--careful"], &[("A", "1")]),
        ]);
        let claude = project.resolve("claude", &configured).unwrap();
        assert_eq!(claude.args.first().map(String::as_str), Some("-p"));
        assert_eq!(claude.env.get("MODEL").map(String::as_str), Some("large"));
        let mine = project.resolve("mine", &configured).unwrap();
        assert_eq!(mine.program, project.folder.path().join("./agent.sh"));
        assert_eq!((mine.args.as_slice(), mine.env.len()), (["--careful".to_owned()].as_slice(), 1));
    }

    #[test]
    fn errors_name_the_preset_and_the_nearest_known_one() {
        let project = Project::new(&[]);
        let configured = presets(&[("careful", &["./gone.sh"], &[]), ("empty", &[], &[])]);
        for (name, message) in [
            ("cluade", "there is no agent preset \"cluade\"; did you mean claude?"),
            ("carefull", "there is no agent preset \"carefull\"; did you mean careful?"),
            ("xyz", "there is no agent preset \"xyz\""),
            ("empty", "the preset \"empty\" has no command, and it is not built in"),
            ("codex", "the preset \"codex\" cannot be run: codex was not found on PATH"),
        ] {
            assert_eq!(project.resolve(name, &configured).unwrap_err().to_string(), message);
        }
        assert!(matches!(
            project.resolve("careful", &configured),
            Err(PresetError::Program { source: ProgramError::Missing { .. }, .. })
        ));
    }

    #[test]
    fn an_agent_is_recognised_by_its_variables_and_the_user_of_an_editor_is_not_one() {
        let agent = |set: &str| agent_session_variable(|name| name == set);
        for marker in ["CLAUDECODE", "CODEX_CI", "CODEX_TOOL_CALL_ID", "GEMINI_CLI", "CLAUDE_EFFORT"] {
            assert_eq!(agent(marker), Some(marker));
        }
        for person in ["CLAUDE_CODE_SSE_PORT", "CURSOR_TRACE_ID", "TERM_PROGRAM", "ANTHROPIC_API_KEY"] {
            assert_eq!(agent(person), None);
        }
    }

    #[test]
    fn settings_and_credentials_are_not_session_markers() {
        assert!(SESSION_MARKERS.contains(&"CLAUDECODE"));
        for kept in
            ["CLAUDE_CODE_OAUTH_TOKEN", "CLAUDE_CODE_USE_BEDROCK", "ANTHROPIC_API_KEY", "PATH", "HOME"]
        {
            assert!(!SESSION_MARKERS.contains(&kept), "{kept}");
        }
    }
}
