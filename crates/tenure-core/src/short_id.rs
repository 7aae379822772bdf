//! Ids as lists show them: shortened to a prefix that commands accept.

/// UUIDs are shown with at least this many characters.
const SHORTEST: usize = 8;
const UUID: usize = 36;

/// How much of each UUID in one list is shown, so that all of them differ.
#[derive(Debug, Clone, Copy)]
pub struct ShortIds {
    length: usize,
}

impl ShortIds {
    pub fn of<'a>(ids: impl IntoIterator<Item = &'a str>) -> Self {
        let mut ids: Vec<&str> = ids.into_iter().filter(|id| is_uuid(id)).collect();
        ids.sort_unstable();
        ids.dedup();
        let shared = |pair: &[&str]| pair[0].bytes().zip(pair[1].bytes()).take_while(|(a, b)| a == b).count();
        let longest_shared = ids.windows(2).map(shared).max().unwrap_or(0);
        Self { length: SHORTEST.max(longest_shared + 1) }
    }

    /// The prefix of a UUID; any other id in full.
    pub fn show(self, id: &str) -> &str {
        if is_uuid(id) { &id[..self.length] } else { id }
    }
}

fn is_uuid(id: &str) -> bool {
    id.len() == UUID
        && id.bytes().enumerate().all(|(at, byte)| match at {
            8 | 13 | 18 | 23 => byte == b'-',
            _ => byte.is_ascii_hexdigit(),
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uuids_are_shortened_until_they_would_be_equal_and_names_are_not() {
        let [one, other, third] = [
            "f47ac10b-58cc-4372-a567-0e02b2c3d479",
            "f47ac10b-58cd-4372-a567-0e02b2c3d479",
            "00000000-0000-4000-8000-000000000001",
        ];
        assert_eq!(ShortIds::of([one, third, one]).show(one), "f47ac10b");
        let ids = ShortIds::of([one, "bob", other, third]);
        assert_eq!((ids.show(one), ids.show(other)), ("f47ac10b-58cc", "f47ac10b-58cd"));
        for name in ["uid0@vm:pts/2", "A1234ABCD", "", "ünïcode-that-has-exactly-36-bytes-ab"] {
            assert_eq!(ids.show(name), name);
        }
    }
}
