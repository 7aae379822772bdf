//! Validates ids of sessions and jobs, which become file names.
//!
//! Guarantees: an accepted id is a plain file name in the lock directory, is not hidden, does not look like an
//! option, and cannot collide with the private files there, which start with a dot.

use super::ResumeLockError;

const MAX_LENGTH: usize = 128;

pub(crate) fn validate(id: &str) -> Result<(), ResumeLockError> {
    let refuse = |reason| Err(ResumeLockError::InvalidId { id: id.to_owned(), reason });
    if id.is_empty() {
        return refuse("it is empty");
    }
    if id.len() > MAX_LENGTH {
        return refuse("it is longer than 128 characters");
    }
    if id.starts_with(['.', '-']) {
        return refuse("it starts with a dot or a dash");
    }
    if !id.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte)) {
        return refuse("only letters, digits, '.', '_' and '-' are allowed");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn plain_names_are_accepted() {
        for id in ["a", "session-abc", "mapreduce-123", "A.b_c-9", "9", "a..b", &"x".repeat(128)] {
            assert!(validate(id).is_ok(), "{id:?}");
        }
    }

    #[test]
    fn all_other_names_are_refused() {
        let long = "x".repeat(129);
        let bad = [
            "",
            ".",
            "..",
            ".hidden",
            "-rf",
            "../../x",
            "a/b",
            "a\\b",
            "/etc/passwd",
            "a b",
            "a\n",
            "a\0b",
            "ä",
            "a:b",
            "a*",
            "~",
            &long,
        ];
        for id in bad {
            assert!(matches!(validate(id), Err(ResumeLockError::InvalidId { .. })), "{id:?}");
        }
    }

    proptest! {
        #[test]
        fn an_accepted_id_is_one_component_of_a_path(id in "\\PC{0,40}|[a-z./\\\\-]{0,12}") {
            if validate(&id).is_ok() {
                let path = std::path::Path::new("dir").join(format!("{id}.lock"));
                prop_assert_eq!(path.components().count(), 2);
                prop_assert_eq!(path.parent(), Some(std::path::Path::new("dir")));
            }
        }
    }
}
