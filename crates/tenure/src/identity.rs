//! The caller's identity: from a flag, the environment or the terminal, or anonymous.

use tenure_core::Error;
use tenure_core::error::TaskName;
use tenure_core::holder::{Caller, Holder};
use tenure_core::id::{AttemptId, Fence};
use tenure_core::text::check_agent_id;

use crate::env::Env;
use crate::report::{CommandResult, Report};

/// The flags of every verb that acts on behalf of a holder.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct IdentityArgs {
    /// Act as this agent (or set TENURE_AGENT)
    #[arg(long, value_name = "AGENT")]
    pub(crate) agent: Option<String>,
    /// Present this fence as proof of the lease (or set TENURE_FENCE)
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub(crate) fence: Option<i64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum IdentitySource {
    Flag,
    Environment,
    Terminal,
    Anonymous,
}

impl IdentitySource {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Flag => "flag",
            Self::Environment => "environment",
            Self::Terminal => "terminal",
            Self::Anonymous => "none",
        }
    }
}

#[derive(Debug, Clone)]
pub(crate) struct Identity {
    /// The caller's name. Of an anonymous caller it is used for the event feed only.
    pub(crate) holder: Holder,
    pub(crate) source: IdentitySource,
    pub(crate) fence: Option<Fence>,
    /// If the fence came from the environment: the only task that it applies to.
    fence_of_task: Option<String>,
    /// The attempt that this process belongs to.
    attempt: Option<AttemptId>,
}

impl Identity {
    pub(crate) fn of(env: &Env, args: &IdentityArgs) -> CommandResult<Self> {
        let (fence, fence_of_task) = match args.fence {
            Some(number) => (Some(Fence::new(number)), None),
            None => match env.var("TENURE_FENCE") {
                Some(text) => {
                    let number = text.parse().map_err(|_| {
                        Report::usage(format!("TENURE_FENCE is not a number: {text:?}"))
                            .hint("unset it", "unset TENURE_FENCE")
                    })?;
                    (Some(Fence::new(number)), env.var("TENURE_TASK_ID").map(str::to_owned))
                }
                None => (None, None),
            },
        };
        let (holder, source) = Self::holder(env, args)?;
        let attempt = env.var("TENURE_ATTEMPT").map(AttemptId::new);
        Ok(Self { holder, source, fence, fence_of_task, attempt })
    }

    fn holder(env: &Env, args: &IdentityArgs) -> CommandResult<(Holder, IdentitySource)> {
        let named = match (&args.agent, env.var("TENURE_AGENT")) {
            (Some(agent), _) => Some((agent.as_str(), IdentitySource::Flag)),
            (None, Some(agent)) => Some((agent, IdentitySource::Environment)),
            (None, None) => None,
        };
        if let Some((id, source)) = named {
            check_agent_id(id).map_err(Error::from)?;
            return Ok((Holder::agent(id), source));
        }
        Ok(match &env.terminal {
            Some(terminal) => (
                Holder::person(format!("{}@{}:{terminal}", env.user, env.hostname)),
                IdentitySource::Terminal,
            ),
            // Used for the event feed only; no lease is ever held under this name.
            None => (Holder::person(format!("{}@{}", env.user, env.hostname)), IdentitySource::Anonymous),
        })
    }

    /// The caller of a verb that only the task's holder may use.
    pub(crate) fn for_task(&self, task_id: &str, key: &str, verb: &str) -> CommandResult<Caller> {
        let fence = self.fence_for(task_id);
        if self.source == IdentitySource::Anonymous && fence.is_none() {
            let how = "give --agent ID or --fence N, or set TENURE_AGENT";
            return Err(Report::usage(format!("`tasks {verb}` needs the caller's identity: {how}"))
                .hint("see who holds it", format!("tenure tasks show {key}")));
        }
        Ok(self.without_fence().with_fence(fence))
    }

    /// The caller of a verb that anyone may use, recorded in the event feed. It may hold the task.
    pub(crate) fn actor(&self, task_id: Option<&str>) -> Caller {
        let fence = task_id.map_or(self.fence, |id| self.fence_for(id));
        self.without_fence().with_fence(fence)
    }

    /// The caller of a claim of `task`, or of any task.
    pub(crate) fn claimant(&self, task: Option<&TaskName>) -> Caller {
        task.map_or_else(|| self.without_fence(), |task| self.actor(Some(&task.id)))
    }

    /// The caller without its fence, for work that is not chosen yet: a fence belongs to one task.
    pub(crate) fn without_fence(&self) -> Caller {
        Caller::new(self.holder.clone()).with_attempt(self.attempt.clone())
    }

    pub(crate) fn become_agent(&mut self, id: String) {
        self.holder = Holder::agent(id);
        self.source = IdentitySource::Environment;
    }

    fn fence_for(&self, task_id: &str) -> Option<Fence> {
        match &self.fence_of_task {
            Some(own) if own != task_id => None,
            _ => self.fence,
        }
    }

    pub(crate) fn is_named(&self) -> bool {
        self.source != IdentitySource::Anonymous
    }
}
