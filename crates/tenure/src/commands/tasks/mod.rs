//! `tenure tasks`: everything about tasks, one file per verb.

use clap::Args as _;

use crate::answer::Answer;
use crate::app::App;
use crate::lazy::Entry;
use crate::report::{Outcome, Report};

pub(crate) mod add;
mod audit;
mod change;
mod check;
mod claim;
mod delete;
mod depend;
pub(crate) mod finish;
pub(crate) mod grant;
mod import;
pub(crate) mod list;
mod next;
pub(crate) mod renew;
mod run;
pub(crate) mod show;
mod update;
pub(crate) mod view;

/// Tasks: add, list, claim, finish
///
/// Without a subcommand it lists. A task is named by its key, its id or a beginning of it, its title or a part of that.
///
/// Example: tenure tasks --ready
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    verb: Option<Verb>,
    #[command(flatten)]
    list: list::Args,
}

#[derive(Debug, clap::Subcommand)]
enum Verb {
    Add(add::Args),
    Import(import::Args),
    List(list::Args),
    Show(show::Args),
    Audit(audit::Args),
    Update(Box<update::Args>),
    Next(next::Args),
    Claim(claim::Args),
    Renew(renew::Args),
    Release(finish::ReleaseArgs),
    Done(finish::DoneArgs),
    Fail(finish::FailArgs),
    Run(run::Args),
    Check(check::Args),
    #[command(visible_alias = "verify")]
    Approve(change::ApproveArgs),
    Reject(change::RejectArgs),
    Skip(change::SkipArgs),
    Retry(change::RetryArgs),
    Delete(delete::Args),
    Depend(depend::Args),
}

pub(crate) const VERBS: &[Entry] = &[
    ("add", None, add::Args::augment_args),
    ("import", None, import::Args::augment_args),
    ("list", None, list::Args::augment_args),
    ("show", None, show::Args::augment_args),
    ("audit", None, audit::Args::augment_args),
    ("update", None, update::Args::augment_args),
    ("next", None, next::Args::augment_args),
    ("claim", None, claim::Args::augment_args),
    ("renew", None, renew::Args::augment_args),
    ("release", None, finish::ReleaseArgs::augment_args),
    ("done", None, finish::DoneArgs::augment_args),
    ("fail", None, finish::FailArgs::augment_args),
    ("run", None, run::Args::augment_args),
    ("check", None, check::Args::augment_args),
    ("approve", Some("verify"), change::ApproveArgs::augment_args),
    ("reject", None, change::RejectArgs::augment_args),
    ("skip", None, change::SkipArgs::augment_args),
    ("retry", None, change::RetryArgs::augment_args),
    ("delete", None, delete::Args::augment_args),
    ("depend", None, depend::Args::augment_args),
];

impl Args {
    pub(crate) fn subcommand(&self) -> &'static str {
        match &self.verb {
            None | Some(Verb::List(_)) => "list",
            Some(Verb::Add(_)) => "add",
            Some(Verb::Import(_)) => "import",
            Some(Verb::Show(_)) => "show",
            Some(Verb::Audit(_)) => "audit",
            Some(Verb::Update(_)) => "update",
            Some(Verb::Next(_)) => "next",
            Some(Verb::Claim(_)) => "claim",
            Some(Verb::Renew(_)) => "renew",
            Some(Verb::Release(_)) => "release",
            Some(Verb::Done(_)) => "done",
            Some(Verb::Fail(_)) => "fail",
            Some(Verb::Run(_)) => "run",
            Some(Verb::Check(_)) => "check",
            Some(Verb::Approve(_)) => "approve",
            Some(Verb::Reject(_)) => "reject",
            Some(Verb::Skip(_)) => "skip",
            Some(Verb::Retry(_)) => "retry",
            Some(Verb::Delete(_)) => "delete",
            Some(Verb::Depend(_)) => "depend",
        }
    }
}

pub(crate) fn run(app: &mut App<'_>, args: Args) -> Outcome<Option<Answer>> {
    let Some(verb) = args.verb else { return list::run(app, args.list).map(Some) };
    if args.list != list::Args::default() {
        return Err(Report::usage("the flags before the subcommand belong to `tenure tasks list`"));
    }
    let answer = match verb {
        Verb::Add(args) => add::run(app, args)?,
        Verb::Import(args) => import::run(app, args)?,
        Verb::List(args) => list::run(app, args)?,
        Verb::Show(args) => show::run(app, args)?,
        Verb::Audit(args) => audit::run(app, args)?,
        Verb::Update(args) => update::run(app, *args)?,
        Verb::Next(args) => next::run(app, args)?,
        Verb::Claim(args) => claim::run(app, args)?,
        Verb::Renew(args) => renew::run(app, args)?,
        Verb::Release(args) => finish::release(app, args)?,
        Verb::Done(args) => finish::done(app, args)?,
        Verb::Fail(args) => finish::fail(app, args)?,
        Verb::Run(args) => run::run(app, args)?,
        Verb::Check(args) => check::run(app, args)?,
        Verb::Approve(args) => change::approve(app, args)?,
        Verb::Reject(args) => change::reject(app, args)?,
        Verb::Skip(args) => change::skip(app, args)?,
        Verb::Retry(args) => change::retry(app, args)?,
        Verb::Delete(args) => delete::run(app, args)?,
        Verb::Depend(args) => depend::run(app, args)?,
    };
    Ok(Some(answer))
}
