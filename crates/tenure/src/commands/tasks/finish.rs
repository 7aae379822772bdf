//! `done`, `fail` and `release`: the holder's last word on a task.

use serde_json::json;
use tenure_core::error::TaskName;
use tenure_core::kernel::{self, Finish, Finished};
use tenure_core::task::TaskStatus;

use super::change::{OptionalRemark, Remark};
use super::view;
use crate::answer::Answer;
use crate::app::{App, Open, read_text};
use crate::hooks;
use crate::identity::Who;
use crate::report::Outcome;
use crate::text::{Style, Text};

/// Say that your task is done
///
/// Example: tenure tasks done F001 --agent A1234ABCD
#[derive(Debug, clap::Args)]
pub(crate) struct DoneArgs {
    /// The task
    task: String,
    #[command(flatten)]
    who: Who,
}

/// Say that your task cannot be done, and why
///
/// Example: tenure tasks fail F001 --agent A1234ABCD -m 'The API does not exist'
#[derive(Debug, clap::Args)]
pub(crate) struct FailArgs {
    /// The task
    task: String,
    #[command(flatten)]
    remark: Remark,
    #[command(flatten)]
    who: Who,
}

/// Give your task back, for somebody else to take
///
/// Example: tenure tasks release F001 --agent A1234ABCD -m 'Blocked on credentials'
#[derive(Debug, clap::Args)]
pub(crate) struct ReleaseArgs {
    /// The task
    task: String,
    #[command(flatten)]
    remark: OptionalRemark,
    #[command(flatten)]
    who: Who,
}

pub(crate) fn done(app: &mut App<'_>, args: DoneArgs) -> Outcome<Answer> {
    finish(app, &args.task, &args.who, Finish::Done, "done", "done")
}

pub(crate) fn fail(app: &mut App<'_>, args: FailArgs) -> Outcome<Answer> {
    let message = read_text(&args.remark.message)?;
    tenure_core::text::check_message(&message).map_err(tenure_core::Error::from)?;
    let word = Finish::Fail(&message);
    finish(app, &args.task, &args.who, word, "fail", "failed")
}

pub(crate) fn release(app: &mut App<'_>, args: ReleaseArgs) -> Outcome<Answer> {
    let message = args.remark.message.as_deref().map(read_text).transpose()?;
    if let Some(text) = &message {
        tenure_core::text::check_message(text).map_err(tenure_core::Error::from)?;
    }
    let word = Finish::Release(message.as_deref());
    finish(app, &args.task, &args.who, word, "release", "released")
}

fn finish(
    app: &mut App<'_>,
    task: &str,
    who: &Who,
    word: Finish<'_>,
    verb: &str,
    said: &str,
) -> Outcome<Answer> {
    let open = app.open()?;
    let name = open.resolve(task)?;
    let finished = say(app, &open, &name, who, word, verb)?;
    Ok(answer(app, &finished, word, said))
}

/// The holder's word, and the hooks told of it.
pub(crate) fn say(
    app: &mut App<'_>,
    open: &Open<'_>,
    name: &TaskName,
    who: &Who,
    word: Finish<'_>,
    verb: &str,
) -> Outcome<Finished> {
    let caller = app.identity(who)?.for_task(&name.id, &name.key, verb)?;
    let ctx = open.context();
    let ears = hooks::ears(app, open);
    let (finished, news) = open.write(|tx| {
        let finished = kernel::finish(tx, &ctx, &caller, name, word, false)?;
        // Only who holds it finishes it, so it was in progress, whatever a clean-up made of it meanwhile.
        let was = if finished.changed { TaskStatus::InProgress } else { finished.task.status };
        let news = ears.changed(tx, was, &finished.task)?;
        Ok((finished, news))
    })?;
    hooks::tell(app, open, &news);
    Ok(finished)
}

pub(crate) fn answer(app: &App<'_>, finished: &Finished, word: Finish<'_>, said: &str) -> Answer {
    let key = &finished.task.key;
    let mut text = Text::new();
    if !finished.changed {
        text.line(format!("{key} was {said} already; nothing changed"));
    } else if matches!(word, Finish::Release(_)) {
        text.line(format!("{} task {key}", app.past("Released", "Would release")));
    } else {
        text.line(format!("{} {key} {said}", app.past("Marked", "Would mark")));
    }
    if finished.changed && finished.task.status == TaskStatus::Review {
        text.and(Style::Plain, "; it waits for a review");
    }
    let data = json!({"task": view::object(app, &finished.task), "changed": finished.changed});
    Answer::new(data, text)
}
