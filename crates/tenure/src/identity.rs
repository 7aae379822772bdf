//! The caller's identity: from a flag, the environment or the terminal, or anonymous.

use tenure_core::Error;
use tenure_core::error::TaskName;
use tenure_core::hints;
use tenure_core::holder::{Caller, Holder, HolderKind, Incarnation};
use tenure_core::id::{AttemptId, Fence, LeaseProof};
use tenure_core::supervised::Role;
use tenure_core::text::check_agent_id;

use crate::env::Env;
use crate::report::{CommandResult, Report};
use crate::supervised;

/// The flags of every verb that acts on behalf of a holder.
#[derive(Debug, Clone, Default, PartialEq, Eq, clap::Args)]
pub(crate) struct IdentityArgs {
    /// Act as this agent (or set TENURE_AGENT)
    #[arg(long, value_name = "AGENT")]
    pub(crate) agent: Option<String>,
    /// Prove that you hold the lease, with its id and key (or set TENURE_LEASE)
    #[arg(long, value_name = "LEASE-KEY", allow_hyphen_values = true)]
    pub(crate) lease: Option<String>,
    /// Act only under the lease with this fence (or set TENURE_FENCE)
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub(crate) fence: Option<i64>,
}

impl IdentityArgs {
    pub(crate) fn agent(name: Option<&str>) -> Self {
        Self { agent: name.map(str::to_owned), ..Self::default() }
    }
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
    /// The caller's name. An anonymous caller's name is used for the event feed only.
    pub(crate) holder: Holder,
    pub(crate) source: IdentitySource,
    from_flags: Presented,
    from_environment: Presented,
    /// The only task that the environment's lease applies to, if the environment names one.
    task_of_environment: Option<String>,
    /// The leader of the session at whose terminal a person works.
    terminal_leader: Option<Incarnation>,
    /// The attempt that this process belongs to.
    attempt: Option<AttemptId>,
    /// Set if the caller is an agent under a runner.
    role: Option<Role>,
}

/// The lease credentials that the caller presents.
#[derive(Debug, Clone, Default)]
struct Presented {
    proof: Option<LeaseProof>,
    fence: Option<Fence>,
}

impl Identity {
    pub(crate) fn of(env: &Env, args: &IdentityArgs) -> CommandResult<Self> {
        let (holder, source) = Self::holder(env, args)?;
        let from_flags = Presented {
            proof: args.lease.as_deref().map(|text| proof(text, "--lease")).transpose()?,
            fence: args.fence.map(Fence::new),
        };
        let unset = |report: Report, name: &str| report.hint(hints::unset(name));
        let fence = |text: &str| {
            let number = text.parse().map(Fence::new);
            number.map_err(|_| Report::usage(format!("TENURE_FENCE is not a number: {text:?}")))
        };
        let from_environment = Presented {
            proof: env
                .var("TENURE_LEASE")
                .map(|text| proof(text, "TENURE_LEASE"))
                .transpose()
                .map_err(|report| unset(report, "TENURE_LEASE"))?,
            fence: env
                .var("TENURE_FENCE")
                .map(fence)
                .transpose()
                .map_err(|report| unset(report, "TENURE_FENCE"))?,
        };
        let task_of_environment = env.var("TENURE_TASK_ID").map(str::to_owned);
        let attempt = env.var("TENURE_ATTEMPT").map(AttemptId::new);
        let role = supervised::role(env);
        let terminal_leader = env
            .terminal_leader
            .clone()
            .filter(|_| holder.kind == HolderKind::Person && source != IdentitySource::Anonymous);
        Ok(Self {
            holder,
            source,
            from_flags,
            from_environment,
            task_of_environment,
            terminal_leader,
            attempt,
            role,
        })
    }

    fn holder(env: &Env, args: &IdentityArgs) -> CommandResult<(Holder, IdentitySource)> {
        let named = match (&args.agent, env.var("TENURE_AGENT")) {
            (Some(agent), _) => Some((agent.as_str(), IdentitySource::Flag)),
            (None, Some(agent)) => Some((agent, IdentitySource::Environment)),
            (None, None) => None,
        };
        let person = env.terminal.as_ref().map(|at| format!("{}@{}:{at}", env.user, env.hostname));
        if let Some((id, source)) = named {
            check_agent_id(id).map_err(Error::from)?;
            // Printed commands name the holder with --agent, even if it is the person at this terminal.
            let is_person = person.as_deref() == Some(id);
            return Ok((if is_person { Holder::person(id) } else { Holder::agent(id) }, source));
        }
        Ok(match person {
            Some(person) => (Holder::person(person), IdentitySource::Terminal),
            // Used for the event feed only; no lease is ever held under this name.
            None => (Holder::person(format!("{}@{}", env.user, env.hostname)), IdentitySource::Anonymous),
        })
    }

    /// The caller of a verb that only the task's holder may use.
    pub(crate) fn for_task(&self, task: &TaskName, verb: &str) -> CommandResult<Caller> {
        self.check_own_task(task)?;
        let caller = self.actor(Some(&task.id));
        // A fence is public, so it identifies no caller.
        if self.source == IdentitySource::Anonymous && caller.key.is_none() {
            let how = "give --agent ID or --lease LEASE-KEY, or set TENURE_AGENT";
            return Err(Report::usage(format!("`tasks {verb}` needs the caller's identity: {how}"))
                .hint(hints::show_holder(&task.key)));
        }
        Ok(caller)
    }

    /// Refuses an agent under a runner that was not started for this task.
    pub(crate) fn check_own_task(&self, task: &TaskName) -> CommandResult<()> {
        supervised::check_own_task(self.role, self.task_of_environment.as_deref(), task)
    }

    /// The caller of a verb that anyone may use, recorded in the event feed. It may hold the task.
    pub(crate) fn actor(&self, task_id: Option<&str>) -> Caller {
        let Presented { proof, fence } = self.presented(task_id);
        self.without_lease().with_proof(proof).with_fence(fence)
    }

    /// The caller of a claim of `task`, or of any task. The lease of a person ends with the session at its terminal, so that
    /// the next window with the same name is another holder.
    pub(crate) fn claimant(&self, task: Option<&TaskName>) -> Caller {
        let caller = task.map_or_else(|| self.without_lease(), |task| self.actor(Some(&task.id)));
        Caller { process: self.terminal_leader.clone(), ..caller }
    }

    /// The caller without its lease, for work that is not chosen yet: a lease belongs to one task.
    pub(crate) fn without_lease(&self) -> Caller {
        Caller::new(self.holder.clone()).with_attempt(self.attempt.clone())
    }

    pub(crate) fn become_agent(&mut self, id: String) {
        self.holder = Holder::agent(id);
        self.source = IdentitySource::Environment;
        self.terminal_leader = None;
    }

    /// Flags override the environment. A fence from the environment goes with the environment's lease, so `--lease`
    /// overrides both.
    fn presented(&self, task_id: Option<&str>) -> Presented {
        let Presented { proof, fence } = self.from_flags.clone();
        let applies = match (&self.task_of_environment, task_id) {
            (Some(own), Some(task)) => own == task,
            _ => true,
        };
        if proof.is_some() || !applies {
            return Presented { proof, fence };
        }
        let environment = self.from_environment.clone();
        Presented { proof: environment.proof, fence: fence.or(environment.fence) }
    }

    pub(crate) fn is_named(&self) -> bool {
        self.source != IdentitySource::Anonymous
    }
}

/// The value of `source` is a secret, so an error does not repeat it.
fn proof(text: &str, source: &str) -> CommandResult<LeaseProof> {
    LeaseProof::parse(text).ok_or_else(|| {
        let form = "the id and the key of a lease, such as L1234ABCD-0123456789ABCDEF";
        Report::usage(format!("{source} is not {form}"))
    })
}
