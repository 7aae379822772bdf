//! `tenure msg`: messages for the next holder of a task, or for an agent.

use crate::verbs::verbs;

pub(super) mod ack;
mod filter;
mod list;
pub(super) mod send;
mod wait;

/// Messages: send, list, acknowledge, wait
///
/// Example: tenure msg send --task F001 -m 'Blocked on API credentials'
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    verb: Option<Verb>,
    #[command(flatten)]
    default: list::Args,
}

verbs! {
    enum Verb, default List(list);
    "send" => Send(send),
    "list" => List(list),
    "ack" => Ack(ack),
    "wait" => Wait(wait),
}
