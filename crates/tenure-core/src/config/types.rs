//! The typed configuration.

use std::collections::BTreeMap;
use std::time::Duration;

use super::hook::Hook;
use super::keys::Authority;
use super::origin::Origin;
use super::resolve::Effective;

#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    pub project: Project,
    /// Includes the password, which [`Config::entries`] masks.
    pub store_url: Option<String>,
    /// How many waiting processes of a machine keep a connection to the server.
    pub max_listeners: u32,
    /// `None` keeps the history forever.
    pub retention: Option<Duration>,
    pub locking: Locking,
    pub tasks: Tasks,
    pub review: Review,
    pub runners: Runners,
    pub mcp: Mcp,
    pub presets: BTreeMap<String, Preset>,
    /// The hooks of the user and the project; a project hook replaces a user hook of the same name.
    pub hooks: Vec<Hook>,
    /// The settings of the project's file that do not count.
    pub ignored: Vec<IgnoredSetting>,
    /// The hooks among them.
    pub ignored_hooks: Vec<Hook>,
    pub(super) hook_origins: Vec<Origin>,
    pub(super) settings: Vec<Effective>,
}

/// A setting of the project's file that does not count, because the file is not trusted or may never set it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IgnoredSetting {
    pub key: String,
    pub authority: Authority,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Project {
    pub id: Option<uuid::Uuid>,
    pub name: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Locking {
    pub task_timeout: Duration,
    pub section_timeout: Duration,
    pub lease_ttl: Duration,
    pub wait_timeout: Duration,
    pub poll_interval: Duration,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tasks {
    pub max_attempts: u32,
    pub max_rejections: u32,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Review {
    pub enabled: bool,
    pub preset: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Runners {
    pub preset: String,
    /// `None`: built-in agents have to report, others do not.
    pub require_report: Option<bool>,
    pub permissions: Permissions,
    /// Commands that claude may run where it has no sandbox.
    pub allow: Vec<String>,
    pub prompt_template: Option<String>,
    pub heartbeat_interval: Duration,
    pub stale_timeout: Duration,
    pub subprocess_hang_timeout: Duration,
    pub agent_timeout: Duration,
    pub kill_grace: Duration,
    pub max_concurrent: u32,
    pub idle_timeout: Duration,
    pub log_retention: Duration,
    /// In bytes.
    pub log_total: u64,
    pub wakeup: Wakeup,
}

/// What a built-in agent may do.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Permissions {
    /// Edit the project's files and call tenure.
    Edit,
    /// Also run commands and commit.
    #[default]
    Work,
    /// Everything that the user may do.
    Full,
}

impl Permissions {
    pub const ALL: [Self; 3] = [Self::Edit, Self::Work, Self::Full];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Edit => "edit",
            Self::Work => "work",
            Self::Full => "full",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|permissions| permissions.as_str() == text)
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wakeup {
    pub enabled: bool,
    pub check_interval: Duration,
    /// Unexpanded: a leading `~` is kept.
    pub project_paths: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mcp {
    pub release_on_disconnect: bool,
}

impl Config {
    /// Whether the project's file sets this key, and the value does not count because the file is not trusted.
    pub fn is_untrusted(&self, key: &str) -> bool {
        let is_it =
            |ignored: &IgnoredSetting| ignored.authority == Authority::NeedsTrust && ignored.key == key;
        self.ignored.iter().any(is_it)
    }

    /// Whether the project's file decides which store is used, and is not trusted. The environment overrides the file;
    /// the user's file does not, because the project would then be looked for in a store that it is not in.
    pub fn has_untrusted_store(&self) -> bool {
        let overridden = |setting: &Effective| {
            setting.key == "store.url"
                && matches!(setting.origin, Origin::Environment { .. } | Origin::Flag { .. })
        };
        self.is_untrusted("store.url") && !self.settings.iter().any(overridden)
    }
}

/// The configuration under `presets.NAME`; the built-in presets are defined by the runner.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Preset {
    /// Empty if only the environment of a built-in preset is changed.
    pub command: Vec<String>,
    pub env: BTreeMap<String, String>,
    /// The account with the provider, which is parked when it reaches a limit; the agent's name if not set.
    pub account: Option<String>,
}
