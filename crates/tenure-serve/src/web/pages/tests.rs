//! Hostile text stays text, even in the parts of a page that appear only after an agent or a person has
//! acted.

use tenure_core::Timestamp;
use tenure_core::board::{
    Board, EventLine, GroupBy, Held, LeaseLine, Page, Parked, ProjectHead, Query, RunningAttempt, TaskDetail,
    TaskLine, Waiting,
};
use tenure_core::event::EventKind;
use tenure_core::holder::Holder;
use tenure_core::id::{Fence, LeaseId, TaskId};
use tenure_core::lease::LeaseState;
use tenure_core::parking::Subject;
use tenure_core::store::NewTask;
use tenure_core::task::TaskStatus;
use tenure_core::why::Reason;

use super::super::handler::{AttemptLog, LogEntry, ProjectRow, TaskPage};
use super::{Around, List, ProjectSummary, board, lists, projects, task};

const HOSTILE: &str =
    "</title></textarea><script>alert(1)</script><img src=x onerror=alert(1)>\" onfocus=\"alert(1)\" '";

fn at(millis: i64) -> Timestamp {
    Timestamp::from_millis(millis)
}

fn line() -> TaskLine {
    TaskLine {
        id: TaskId::new("0197"),
        key: "T1".to_owned(),
        title: HOSTILE.to_owned(),
        status: TaskStatus::InProgress,
        section: Some(HOSTILE.to_owned()),
        priority: 1,
        labels: vec![HOSTILE.to_owned()],
        ready: false,
        blocked_by: vec![HOSTILE.to_owned()],
        attempts: 2,
        updated_at: at(1),
        lease: Some(lease()),
    }
}

fn lease() -> LeaseLine {
    LeaseLine {
        id: LeaseId::new("L1234ABCD"),
        fence: Fence::new(7),
        holder: Holder::agent(HOSTILE),
        process: Some((1, HOSTILE.to_owned())),
        state: LeaseState::Live,
        acquired_at: at(1),
        heartbeat_at: at(2),
        expires_at: at(90_000),
    }
}

fn failure() -> EventLine {
    EventLine {
        seq: 1,
        at: at(1),
        kind: EventKind::TaskStatus,
        actor: HOSTILE.to_owned(),
        task: Some(TaskId::new("0197")),
        subject: "T1".to_owned(),
        title: None,
        from: Some(TaskStatus::InProgress),
        to: Some(TaskStatus::Failed),
        fence: None,
        what: None,
        remark: Some(HOSTILE.to_owned()),
    }
}

fn whole_board() -> Board {
    let attempt = RunningAttempt {
        agent: Some(HOSTILE.to_owned()),
        started_at: at(1),
        log_path: None,
        host: HOSTILE.to_owned(),
        is_ending: false,
    };
    let held = Held {
        task: line(),
        lease: lease(),
        waiting: 1,
        attempt: Some(attempt),
        used: None,
        last_event: Some(failure()),
    };
    let waiting = Waiting {
        ticket: 1,
        holder: Holder::agent(HOSTILE),
        pid: 1,
        host: HOSTILE.to_owned(),
        wish: HOSTILE.to_owned(),
        review: true,
        since: at(1),
    };
    let parked =
        Parked { subject: Subject::Account(HOSTILE.to_owned()), sentence: HOSTILE.to_owned(), until: None };
    Board {
        now: at(60_000),
        project: ProjectHead {
            name: Some(HOSTILE.to_owned()),
            path: HOSTILE.to_owned(),
            tasks: TaskStatus::ALL.map(|status| (status, 1)).to_vec(),
            total: 6,
            agents: 1,
            used_today: None,
            exclusive: Some(HOSTILE.to_owned()),
        },
        attention: Page::whole(Vec::new()),
        held: Page::whole(vec![held]),
        queue: Page::whole(vec![waiting]),
        reasons: vec![Reason::new("blocked", HOSTILE).hint(tenure_core::hints::show_task(HOSTILE))],
        moving: false,
        parked: vec![parked],
        runners: Vec::new(),
        jobs: Page::whole(Vec::new()),
        groups: Vec::new(),
    }
}

#[test]
fn no_text_becomes_markup_on_any_page() {
    let around = Around { project: Some("ab12".to_owned()), csrf: "0123".to_owned(), read_only: false };
    let whole = whole_board();
    let query = Query { group_by: GroupBy::Status, search: Some(HOSTILE.to_owned()), ..Query::default() };
    let stored =
        NewTask { description: HOSTILE.to_owned(), ..NewTask::new(TaskId::new("0197"), "T1", HOSTILE) };
    let detail = TaskDetail {
        task: stored.stored(None, at(1)),
        line: line(),
        reasons: whole.reasons.clone(),
        history: vec![failure()],
        attempts: Vec::new(),
        used: None,
        messages: Vec::new(),
    };
    let entry = LogEntry { at: Some(at(1)), kind: "message", text: HOSTILE.to_owned() };
    let log = AttemptLog::Lines { entries: vec![entry], is_cut: true, is_live: true };
    let page = TaskPage { now: at(60_000), project: HOSTILE.to_owned(), detail, is_mine: false, log };
    let row = ProjectRow {
        slug: "ab12".to_owned(),
        name: Some(HOSTILE.to_owned()),
        path: HOSTILE.to_owned(),
        closed: Some(HOSTILE.to_owned()),
        hint: Some(HOSTILE.to_owned()),
    };
    let mut pages = vec![board::page(&around, &query, &whole), task::page(&around, &page)];
    pages.extend(List::ALL.map(|list| lists::page(&around, list, &whole, &[failure()])));
    for summary in [
        ProjectSummary::Closed,
        ProjectSummary::Unreachable(HOSTILE.to_owned()),
        ProjectSummary::Open(Box::new(whole)),
    ] {
        pages.push(projects(&around, vec![(&row, summary)]));
    }
    for page in pages {
        let text = page.into_string();
        assert!(text.contains("&lt;script&gt;"), "{text}");
        for markup in ["<script>", "<img src=x", "\" onfocus", " style=", "<textarea></textarea>"] {
            assert!(!text.contains(markup), "{markup}: {text}");
        }
        assert_eq!(text.matches("<script").count(), 1, "{text}");
    }
}
