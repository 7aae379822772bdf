//! The sections of a Markdown text by anchor.
//!
//! Guarantees: the anchors equal those that an import writes into `sourceFile`, because both come from the same scan.
//! A section extends from its heading to the next heading of the same or a higher level, including subsections.

use super::Scan;
use super::lines::front_matter;

/// A heading and its position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutlineHeading {
    /// Counted from 1.
    pub line: usize,
    /// 1 to 6; 1 is the highest.
    pub level: usize,
    /// `None` if the heading has no text apart from markup.
    pub anchor: Option<String>,
}

/// All headings, top to bottom. Headings in code, comments and front matter are ignored.
pub fn outline(text: &str) -> Vec<OutlineHeading> {
    let mut scan = Scan::default();
    for (number, line) in (1..).zip(text.lines()).skip(front_matter(text)) {
        scan.line(number, line);
    }
    scan.outline
}

/// The section with this anchor, including its heading. Ignores the case of `anchor`.
pub fn section<'t>(text: &'t str, anchor: &str) -> Option<&'t str> {
    let headings = outline(text);
    let at = |wanted: &str| headings.iter().position(|heading| heading.anchor.as_deref() == Some(wanted));
    let found = at(anchor).or_else(|| at(&anchor.to_lowercase()))?;
    let heading = headings.get(found)?;
    let next = headings.iter().skip(found + 1).find(|later| later.level <= heading.level);
    let start = offset(text, heading.line);
    let end = next.map_or(text.len(), |next| offset(text, next.line));
    text.get(start..end)
}

/// The byte offset of a line.
fn offset(text: &str, line: usize) -> usize {
    text.split_inclusive('\n').take(line.saturating_sub(1)).map(str::len).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAN: &str = "\
---
title: '# not a heading'
---
# Plan

Intro.

## Log in

First text.

```sh
# Not a heading
## Log in
```

### Details ##

Deep.

<!--
## Log in
-->

## Log in

Second text.

Set `under` lines
-----------------

Third.

# *The* [end](x.md)!
Last.
";

    #[test]
    fn a_section_includes_its_subsections_and_ends_at_the_next_of_its_level() {
        let found = section(PLAN, "log-in").unwrap();
        assert!(found.starts_with("## Log in\n\nFirst text."), "{found}");
        assert!(found.contains("### Details ##\n\nDeep.") && !found.contains("Second text"), "{found}");
        assert_eq!(section(PLAN, "details").unwrap(), "### Details ##\n\nDeep.\n\n<!--\n## Log in\n-->\n\n");
    }

    #[test]
    fn equal_headings_are_distinguished_by_a_number() {
        assert_eq!(section(PLAN, "log-in-1").unwrap(), "## Log in\n\nSecond text.\n\n");
        assert_eq!(section(PLAN, "log-in-2"), None);
    }

    #[test]
    fn headings_are_found_by_underline_link_text_and_in_any_case() {
        assert_eq!(
            section(PLAN, "Set-Under-lines").unwrap(),
            "Set `under` lines\n-----------------\n\nThird.\n\n"
        );
        assert_eq!(section(PLAN, "the-end").unwrap(), "# *The* [end](x.md)!\nLast.\n");
        assert!(section(PLAN, "plan").unwrap().ends_with("Third.\n\n"));
        assert_eq!(section(PLAN, "not-a-heading"), None);
    }

    #[test]
    fn a_missing_final_newline_and_carriage_returns_are_accepted() {
        assert_eq!(section("# A\r\nx\r\n# B\r\ny", "a").unwrap(), "# A\r\nx\r\n");
        assert_eq!(section("# A\r\nx\r\n# B\r\ny", "b").unwrap(), "# B\r\ny");
        assert_eq!(section("", "b"), None);
    }
}
