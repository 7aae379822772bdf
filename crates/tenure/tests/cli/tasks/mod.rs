//! One file per verb of `tenure tasks`.

mod add;
mod audit;
mod change;
mod check;
mod claim;
mod delete;
mod depend;
mod export;
mod finish;
mod import;
mod list;
mod next;
mod renew;
mod show;
mod update;
