//! Resolves a reference typed by a user to a row.
//!
//! A task is named by its id, its key, a unique prefix of its id, its exact title, its key in another case, or a unique
//! part of its title; the first of these that matches decides. A reference that matches several tasks is an error that lists them.

use crate::error::{Error, Result, TaskName};
use crate::job::Job;
use crate::section::Section;
use crate::session::Session;
use crate::store::{JobLookup, TaskLookup, View};

/// How many candidates an error lists.
const LISTED: usize = 10;
const SHORTEST_PREFIX: usize = 4;
/// The length of a UUID.
const ID_LENGTH: usize = 36;

pub fn task(view: &dyn View, reference: &str) -> Result<TaskName> {
    let not_found = || Error::TaskNotFound { reference: reference.to_owned() };
    if reference.is_empty() {
        return Err(not_found());
    }
    if let Some(found) = task_by_id_or_key(view, reference)? {
        return Ok(found);
    }
    let (prefix, key) = (id_prefix(reference), reference.to_ascii_lowercase());
    let mut lookups: Vec<_> = prefix.as_deref().map(TaskLookup::IdPrefix).into_iter().collect();
    // The last two read all tasks; on PostgreSQL, where an index of titles would slow every claim down, the last three.
    lookups.extend([
        TaskLookup::Title(reference),
        TaskLookup::KeyIgnoringCase(&key),
        TaskLookup::TitlePart(reference),
    ]);
    for lookup in lookups {
        let mut found = view.find_tasks(lookup, LISTED + 1)?;
        match found.len() {
            0 => {}
            1 => return found.pop().ok_or_else(not_found),
            n => {
                found.truncate(LISTED);
                return Err(Error::Ambiguous {
                    reference: reference.to_owned(),
                    candidates: found,
                    more: n > LISTED,
                });
            }
        }
    }
    Err(not_found())
}

/// The task whose id or key is `reference`. Both are unique and indexed, so a claim resolves them inside its
/// transaction; a title may need a scan, so it is resolved before the transaction.
pub fn task_by_id_or_key(view: &dyn View, reference: &str) -> Result<Option<TaskName>> {
    let id = reference.to_ascii_lowercase();
    let mut lookups = [TaskLookup::Key(reference), TaskLookup::Id(&id)];
    // Most references are keys. A key can be the id of another task only if it was chosen to look like one.
    if id.len() == ID_LENGTH {
        lookups.reverse();
    }
    for lookup in lookups {
        if let Some(found) = view.find_tasks(lookup, 1)?.pop() {
            return Ok(Some(found));
        }
    }
    Ok(None)
}

/// The task `id`, if `reference` still names it. Only this row is checked: it is not detected if another task matches
/// `reference` by now.
pub fn task_again(view: &dyn View, id: &str, reference: &str) -> Result<TaskName> {
    let matches = |task: &TaskName| {
        task.key.eq_ignore_ascii_case(reference)
            || id_prefix(reference).is_some_and(|prefix| task.id.starts_with(&prefix))
            || task.title.to_ascii_lowercase().contains(&reference.to_ascii_lowercase())
    };
    let found = view.find_tasks(TaskLookup::Id(id), 1)?.pop();
    found.filter(matches).ok_or_else(|| Error::TaskNotFound { reference: reference.to_owned() })
}

/// Something that can be resumed.
#[derive(Debug, Clone)]
pub enum Work {
    Session(Box<Session>),
    Job(Box<Job>),
}

/// A session or a job by its id, by a unique prefix of it, or by the job's name. Of several jobs with the name, an
/// unfinished one comes first, then the newest.
pub fn work(view: &dyn View, reference: &str) -> Result<Work> {
    check_work(reference)?;
    if let Some(job) = view.find_jobs(JobLookup::Name(reference), 1)?.pop() {
        return Ok(Work::Job(Box::new(job)));
    }
    let mut found = Vec::new();
    if let Some(prefix) = id_prefix(reference) {
        let sessions = view.find_sessions(&prefix, LISTED)?;
        found.extend(sessions.into_iter().map(|session| Work::Session(Box::new(session))));
        let jobs = view.find_jobs(JobLookup::IdPrefix(&prefix), LISTED)?;
        found.extend(jobs.into_iter().map(|job| Work::Job(Box::new(job))));
    }
    let what = "session or job";
    the_one(reference, found, Work::id)
        .and_then(|only| only.ok_or_else(|| Error::SessionNotFound { reference: reference.to_owned(), what }))
}

/// As [`work`], but only for jobs.
pub fn job(view: &dyn View, reference: &str) -> Result<Job> {
    check_work(reference)?;
    if let Some(job) = view.find_jobs(JobLookup::Name(reference), 1)?.pop() {
        return Ok(job);
    }
    let found = match id_prefix(reference) {
        Some(prefix) => view.find_jobs(JobLookup::IdPrefix(&prefix), LISTED)?,
        None => Vec::new(),
    };
    the_one(reference, found, |job| &job.id)?
        .ok_or_else(|| Error::JobNotFound { reference: reference.to_owned() })
}

/// As [`work`], but only for sessions.
pub fn session(view: &dyn View, reference: &str) -> Result<Session> {
    check_work(reference)?;
    let found = match id_prefix(reference) {
        Some(prefix) => view.find_sessions(&prefix, LISTED)?,
        None => Vec::new(),
    };
    let what = "session";
    the_one(reference, found, |session| &session.id)?
        .ok_or_else(|| Error::SessionNotFound { reference: reference.to_owned(), what })
}

impl Work {
    pub fn id(&self) -> &String {
        match self {
            Self::Session(session) => &session.id,
            Self::Job(job) => &job.id,
        }
    }
}

fn the_one<T>(reference: &str, mut found: Vec<T>, id: impl Fn(&T) -> &String) -> Result<Option<T>> {
    if found.len() > 1 {
        let candidates = found.iter().map(|one| id(one).clone()).collect();
        return Err(Error::AmbiguousWork { reference: reference.to_owned(), candidates });
    }
    Ok(found.pop())
}

fn id_prefix(reference: &str) -> Option<String> {
    let lower = reference.to_ascii_lowercase();
    let is_id = lower.len() >= SHORTEST_PREFIX && lower.bytes().all(|b| b.is_ascii_hexdigit() || b == b'-');
    is_id.then_some(lower)
}

/// Refuses a text that is not a valid id or name before it is looked up, because it is also used as a file name.
fn check_work(reference: &str) -> Result<()> {
    let plain = reference.bytes().all(|b| b.is_ascii_alphanumeric() || b"._-".contains(&b));
    if reference.is_empty() || reference.len() > 128 || reference.starts_with(['.', '-']) || !plain {
        let shown: String = reference.chars().take(80).collect();
        return Err(Error::invalid(format!("{shown:?} cannot be the id or the name of a session or job")));
    }
    Ok(())
}

/// A section by its name or id, with or without the prefix `section:`. Case is ignored if only one name then matches.
pub fn section(view: &dyn View, reference: &str) -> Result<Section> {
    if let Some(found) = view.section_by_name(reference)? {
        return Ok(found);
    }
    let name = reference.strip_prefix("section:").unwrap_or(reference);
    let mut all = view.sections()?;
    let exact = all.iter().position(|s| s.name == name || s.id.as_str() == name);
    let folded = || {
        let same: Vec<_> = (0..all.len()).filter(|&i| all[i].name.eq_ignore_ascii_case(name)).collect();
        if let [only] = same[..] { Some(only) } else { None }
    };
    match exact.or_else(folded) {
        Some(index) => Ok(all.swap_remove(index)),
        None => Err(Error::SectionNotFound { name: name.to_owned(), similar: similar(name, &all) }),
    }
}

fn similar(name: &str, sections: &[Section]) -> Vec<String> {
    let wanted = name.to_lowercase();
    if wanted.is_empty() || wanted.len() > crate::text::MAX_TITLE_CHARS * 4 {
        return Vec::new();
    }
    sections
        .iter()
        .filter(|s| {
            let candidate = s.name.to_lowercase();
            candidate.contains(&wanted) || strsim::jaro_winkler(&candidate, &wanted) > 0.85
        })
        .map(|s| s.name.clone())
        .take(3)
        .collect()
}
