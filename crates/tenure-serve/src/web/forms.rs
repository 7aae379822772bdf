//! The forms of the pages: their fields, and the change that a submitted form requests.

use std::collections::HashMap;

use tenure_core::Timestamp;
use tenure_core::id::Fence;
use tenure_core::rules::Seen;

use super::handler::{Action, TaskChange};
use crate::request_handler::Refusal;

/// The fields of a submitted form. If a field was sent twice, the first one counts.
#[derive(Debug, Default)]
pub(crate) struct Form(HashMap<String, String>);

impl Form {
    /// Converts CRLF, which browsers send for the line breaks of text areas.
    pub(crate) fn parse(body: &[u8]) -> Self {
        let mut fields = HashMap::new();
        for (name, value) in form_urlencoded::parse(body) {
            fields.entry(name.into_owned()).or_insert_with(|| value.replace("\r\n", "\n"));
        }
        Self(fields)
    }

    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    fn text(&self, name: &str) -> String {
        self.get(name).unwrap_or_default().to_owned()
    }

    /// `None` if the field is empty.
    fn optional(&self, name: &str) -> Option<String> {
        self.get(name).map(str::trim).filter(|text| !text.is_empty()).map(str::to_owned)
    }

    fn required(&self, name: &str, why: &str) -> Result<String, Refusal> {
        self.optional(name).ok_or_else(|| Refusal::invalid(why))
    }

    /// What the page showed of the task.
    fn seen(&self) -> Result<Seen, Refusal> {
        let incomplete = || Refusal::invalid("the form does not say which state of the task it is about");
        let updated_at = self.get("updatedAt").and_then(|text| text.parse().ok()).ok_or_else(incomplete)?;
        let fence = match self.get("fence").ok_or_else(incomplete)? {
            "" => None,
            text => Some(Fence::new(text.parse().map_err(|_| incomplete())?)),
        };
        Ok(Seen { updated_at: Timestamp::from_millis(updated_at), fence })
    }

    fn change(&self, verb: &str) -> Result<Option<TaskChange>, Refusal> {
        let remark = self.optional("remark");
        Ok(Some(match verb {
            "edit" => TaskChange::Edit {
                title: self.required("title", "a task needs a title")?,
                description: self.text("description"),
                section: self.optional("section"),
                priority: self
                    .text("priority")
                    .trim()
                    .parse()
                    .map_err(|_| Refusal::invalid("the priority is a whole number"))?,
            },
            "claim" => TaskChange::Claim,
            "release" => TaskChange::Release { remark },
            "evict" => TaskChange::Evict,
            "retry" => TaskChange::Retry { remark },
            "skip" => TaskChange::Skip { remark },
            "approve" => TaskChange::Approve { remark },
            "reject" => {
                TaskChange::Reject { remark: self.required("remark", "say what is missing in the remark")? }
            }
            _ => return Ok(None),
        }))
    }

    /// The change that the form requests; `None` if there is no such verb.
    pub(crate) fn action(&self, verb: &str) -> Result<Option<Action>, Refusal> {
        Ok(Some(match verb {
            "add" => Action::Add {
                title: self.required("title", "a task needs a title")?,
                description: self.text("description"),
                section: self.optional("section"),
                key: self.optional("key"),
            },
            "start-runner" => {
                Action::StartRunner { preset: self.optional("preset"), section: self.optional("section") }
            }
            "stop-runner" => Action::StopRunner { id: self.required("runner", "which runner?")? },
            verb => {
                let Some(change) = self.change(verb)? else { return Ok(None) };
                Action::Task { task: self.required("task", "which task?")?, seen: self.seen()?, change }
            }
        }))
    }

    /// Where to go after the change: a page of this server.
    pub(crate) fn back(&self) -> &str {
        let is_own = |path: &&str| {
            path.starts_with("/p/") && path.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'\\')
        };
        self.get("back").filter(is_own).unwrap_or("/")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_of_a_task_needs_what_the_page_showed() {
        let action = |body: &str, verb: &str| Form::parse(body.as_bytes()).action(verb);
        let seen = Seen { updated_at: Timestamp::from_millis(5), fence: None };
        let claim = Action::Task { task: "T1".to_owned(), seen, change: TaskChange::Claim };
        assert_eq!(action("task=T1&updatedAt=5&fence=", "claim").unwrap(), Some(claim));
        for incomplete in [
            "task=T1",
            "task=T1&updatedAt=5",
            "task=T1&fence=",
            "task=T1&updatedAt=x&fence=",
            "updatedAt=5&fence=",
        ] {
            assert!(action(incomplete, "claim").is_err(), "{incomplete}");
        }
        assert!(
            action("task=T1&updatedAt=5&fence=7&remark=+", "reject").is_err(),
            "a rejection has a reason"
        );
        assert_eq!(action("task=T1&updatedAt=5&fence=7", "trust").unwrap(), None);
    }

    #[test]
    fn a_form_leads_back_to_a_page_of_this_server_only() {
        let back = |path: &str| Form(HashMap::from([("back".to_owned(), path.to_owned())])).back().to_owned();
        assert_eq!(back("/p/ab/t/T1"), "/p/ab/t/T1");
        for other in
            ["//evil.example", "https://evil.example/p/", "/\\evil.example", "/p/a\r\nSet-Cookie: x=y", ""]
        {
            assert_eq!(back(other), "/", "{other}");
        }
    }
}
