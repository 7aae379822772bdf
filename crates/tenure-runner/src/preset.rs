//! Agent presets: the program that works on a task, its arguments and variables.
//!
//! Guarantees: a configured `command` replaces all built-in arguments, including those that implement `runners.permissions`;
//! a configured `env` is added to the variables of the program, which it can replace. Nothing is run or changed here. Not
//! guaranteed: that the program still exists when it is started.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};
use tenure_core::config::{Config, Permissions, Preset};
use tenure_core::parking::ParkingScope;

use crate::agents::{Access, AccessError, Agent, BUILT_IN, Place};
use crate::program::{self, ProgramError};
use crate::sys;

/// The programs that Claude Code's sandbox needs on Linux.
const SANDBOX: [&str; 2] = ["bwrap", "socat"];

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

/// A variable that is set and that only agents' processes have.
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
    /// The arguments that are the same for every task. [`Self::args_at`] adds those that depend on where the agent works.
    pub args: Vec<String>,
    /// What the agent may do; `None` if the command is configured.
    pub granted: Option<Granted>,
    /// Added to the environment. May contain secrets, so it must never be logged.
    pub env: BTreeMap<String, String>,
    /// `presets.NAME.account`; the agent's name by default, and the preset's for a program that is not known.
    pub account: String,
}

impl AgentCommand {
    /// All arguments of an agent that works at this place.
    pub fn args_at(&self, place: &Place, conversation: Option<Conversation<'_>>) -> Vec<String> {
        let granted = self.granted.as_ref();
        let built_in = granted.and_then(|granted| self.agent.args(&granted.access(Some(place))).ok());
        let args = built_in.unwrap_or_else(|| self.args.clone());
        match conversation {
            Some(Conversation::New(name)) if granted.is_some() => self.agent.beginning(&args, name),
            Some(Conversation::Resumed(name)) => self.agent.resuming(&args, name).unwrap_or(args),
            _ => args,
        }
    }

    /// Whether the name of a conversation can be chosen before the agent is started.
    pub fn can_begin(&self) -> bool {
        self.granted.is_some() && self.agent.can_begin()
    }

    /// A sentence for the user of an agent that `runners.permissions: work` does not limit.
    pub fn unlimited(&self) -> Option<String> {
        let granted = self.granted.as_ref()?;
        let unlimited = granted.permissions == Permissions::Work && !self.agent.is_sandboxed;
        unlimited.then(|| format!("{} has no sandbox: it may do everything that you may", self.agent.name))
    }

    /// What is parked when this agent cannot work.
    pub fn scope(&self) -> ParkingScope {
        let program = self.program.to_string_lossy();
        let variables = self.env.iter().flat_map(|(name, value)| [name.as_str(), value.as_str()]);
        let words = std::iter::once(program.as_ref()).chain(self.args.iter().map(String::as_str));
        let permissions = self.granted.as_ref().map(|granted| granted.permissions.as_str());
        ParkingScope {
            preset: self.preset.clone(),
            account: self.account.clone(),
            host: tenure_lock::host_id(),
            fingerprint: fingerprint(words.chain(variables).chain(permissions)),
        }
    }
}

/// A preset that cannot be started as it is configured.
#[derive(Debug, Clone)]
pub struct UnusablePreset {
    /// What is parked because of it. The fingerprint is that of the reason: it changes when the preset can be started, or
    /// fails for another reason.
    pub scope: ParkingScope,
    pub error: PresetError,
}

/// Resolves a preset, or finds out what to park because it cannot be started.
pub fn resolve_or_park(name: &str, source: &PresetSource<'_>) -> Result<AgentCommand, Box<UnusablePreset>> {
    resolve(name, source).map_err(|error| {
        let account = source.configured.get(name).and_then(|own| own.account.clone());
        let scope = ParkingScope {
            preset: name.to_owned(),
            account: account.unwrap_or_else(|| name.to_owned()),
            host: tenure_lock::host_id(),
            fingerprint: fingerprint([error.to_string().as_str()].into_iter()),
        };
        Box::new(UnusablePreset { scope, error })
    })
}

fn fingerprint<'a>(words: impl Iterator<Item = &'a str>) -> String {
    let mut hash = Sha256::new();
    for word in words {
        hash.update(word.as_bytes());
        hash.update([0]);
    }
    let mut fingerprint = String::new();
    for byte in &hash.finalize()[..16] {
        let _ = write!(fingerprint, "{byte:02x}");
    }
    fingerprint
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
    #[error("the preset {name:?} cannot be run with these permissions: {source}")]
    Access { name: String, source: AccessError },
}

impl PresetError {
    /// The reason, for a message that already names the preset.
    pub fn reason(&self) -> String {
        match self {
            Self::Program { source, .. } => source.to_string(),
            Self::Access { source, .. } => source.to_string(),
            Self::Unknown { .. } | Self::NoCommand { .. } => self.to_string(),
        }
    }
}

/// The inputs for resolving a preset.
#[derive(Debug, Clone, Copy)]
pub struct PresetSource<'a> {
    pub configured: &'a BTreeMap<String, Preset>,
    pub permissions: Permissions,
    /// `runners.allow`.
    pub allow: &'a [String],
    /// The project's root.
    pub root: &'a Path,
    pub path: Option<&'a OsStr>,
}

impl<'a> PresetSource<'a> {
    pub fn of(config: &'a Config, root: &'a Path, path: Option<&'a OsStr>) -> Self {
        let (configured, permissions) = (&config.presets, config.runners.permissions);
        Self { configured, permissions, allow: &config.runners.allow, root, path }
    }

    /// What a built-in agent may do. On macOS the sandbox is part of the system.
    fn granted(&self) -> Granted {
        let on_path = |name: &str| program::find(name, self.root, self.path).is_ok();
        Granted {
            permissions: self.permissions,
            allow: self.allow.to_vec(),
            has_sandbox: sys::SYSTEM_HAS_SANDBOX || SANDBOX.into_iter().all(on_path),
        }
    }
}

/// What a built-in agent may do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Granted {
    pub permissions: Permissions,
    allow: Vec<String>,
    /// Whether the programs that Claude Code's sandbox needs are installed.
    pub has_sandbox: bool,
}

impl Granted {
    fn access<'a>(&'a self, place: Option<&'a Place>) -> Access<'a> {
        let Self { permissions, allow, has_sandbox } = self;
        Access { permissions: *permissions, allow, has_sandbox: *has_sandbox, place }
    }
}

/// The conversation of an agent that is started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Conversation<'a> {
    /// A new conversation, with this name if the agent lets the caller choose it.
    New(&'a str),
    Resumed(&'a str),
}

/// The command line of a built-in preset with these permissions, whether or not its program is installed. If the agent
/// cannot have these permissions here, it is the command line with a sandbox, and the reason.
pub fn built_in_command(name: &str, source: &PresetSource<'_>) -> Option<(Vec<String>, Option<AccessError>)> {
    let agent = BUILT_IN.iter().find(|agent| agent.name == name)?;
    let with_sandbox = || Granted { has_sandbox: true, ..source.granted() };
    let (args, obstacle) = match agent.args(&source.granted().access(None)) {
        Ok(args) => (args, None),
        Err(error) => (agent.args(&with_sandbox().access(None)).ok()?, Some(error)),
    };
    Some((std::iter::once(agent.program.to_owned()).chain(args).collect(), obstacle))
}

/// Resolves a preset's name.
pub fn resolve(name: &str, source: &PresetSource<'_>) -> Result<AgentCommand, PresetError> {
    let own = source.configured.get(name);
    let configured = own.map(|preset| preset.command.as_slice()).and_then(<[String]>::split_first);
    let built_in = BUILT_IN.iter().find(|agent| agent.name == name);
    let program = match (configured, built_in) {
        (Some((program, _)), _) => program.as_str(),
        (None, Some(built_in)) => built_in.program,
        (None, None) if own.is_some() => return Err(PresetError::NoCommand { name: name.to_owned() }),
        (None, None) => {
            let nearest = nearest(name, source.configured);
            return Err(PresetError::Unknown { name: name.to_owned(), nearest });
        }
    };
    let program = program::find(program, source.root, source.path)
        .map_err(|source| PresetError::Program { name: name.to_owned(), source })?;
    let agent = Agent::of_program(&program);
    let granted = source.granted();
    let access = granted.access(None);
    let (args, mut env, granted) = match configured {
        Some((_, args)) => {
            let unlimited = Access { permissions: Permissions::Full, ..access };
            (args.to_vec(), agent.env(&unlimited), None)
        }
        None => {
            let args = agent.args(&access);
            let refused = |source| PresetError::Access { name: name.to_owned(), source };
            (args.map_err(refused)?, agent.env(&access), Some(granted))
        }
    };
    env.extend(own.map(|preset| preset.env.clone()).unwrap_or_default());
    let default = if agent.is_known() { agent.name } else { name };
    let account = own.and_then(|preset| preset.account.clone()).unwrap_or_else(|| default.to_owned());
    Ok(AgentCommand { preset: name.to_owned(), agent, program, args, granted, env, account })
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
pub fn any_runnable<'c>(source: &PresetSource<'c>) -> Option<&'c str> {
    let untested = |name: &str| BUILT_IN.iter().any(|agent| agent.name == name && !agent.tested);
    let mut names = names(source.configured);
    names.sort_by_key(|name| untested(name) && !source.configured.contains_key(*name));
    names.into_iter().find(|name| resolve(name, source).is_ok())
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

    use serde_json::{Value, json};
    use tenure_core::supervised::callable_verbs;

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
            self.resolve_with(name, configured, Permissions::Work, &[])
        }

        fn resolve_with(
            &self,
            name: &str,
            configured: &BTreeMap<String, Preset>,
            permissions: Permissions,
            allow: &[String],
        ) -> Result<AgentCommand, PresetError> {
            let root = self.folder.path();
            resolve(
                name,
                &PresetSource { configured, permissions, allow, root, path: Some(root.as_os_str()) },
            )
        }

        fn place(&self) -> Place {
            let (root, tenure) = (self.folder.path().to_owned(), PathBuf::from("/usr/bin/tenure"));
            Place { workdir: root.clone(), root, tenure }
        }

        /// All arguments of a built-in agent.
        fn args_of(&self, name: &str, permissions: Permissions, allow: &[&str]) -> Vec<String> {
            let allow: Vec<String> = allow.iter().map(|&command| command.to_owned()).collect();
            let agent = self.resolve_with(name, &BTreeMap::new(), permissions, &allow).unwrap();
            agent.args_at(&self.place(), None)
        }

        /// The settings that claude gets.
        fn claude_settings(&self, permissions: Permissions, allow: &[&str]) -> Value {
            let args = self.args_of("claude", permissions, allow);
            let at = args.iter().position(|arg| arg == "--settings").unwrap();
            serde_json::from_str(&args[at + 1]).unwrap()
        }
    }

    fn rules(settings: &Value) -> Vec<&str> {
        settings["permissions"]["allow"]
            .as_array()
            .unwrap()
            .iter()
            .map(|rule| rule.as_str().unwrap())
            .collect()
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
        let project = Project::new(&["claude", "codex", "copilot", "gemini", "opencode", "bwrap", "socat"]);
        let args = |name| project.resolve(name, &BTreeMap::new()).unwrap().args.join(" ");
        let claude = "-p --output-format stream-json --verbose --permission-mode acceptEdits --settings {";
        assert!(args("claude").starts_with(claude));
        assert_eq!(
            args("codex"),
            "exec --json --skip-git-repo-check -c allow_login_shell=false -c default_permissions=\"tenure\" -"
        );
        assert_eq!(args("copilot"), "--output-format json --no-ask-user --allow-all-tools");
        assert_eq!(args("gemini"), "-o stream-json --approval-mode yolo");
        assert_eq!(args("opencode"), "run --auto --format json");
    }

    #[test]
    fn claude_works_in_its_sandbox_or_with_the_allowed_commands_or_not_at_all() {
        let with = Project::new(&["claude", "bwrap", "socat"]);
        let sandbox = with.claude_settings(Permissions::Work, &[])["sandbox"].take();
        for (key, value) in [
            ("enabled", true),
            ("autoAllowBashIfSandboxed", true),
            ("failIfUnavailable", true),
            ("allowUnsandboxedCommands", false),
        ] {
            assert_eq!(sandbox[key], value, "{key}");
        }
        let config = with.place().root.join(".tenure/config.yaml");
        assert_eq!(sandbox["filesystem"]["denyWrite"][0], config.to_string_lossy().as_ref());

        let without = Project::new(&["claude", "socat"]);
        let settings = without.claude_settings(Permissions::Work, &["npm test", "git commit"]);
        assert!(settings["sandbox"].is_null());
        assert!(rules(&settings).ends_with(&["Bash(npm test:*)", "Bash(git commit:*)"]));
        let refused = without.resolve("claude", &BTreeMap::new()).unwrap_err();
        let source = AccessError::NoSandbox;
        assert_eq!(refused, PresetError::Access { name: "claude".to_owned(), source });

        let settings = without.claude_settings(Permissions::Edit, &["npm test"]);
        assert!(settings["sandbox"].is_null() && !rules(&settings).contains(&"Bash(npm test:*)"));
        let full = without.args_of("claude", Permissions::Full, &[]).join(" ");
        assert!(full.contains("--permission-mode bypassPermissions --mcp-config "), "{full}");
    }

    #[test]
    fn codex_may_commit_but_not_change_what_git_runs() {
        let project = Project::new(&["codex"]);
        let git = project.place().root.join(".git");
        std::fs::create_dir_all(git.join("hooks")).unwrap();
        std::fs::write(git.join("config"), "").unwrap();
        std::fs::write(git.join("HEAD"), "").unwrap();
        let args = |permissions| project.args_of("codex", permissions, &[]).join(" ");
        let rule = |path: PathBuf, access: &str| format!("\"{}\"=\"{access}\"", path.display());
        let work = args(Permissions::Work);
        for rule in [
            rule(git.clone(), "write"),
            rule(git.join("hooks"), "read"),
            rule(git.join("config"), "read"),
            rule(project.place().root.join(".tenure/config.yaml"), "read"),
        ] {
            assert!(work.contains(&rule), "{rule}: {work}");
        }
        assert!(!args(Permissions::Edit).contains(&rule(git, "write")));
        assert!(args(Permissions::Full).contains("sandbox_mode=\"danger-full-access\""));
        for permissions in Permissions::ALL {
            let args = args(permissions);
            assert!(args.contains("mcp_servers.tenure.command=\"/usr/bin/tenure\"") && args.ends_with(" -"));
        }
    }

    #[test]
    fn an_agent_that_cannot_be_limited_to_editing_is_refused_and_not_given_more() {
        let project = Project::new(&["agy", "amp", "cursor-agent", "copilot", "gemini", "opencode"]);
        let edit = |name| project.resolve_with(name, &BTreeMap::new(), Permissions::Edit, &[]);
        for name in ["agy", "amp", "cursor"] {
            assert!(matches!(edit(name), Err(PresetError::Access { .. })), "{name}");
        }
        let copilot = edit("copilot").unwrap().args.join(" ");
        assert!(
            copilot.contains("--allow-tool=write --allow-tool=shell(tenure ")
                && !copilot.contains("all-tools")
        );
        let gemini = edit("gemini").unwrap().args.join(" ");
        assert!(gemini.contains("auto_edit --allowed-tools=run_shell_command(tenure "), "{gemini}");
        let opencode: Value =
            serde_json::from_str(&edit("opencode").unwrap().env["OPENCODE_PERMISSION"]).unwrap();
        assert_eq!(
            (&opencode["bash"]["*"], &opencode["bash"]["tenure task done *"]),
            (&json!("deny"), &json!("allow"))
        );
    }

    #[test]
    fn only_agents_without_a_sandbox_are_said_to_be_unlimited() {
        let project = Project::new(&["claude", "codex", "gemini", "opencode", "bwrap", "socat"]);
        let unlimited = |name, permissions| {
            project.resolve_with(name, &BTreeMap::new(), permissions, &[]).unwrap().unlimited().is_some()
        };
        for (name, permissions, expected) in [
            ("gemini", Permissions::Work, true),
            ("opencode", Permissions::Work, true),
            ("gemini", Permissions::Full, false),
            ("claude", Permissions::Work, false),
            ("codex", Permissions::Work, false),
        ] {
            assert_eq!(unlimited(name, permissions), expected, "{name}");
        }
    }

    #[test]
    fn other_permissions_make_another_fingerprint() {
        let project = Project::new(&["opencode"]);
        let fingerprint = |permissions| {
            let agent = project.resolve_with("opencode", &BTreeMap::new(), permissions, &[]).unwrap();
            agent.scope().fingerprint
        };
        assert_ne!(fingerprint(Permissions::Work), fingerprint(Permissions::Full));
        assert_eq!(fingerprint(Permissions::Work), fingerprint(Permissions::Work));
    }

    #[test]
    fn claude_may_run_exactly_the_verbs_that_an_agent_under_a_runner_may_use() {
        let project = Project::new(&["claude"]);
        let settings = project.claude_settings(Permissions::Edit, &[]);
        let allowed: Vec<&str> = rules(&settings)
            .into_iter()
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
    fn agents_that_support_it_begin_and_resume_a_conversation() {
        let programs =
            ["agy", "amp", "claude", "codex", "copilot", "gemini", "opencode", "mine", "bwrap", "socat"];
        let project = Project::new(&programs);
        let configured = presets(&[("mine", &["./mine"], &[]), ("second", &["claude", "-p"], &[])]);
        let with = |name, conversation| {
            let agent = project.resolve(name, &configured).unwrap();
            agent.args_at(&project.place(), Some(conversation)).join(" ")
        };
        let args = |name| with(name, Conversation::Resumed("c1"));
        for (name, end) in [
            ("claude", " --resume c1"),
            ("codex", " resume c1 -"),
            ("copilot", " --resume=c1"),
            ("gemini", " --resume c1"),
            ("opencode", "run --auto --format json --session c1"),
            ("agy", " --conversation c1 -p"),
        ] {
            let args = args(name);
            assert!(args.ends_with(end), "{name}: {args}");
        }
        assert!(args("amp").starts_with("threads continue c1 "));
        assert_eq!(args("mine"), "");
        let begun = |name| with(name, Conversation::New("c1"));
        for (name, end) in
            [("claude", " --session-id c1"), ("copilot", " --session-id=c1"), ("gemini", " --session-id c1")]
        {
            assert!(begun(name).ends_with(end), "{name}: {}", begun(name));
        }
        // A configured command is not changed, and codex and opencode name their conversations themselves.
        for name in ["codex", "opencode", "second"] {
            assert!(!begun(name).contains("c1"), "{name}");
        }
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
        let project = Project::new(&["claude", "agent.sh", "bwrap", "socat"]);
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
