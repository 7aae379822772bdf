//! From what a user typed to the one thing meant.
//!
//! A task is named by its id, its key, a unique beginning of its id, its exact title, or a unique part of its title; the
//! first of these that fits decides. What fits several is an error that lists them, never a guess.

use crate::error::{Error, Result, TaskName};
use crate::section::Section;
use crate::store::{TaskLookup, View};

/// How many candidates an error lists.
const LISTED: usize = 10;
const SHORTEST_PREFIX: usize = 4;

pub fn task(view: &dyn View, reference: &str) -> Result<TaskName> {
    let not_found = || Error::TaskNotFound { reference: reference.to_owned() };
    if reference.is_empty() {
        return Err(not_found());
    }
    let lower = reference.to_ascii_lowercase();
    let mut ways = vec![TaskLookup::Id(&lower), TaskLookup::Key(reference)];
    if lower.len() >= SHORTEST_PREFIX && lower.bytes().all(|b| b.is_ascii_hexdigit() || b == b'-') {
        ways.push(TaskLookup::IdPrefix(&lower));
    }
    ways.push(TaskLookup::Title(reference));
    ways.push(TaskLookup::TitlePart(reference));
    for way in ways {
        let mut found = view.find_tasks(way, LISTED + 1)?;
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

/// A section by its name, with or without `section:` in front, in any case if that is unique.
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
