//! The pretend agent, a shell script that follows the steps in its prompt, and projects that are configured to run
//! it.

use std::sync::Arc;

use super::{Project, Sandbox, Suite, write_program};

/// A prompt line `do: STEP` is one step; the script lists the steps.
pub(super) const SCRIPT: &str = include_str!("pretend-agent.sh");

/// No lease expires during a test.
pub const PATIENT: &str = "runners: {preset: pretend, killGrace: 300ms}\nlocking: {pollInterval: 1s}";

/// Leases expire after three seconds without a heartbeat.
pub const HASTY: &str = "runners: {preset: pretend, killGrace: 300ms, heartbeatInterval: 500ms, staleTimeout: 3s}\n\
                         locking: {pollInterval: 500ms, taskTimeout: 3s, sectionTimeout: 3s}";

impl Sandbox {
    /// `presets:` with the pretend agent as `pretend`, and as `judge`, which follows the lines `review: STEP`. `pretend-claude`
    /// and `pretend-claude-judge` are the same script under the name of a program whose output the runner understands.
    pub fn agent_presets(&self) -> String {
        let (script, shared) = self.install_agent();
        let claude = self.shared("claude");
        write_program(&claude, SCRIPT);
        let (script, claude, shared) = (script.display(), claude.display(), shared.display());
        format!(
            "presets:\n  pretend: {{command: ['{script}'], env: {{PRETEND: '{shared}'}}}}\n  \
             judge: {{command: ['{script}'], env: {{PRETEND: '{shared}', WORD: review}}}}\n  \
             pretend-claude: {{command: ['{claude}'], env: {{PRETEND: '{shared}'}}}}\n  \
             pretend-claude-judge: {{command: ['{claude}'], env: {{PRETEND: '{shared}', WORD: review}}}}\n",
        )
    }
}

impl Project {
    /// A project `shop` in a new sandbox, with the pretend agent and this configuration.
    pub fn with_agent(suite: Suite, config: &str) -> Self {
        let sandbox: Arc<Sandbox> = Sandbox::new(suite);
        let project = sandbox.project("shop");
        project.configure(&format!("{}{config}", sandbox.agent_presets()));
        project
    }
}
