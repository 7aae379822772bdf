//! The sections of a Markdown text by their anchors.
//!
//! Guarantees: the anchors are the ones that an import writes into `sourceFile`, because the same scan finds them. A
//! section goes from its heading to the next one of the same or a higher level, subsections included.

use super::Scan;
use super::lines::front_matter;

/// A heading where it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Heading {
    /// The first line is 1.
    pub line: usize,
    /// 1 to 6; 1 is the highest.
    pub level: usize,
    /// None if nothing of the heading is left once its marks are gone.
    pub anchor: Option<String>,
}

/// Every heading, from top to bottom. What looks like one in code, comments and front matter is none.
pub fn outline(text: &str) -> Vec<Heading> {
    let mut scan = Scan::default();
    for (number, line) in (1..).zip(text.lines()).skip(front_matter(text)) {
        scan.line(number, line);
    }
    scan.outline
}

/// The section with this anchor, its heading included. Capital letters in `anchor` are forgiven.
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

/// Where a line begins.
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
    fn a_section_holds_its_subsections_and_ends_at_its_equal() {
        let found = section(PLAN, "log-in").unwrap();
        assert!(found.starts_with("## Log in\n\nFirst text."), "{found}");
        assert!(found.contains("### Details ##\n\nDeep.") && !found.contains("Second text"), "{found}");
        assert_eq!(section(PLAN, "details").unwrap(), "### Details ##\n\nDeep.\n\n<!--\n## Log in\n-->\n\n");
    }

    #[test]
    fn equal_headings_are_told_apart_by_their_number() {
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
    fn the_last_line_needs_no_newline_and_returns_do_no_harm() {
        assert_eq!(section("# A\r\nx\r\n# B\r\ny", "a").unwrap(), "# A\r\nx\r\n");
        assert_eq!(section("# A\r\nx\r\n# B\r\ny", "b").unwrap(), "# B\r\ny");
        assert_eq!(section("", "b"), None);
    }
}
