//! Who is calling: a flag, the environment, the person at the terminal, or nobody that could be named.

use tenure_core::Error;
use tenure_core::error::TaskName;
use tenure_core::holder::{Caller, Holder};
use tenure_core::id::Fence;
use tenure_core::text::check_agent_id;

use crate::env::Env;
use crate::report::{Outcome, Report};

/// Identity flags, on every verb that acts for somebody.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct Who {
    /// Act as this agent (or set TENURE_AGENT)
    #[arg(long, value_name = "AGENT")]
    pub(crate) agent: Option<String>,
    /// Show this fence as the credential (or set TENURE_FENCE)
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub(crate) fence: Option<i64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Source {
    Flag,
    Environment,
    Terminal,
    Nobody,
}

impl Source {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Flag => "flag",
            Self::Environment => "environment",
            Self::Terminal => "terminal",
            Self::Nobody => "none",
        }
    }
}

#[derive(Debug, Clone)]
pub(crate) struct Identity {
    /// The name, also where it is good for nothing but the record.
    pub(crate) holder: Holder,
    pub(crate) source: Source,
    pub(crate) fence: Option<Fence>,
    /// The fence came from the environment and counts for this task only.
    fence_of_task: Option<String>,
}

impl Identity {
    pub(crate) fn of(env: &Env, who: &Who) -> Outcome<Self> {
        let (fence, fence_of_task) = match who.fence {
            Some(number) => (Some(Fence::new(number)), None),
            None => match env.var("TENURE_FENCE") {
                Some(text) => {
                    let number = text.parse().map_err(|_| {
                        Report::usage(format!("TENURE_FENCE is {text:?}, which is no number"))
                            .hint("forget it", "unset TENURE_FENCE")
                    })?;
                    (Some(Fence::new(number)), env.var("TENURE_TASK_ID").map(str::to_owned))
                }
                None => (None, None),
            },
        };
        let (holder, source) = Self::holder(env, who)?;
        Ok(Self { holder, source, fence, fence_of_task })
    }

    fn holder(env: &Env, who: &Who) -> Outcome<(Holder, Source)> {
        let named = match (&who.agent, env.var("TENURE_AGENT")) {
            (Some(agent), _) => Some((agent.as_str(), Source::Flag)),
            (None, Some(agent)) => Some((agent, Source::Environment)),
            (None, None) => None,
        };
        if let Some((id, source)) = named {
            check_agent_id(id).map_err(Error::from)?;
            return Ok((Holder::agent(id), source));
        }
        Ok(match &env.terminal {
            Some(terminal) => {
                (Holder::person(format!("{}@{}:{terminal}", env.user, env.hostname)), Source::Terminal)
            }
            // Good for the record of who changed something. Nothing is ever held under it.
            None => (Holder::person(format!("{}@{}", env.user, env.hostname)), Source::Nobody),
        })
    }

    /// Somebody whose word on a held task can be judged.
    pub(crate) fn for_task(&self, task_id: &str, key: &str, verb: &str) -> Outcome<Caller> {
        let fence = self.fence_for(task_id);
        if self.source == Source::Nobody && fence.is_none() {
            let how = "give --agent ID or --fence N, or set TENURE_AGENT";
            return Err(Report::usage(format!("`tasks {verb}` needs to know who is calling: {how}"))
                .hint("see who holds it", format!("tenure tasks show {key}")));
        }
        Ok(Caller::new(self.holder.clone()).with_fence(fence))
    }

    /// Somebody to put on the record, who may happen to hold the task.
    pub(crate) fn actor(&self, task_id: Option<&str>) -> Caller {
        let fence = task_id.map_or(self.fence, |id| self.fence_for(id));
        Caller::new(self.holder.clone()).with_fence(fence)
    }

    /// The caller of a claim of `task`, or of any task.
    pub(crate) fn claimant(&self, task: Option<&TaskName>) -> Caller {
        task.map_or_else(|| self.without_fence(), |task| self.actor(Some(&task.id)))
    }

    /// The name alone: a fence speaks for one task, never for another that is still to be found.
    pub(crate) fn without_fence(&self) -> Caller {
        Caller::new(self.holder.clone())
    }

    pub(crate) fn become_agent(&mut self, id: String) {
        self.holder = Holder::agent(id);
        self.source = Source::Environment;
    }

    fn fence_for(&self, task_id: &str) -> Option<Fence> {
        match &self.fence_of_task {
            Some(own) if own != task_id => None,
            _ => self.fence,
        }
    }

    pub(crate) fn is_named(&self) -> bool {
        self.source != Source::Nobody
    }
}
