//! `tenure tasks`: everything about tasks.

use crate::verbs::verbs;

pub(crate) mod add;
mod approve;
pub(crate) mod attempt_log;
mod audit;
mod check;
pub(crate) mod claim;
mod claim_args;
mod delete;
mod depend;
mod done;
mod export;
mod fail;
mod filter_args;
pub(crate) mod finish;
pub(crate) mod grant;
pub(crate) mod grant_details;
mod import;
mod import_source;
pub(crate) mod list;
pub(crate) mod logs;
mod next;
mod reject;
mod release;
mod remark;
pub(crate) mod renew;
mod reopen;
mod retry;
mod run;
mod seen_args;
mod several;
pub(crate) mod show;
mod skip;
pub(crate) mod status_change;
mod tree;
pub(crate) mod update;
mod update_view;
pub(crate) mod view;

/// Add, list, claim and finish tasks
///
/// Without a subcommand it lists tasks. A task can be given by its key, its id or a prefix of it, or its title or a part
/// of it.
///
/// Example: tenure tasks --ready
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    verb: Option<Verb>,
    #[command(flatten)]
    default: list::Args,
}

verbs! {
    enum Verb, default List(list);
    "add" => Add(add),
    "import" => Import(import),
    "export" => Export(export),
    "list" => List(list),
    "tree" => Tree(tree),
    "show" => Show(show),
    "audit" => Audit(audit),
    "logs" => Logs(logs),
    "update" => Update(update),
    "next" => Next(next),
    "claim" => Claim(claim),
    "renew" => Renew(renew),
    "release" => Release(release),
    "done" => Done(done),
    "fail" => Fail(fail),
    "run" => Run(run),
    "check" => Check(check),
    "approve" | "verify" => Approve(approve),
    "reject" => Reject(reject),
    "skip" => Skip(skip),
    "retry" => Retry(retry),
    "reopen" => Reopen(reopen),
    "delete" => Delete(delete),
    "depend" => Depend(depend),
}
