//! Suggests the known key that a misspelt one is closest to.

use super::keys::{HOOK_FIELDS, KEYS};

/// Below this similarity, no key is suggested.
const MIN_SIMILARITY: f64 = 0.3;

/// The known key or group nearest to `path`, including keys of other groups with a similar last segment.
pub(super) fn nearest<'a>(path: &str, also: impl IntoIterator<Item = &'a str>) -> Option<String> {
    let given: Vec<&str> = path.split('.').collect();
    let mut candidates: Vec<String> = also.into_iter().map(str::to_owned).collect();
    if let Some((hook, _)) = path.split_once("].") {
        candidates.extend(HOOK_FIELDS.iter().map(|field| format!("{hook}].{field}")));
    }
    for key in KEYS {
        let mut name = String::new();
        for (index, segment) in key.name.split('.').enumerate() {
            if index > 0 {
                name.push('.');
            }
            let chosen = given.get(index).filter(|_| given.len() > index + 1);
            name.push_str(if segment == "*" { chosen.copied().unwrap_or("NAME") } else { segment });
            // A name chosen by the user is not a suggestion.
            if segment != "*" {
                candidates.push(name.clone());
            }
        }
    }
    let mut best: Option<(f64, String)> = None;
    for candidate in candidates {
        let score = similarity(path, &candidate);
        if candidate != path && best.as_ref().is_none_or(|(top, _)| score > *top) {
            best = Some((score, candidate));
        }
    }
    best.filter(|(score, _)| *score >= MIN_SIMILARITY).map(|(_, name)| name)
}

fn similarity(given: &str, candidate: &str) -> f64 {
    let (given, candidate) = (plain(given), plain(candidate));
    let whole = strsim::normalized_damerau_levenshtein(&given, &candidate);
    let last = strsim::normalized_damerau_levenshtein(last_word(&given), last_word(&candidate));
    // Among keys with the same last segment, the one in the nearer group wins.
    whole.max(last * 0.9 + whole * 0.05)
}

/// Makes `lease_ttl`, `lease-ttl` and `LeaseTTL` equal to `leaseTtl`.
fn plain(name: &str) -> String {
    name.chars().filter(|c| !matches!(c, '_' | '-')).take(128).collect::<String>().to_lowercase()
}

fn last_word(name: &str) -> &str {
    name.rsplit('.').next().unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misspelt_key_leads_to_the_intended_one() {
        for (given, meant) in [
            ("lockng", "locking"),
            ("runner", "runners"),
            ("locking.leaseTTL", "locking.leaseTtl"),
            ("locking.lease_ttl", "locking.leaseTtl"),
            ("leaseTtl", "locking.leaseTtl"),
            ("heartbeatInterval", "runners.heartbeatInterval"),
            ("runners.projectPaths", "runners.wakeup.projectPaths"),
            ("runners.wakeup.enable", "runners.wakeup.enabled"),
            ("presets.mine.comand", "presets.mine.command"),
            ("hooks[2].evnt", "hooks[2].event"),
            ("hook", "hooks"),
        ] {
            assert_eq!(nearest(given, []).as_deref(), Some(meant), "{given}");
        }
    }

    #[test]
    fn nothing_is_suggested_for_a_dissimilar_key() {
        assert_eq!(nearest("zzzzzzzzzzzz", []), None);
    }
}
