//! MCP resources: what a client can read without calling a tool.

use rmcp::model::{Resource, ResourceTemplate};

/// A resource, parsed from its URI.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Page {
    /// The project's status and its open tasks.
    Board,
    Task(String),
    /// A lease, by its id or its fence.
    Lease(String),
    /// The end of the log of a task's latest attempt.
    Log(String),
}

const BOARD: &str = "tenure://board";

impl Page {
    pub(crate) fn of(uri: &str) -> Option<Self> {
        if uri == BOARD {
            return Some(Self::Board);
        }
        let (kind, name) = uri.strip_prefix("tenure://")?.split_once('/')?;
        let name = decoded(name)?;
        match kind {
            _ if name.is_empty() => None,
            "task" => Some(Self::Task(name)),
            "lease" => Some(Self::Lease(name)),
            "log" => Some(Self::Log(name)),
            _ => None,
        }
    }

    pub(crate) fn mime_type(&self) -> &'static str {
        match self {
            Self::Log(_) => "text/plain",
            _ => "application/json",
        }
    }
}

pub(crate) fn all() -> Vec<Resource> {
    let board = Resource::new(BOARD, "board")
        .with_title("The board")
        .with_description(
            "The project at a glance: counts, who is at work, and the open tasks in working order.",
        )
        .with_mime_type("application/json");
    vec![board]
}

pub(crate) fn templates() -> Vec<ResourceTemplate> {
    let one = |uri: &str, name: &str, about: &str, mime: &str| {
        ResourceTemplate::new(uri, name).with_description(about).with_mime_type(mime)
    };
    vec![
        one(
            "tenure://task/{task}",
            "task",
            "A task with its lease, its messages and its history, by key, id or title.",
            "application/json",
        ),
        one(
            "tenure://lease/{lease}",
            "lease",
            "A lease by its id (L1234ABCD) or its fence: holder, process, expiry, how it ended.",
            "application/json",
        ),
        one("tenure://log/{task}", "log", "The end of the log of a task's latest attempt.", "text/plain"),
    ]
}

/// Decodes percent-encoding.
fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(if byte == b'%' {
            let digits = [rest.next()?, rest.next()?];
            u8::from_str_radix(std::str::from_utf8(&digits).ok()?, 16).ok()?
        } else {
            byte
        });
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_lead_to_pages_and_nothing_else_does() {
        assert_eq!(Page::of("tenure://board"), Some(Page::Board));
        assert_eq!(Page::of("tenure://task/T1"), Some(Page::Task("T1".into())));
        assert_eq!(Page::of("tenure://task/Fix%20it%2Fnow"), Some(Page::Task("Fix it/now".into())));
        assert_eq!(Page::of("tenure://lease/7"), Some(Page::Lease("7".into())));
        assert_eq!(Page::of("tenure://log/T1"), Some(Page::Log("T1".into())));
        for wrong in
            ["", "tenure://", "tenure://task/", "tenure://shop/1", "file:///etc/passwd", "tenure://task/%zz"]
        {
            assert_eq!(Page::of(wrong), None, "{wrong}");
        }
    }
}
