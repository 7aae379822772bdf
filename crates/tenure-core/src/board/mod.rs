//! What a board shows of a project: what waits for a person, the holders, the queue, the reasons why there is no
//! progress, what is parked, and the tasks in groups.
//!
//! [`read`] gathers the rows in the caller's transaction, and [`Rows::board`] turns them into the [`Board`], which every
//! view renders. The number of queries is bounded, whatever the number of tasks. Text is passed on as it is stored; a view
//! has to escape it.

mod attention;
mod groups;
mod model;
mod read;
mod runners;
mod task_detail;

pub use attention::{Attention, AttentionKind};
pub use groups::{Group, GroupBy, GroupId};
pub use model::{
    Board, EventLine, Held, JobLine, LeaseLine, Page, Parked, ProjectHead, RunningAttempt, TaskLine, Waiting,
    used,
};
pub use read::{Query, Rows, Surroundings, read, recent_events};
pub use runners::{RunnerLine, running_runners};
pub use task_detail::{TaskDetail, read_task};
