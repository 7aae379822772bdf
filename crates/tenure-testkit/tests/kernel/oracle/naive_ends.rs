//! The naive model's end of a lease: finishing, renewing, evicting, cleaning up.

use tenure_core::ErrorCode;
use tenure_core::task::TaskStatus;

use super::command::FinishKind;
use super::naive::{Answer, Held, Naive, TTL, What, Why};

impl Naive {
    /// The lease that the caller refers to, if it is the latest of its task.
    pub(crate) fn meant(&self, actor: usize, task: usize, shown: bool) -> Result<usize, ErrorCode> {
        let latest = self.leases.iter().rposition(|held| held.what == What::Task(task));
        let fence = self.shown[actor][task].filter(|_| shown);
        let meant = match fence {
            Some(fence) => self.leases.iter().position(|held| held.fence == fence),
            None => latest.filter(|at| self.same(&self.leases[*at], actor, None)),
        };
        let meant = meant.ok_or(ErrorCode::NotHolder)?;
        if Some(meant) == latest { Ok(meant) } else { Err(ErrorCode::LeaseLost) }
    }

    /// Live, or ended only by expiry while the task was unchanged.
    fn counts(&self, held: &Held, task: usize, late: bool) -> bool {
        let by_time = matches!(held.ended, None | Some(Why::Expired)) && !self.is_dead(held);
        let untouched = matches!(self.jobs[task].status, TaskStatus::InProgress | TaskStatus::Pending);
        self.live(held) || late && by_time && untouched
    }

    pub(crate) fn finish(
        &mut self,
        actor: usize,
        task: usize,
        shown: bool,
        finish: FinishKind,
    ) -> Result<bool, ErrorCode> {
        let at = self.meant(actor, task, shown)?;
        let held = self.leases[at].clone();
        let why = if finish == FinishKind::Release { Why::Released } else { Why::Completed };
        if held.ended == Some(why) {
            let status = self.jobs[task].status;
            let said = held.said.is_some_and(|said| Answer::finish_leads_to(finish, said));
            let repeated = said || Answer::finish_leads_to(finish, status);
            return if repeated { Ok(false) } else { Err(ErrorCode::LeaseLost) };
        }
        if !self.counts(&held, task, true) {
            return Err(ErrorCode::LeaseLost);
        }
        let to = match finish {
            FinishKind::Done => TaskStatus::Completed,
            FinishKind::Fail => TaskStatus::Failed,
            FinishKind::Release => TaskStatus::Pending,
        };
        self.leases[at].ended = Some(why);
        self.leases[at].said = Some(to);
        self.jobs[task].status = to;
        self.leave_section(at, task);
        Ok(true)
    }

    pub(crate) fn renew(
        &mut self,
        actor: usize,
        task: usize,
        shown: bool,
        revive: bool,
    ) -> Result<i64, ErrorCode> {
        let at = self.meant(actor, task, shown)?;
        if !self.counts(&self.leases[at], task, revive) {
            return Err(ErrorCode::LeaseLost);
        }
        let was_live = self.live(&self.leases[at]);
        if let Some(section) = self.serial(task) {
            self.keep_section(at, section, was_live)?;
        }
        let held = &mut self.leases[at];
        held.ended = None;
        held.expires = self.now + TTL;
        self.jobs[task].status = TaskStatus::InProgress;
        Ok(self.leases[at].fence)
    }

    /// Renews the section with its task, or revives it unless another holder works there.
    fn keep_section(&mut self, task: usize, section: usize, was_live: bool) -> Result<(), ErrorCode> {
        let (name, pid) = (self.leases[task].name, self.leases[task].pid);
        let latest = self.leases.iter().rposition(|held| held.what == What::Section(section));
        let now = self.now;
        if let Some(at) = latest {
            let live = self.works_there(at);
            let dead = self.is_dead(&self.leases[at]);
            let held = &mut self.leases[at];
            let own = held.name == name && held.pid == pid;
            let by_time = matches!(held.ended, None | Some(Why::Expired)) && !dead;
            if own && by_time {
                held.ended = None;
                held.expires = held.expires.max(now + TTL);
                return Ok(());
            }
            if live {
                return if was_live { Ok(()) } else { Err(ErrorCode::LeaseLost) };
            }
            if held.ended.is_none() {
                self.close_lapsed(at);
            }
        }
        self.grant(What::Section(section), name, pid);
        Ok(())
    }

    pub(crate) fn override_status(
        &mut self,
        actor: usize,
        task: usize,
        to: TaskStatus,
        force: bool,
    ) -> Result<(), ErrorCode> {
        if let Some(at) = self.open(What::Task(task)) {
            let held = &self.leases[at];
            let said = matches!(to, TaskStatus::Completed | TaskStatus::Review | TaskStatus::Failed);
            let why = if !self.live(held) {
                self.reason(held)
            } else if self.same(held, actor, None) {
                if said { Why::Completed } else { Why::Released }
            } else if force {
                Why::Forced
            } else {
                return Err(ErrorCode::TaskLocked);
            };
            self.leases[at].ended = Some(why);
            self.leases[at].said = Some(to);
            self.leave_section(at, task);
        }
        // The override is final: the holder of an expired lease can no longer finish the task.
        let latest = self.leases.iter().rposition(|held| held.what == What::Task(task));
        if let Some(at) = latest.filter(|at| self.leases[*at].ended == Some(Why::Expired)) {
            self.leases[at].ended = Some(Why::Forced);
        }
        self.jobs[task].status = to;
        Ok(())
    }

    fn reason(&self, held: &Held) -> Why {
        if self.is_dead(held) { Why::Died } else { Why::Expired }
    }

    /// Closes a lapsed lease and returns its task to pending.
    pub(crate) fn close_lapsed(&mut self, at: usize) {
        self.end(at, self.reason(&self.leases[at].clone()));
    }

    fn end(&mut self, at: usize, why: Why) {
        self.leases[at].ended = Some(why);
        if let What::Task(task) = self.leases[at].what {
            if self.jobs[task].status == TaskStatus::InProgress {
                self.jobs[task].status = TaskStatus::Pending;
            }
            self.leave_section(at, task);
        }
        if let What::Section(section) = self.leases[at].what {
            self.close_lapsed_in_section(at, section);
        }
    }

    /// Closes lapsed leases on tasks of the section together with it.
    fn close_lapsed_in_section(&mut self, over: usize, section: usize) {
        let over = self.leases[over].clone();
        for at in 0..self.leases.len() {
            let held = &self.leases[at];
            let inside = matches!(held.what, What::Task(task) if self.serial(task) == Some(section));
            if inside
                && held.ended.is_none()
                && held.name == over.name
                && held.pid == over.pid
                && !self.live(held)
            {
                self.close_lapsed(at);
            }
        }
    }

    /// The section ends with the last live task of its holder.
    fn leave_section(&mut self, at: usize, task: usize) {
        let Some(section) = self.serial(task) else { return };
        let ended = self.leases[at].clone();
        let works_on = |held: &Held| match held.what {
            What::Task(other) => {
                self.serial(other) == Some(section) && held.name == ended.name && self.live(held)
            }
            What::Section(_) => false,
        };
        if self.leases.iter().any(works_on) {
            return;
        }
        if let Some(open) = self.open(What::Section(section)) {
            let held = &mut self.leases[open];
            let own = held.name == ended.name
                && (held.pid == ended.pid || held.pid.is_none() || ended.pid.is_none());
            if own {
                held.ended = Some(match ended.ended {
                    Some(why @ (Why::Expired | Why::Died)) => why,
                    _ => Why::Released,
                });
                self.close_lapsed_in_section(open, section);
            }
        }
    }

    pub(crate) fn force(&mut self, what: What) -> Answer {
        let Some(at) = self.open(what) else { return Answer::Nothing };
        let name = self.leases[at].name;
        let mut ending = vec![at];
        if let What::Section(section) = what {
            ending.extend((0..self.leases.len()).filter(|other| match self.leases[*other].what {
                What::Task(task) => {
                    let held = &self.leases[*other];
                    held.ended.is_none() && held.name == name && self.jobs[task].section == Some(section)
                }
                What::Section(_) => false,
            }));
        }
        for at in &ending {
            let why = if self.live(&self.leases[*at]) { Why::Forced } else { self.reason(&self.leases[*at]) };
            self.end(*at, why);
        }
        Answer::Ended(ending.len())
    }

    pub(crate) fn cleanup(&mut self) -> usize {
        let lapsed: Vec<usize> = (0..self.leases.len())
            .filter(|at| self.leases[*at].ended.is_none() && !self.live(&self.leases[*at]))
            .collect();
        for at in &lapsed {
            if self.leases[*at].ended.is_none() {
                self.close_lapsed(*at);
            }
        }
        lapsed.len()
    }

    /// Refused while leased; a lapsed lease is closed first.
    pub(crate) fn relocate(&mut self, task: usize, section: Option<usize>) -> Answer {
        self.cleanup();
        if self.open(What::Task(task)).is_some() {
            return Answer::Refused(ErrorCode::TaskLocked);
        }
        self.jobs[task].section = section;
        Answer::Nothing
    }
}
