//! Messages to a task's next holder or to an agent. Delivered at least once: only `ack` or finishing the task ends
//! one.

use serde_json::json;

use crate::error::{Error, Result, TaskName};
use crate::event::{EventKind, NewEvent};
use crate::hints;
use crate::id::TaskId;
use crate::store::{Message, Tx};
use crate::text;

pub fn send_message(
    tx: &mut dyn Tx,
    task: Option<&TaskName>,
    from: &str,
    to: Option<&str>,
    body: &str,
) -> Result<Message> {
    text::check_message(body)?;
    if body.is_empty() {
        return Err(Error::invalid("the message is empty"));
    }
    if task.is_none() && to.is_none() {
        return Err(Error::invalid_with_hint(
            "a message needs a task or an agent as its recipient",
            hints::send_to_task(),
        ));
    }
    to.map_or(Ok(()), text::check_agent_id)?;
    let id = task.map(|t| TaskId::new(&t.id));
    let number = tx.insert_message(id.as_ref(), from, to, body)?;
    let mut event = NewEvent::new(EventKind::MessageSent, from).detail(json!({"message": number, "to": to}));
    event.task = id.as_ref();
    tx.append(event)?;
    Ok(Message {
        id: number,
        task: task.cloned(),
        from: from.to_owned(),
        to: to.map(str::to_owned),
        text: body.to_owned(),
        sent_at: tx.now(),
        acknowledged_at: None,
        acknowledged_by: None,
    })
}

/// False if the message was already acknowledged or does not exist.
pub fn acknowledge(tx: &mut dyn Tx, message: i64, by: &str) -> Result<bool> {
    let changed = tx.acknowledge(message, by)?;
    if changed {
        let detail = json!({"message": message});
        tx.append(NewEvent::new(EventKind::MessageAcknowledged, by).detail(detail))?;
    }
    Ok(changed)
}
