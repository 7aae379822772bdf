use std::borrow::Cow;

use proptest::prelude::*;

use super::*;

/// Independent of the implementation: ranges written out by hand.
fn must_never_be_shown(c: char) -> bool {
    let code = u32::from(c);
    code < 0x20
        || (0x7f..=0x9f).contains(&code)
        || [0xad, 0x61c, 0x180e, 0x2028, 0x2029, 0xfeff].contains(&code)
        || (0x200b..=0x200f).contains(&code) && code != 0x200d
        || (0x202a..=0x202e).contains(&code)
        || (0x2060..=0x206f).contains(&code)
        || (0xe0000..=0xe007f).contains(&code)
}

fn hostile_text() -> impl Strategy<Value = String> {
    let one = prop_oneof![
        any::<char>(),
        (0u32..0x20).prop_filter_map("char", char::from_u32),
        (0x7fu32..0xae).prop_filter_map("char", char::from_u32),
        (0x2000u32..0x2070).prop_filter_map("char", char::from_u32),
        (0xe0000u32..0xe0080).prop_filter_map("char", char::from_u32),
        Just('\u{200d}'),
        Just('👩'),
    ];
    proptest::collection::vec(one, 0..60).prop_map(|chars| chars.into_iter().collect())
}

proptest! {
    #[test]
    fn no_escaped_line_holds_a_control_or_format_character(text in hostile_text()) {
        let shown = escape_line(&text);
        prop_assert!(!shown.chars().any(must_never_be_shown), "{shown:?}");
    }

    #[test]
    fn an_escaped_block_keeps_only_newline_and_tab(text in hostile_text()) {
        let shown = escape_block(&text);
        prop_assert!(!shown.chars().any(|c| must_never_be_shown(c) && c != '\n' && c != '\t'), "{shown:?}");
        prop_assert_eq!(shown.matches('\n').count(), text.matches('\n').count());
    }

    #[test]
    fn escaping_twice_changes_nothing_more(text in hostile_text()) {
        let once = escape_line(&text).into_owned();
        prop_assert!(matches!(escape_line(&once), Cow::Borrowed(_)), "{once:?}");
    }

    #[test]
    fn every_accepted_key_and_agent_id_is_plain_ascii(text in "[ -~]{0,70}") {
        if check_task_key(&text).is_ok() {
            prop_assert!(!text.starts_with(['.', '-', '_']) && !text.contains('/') && text.len() <= 64);
        }
        if check_agent_id(&text).is_ok() {
            prop_assert!(!text.contains(' ') && (1..=64).contains(&text.len()));
        }
    }
}

#[test]
fn clean_text_is_borrowed() {
    for text in ["", "Fix the bug", "Größe prüfen", "测试 ✅", "👩‍👩‍👧 family", "🏳️‍🌈"]
    {
        assert!(matches!(escape_line(text), Cow::Borrowed(shown) if shown == text), "{text:?}");
    }
}

#[test]
fn escapes_are_readable() {
    assert_eq!(escape_line("\x1b[31mred\x1b[0m"), "\\x1b[31mred\\x1b[0m");
    assert_eq!(escape_line("a\u{202e}b"), "a\\u{202e}b");
    assert_eq!(escape_line("a\nb\tc\rd\0"), "a\\nb\\tc\\rd\\x00");
    assert_eq!(escape_line("\u{9b}2J\u{ad}\u{feff}\u{e0041}"), "\\x9b2J\\u{ad}\\u{feff}\\u{e0041}");
    assert_eq!(escape_block("a\n\tb\r\x07"), "a\n\tb\\r\\x07");
}

#[test]
fn a_joiner_is_kept_only_between_visible_non_ascii_characters() {
    assert_eq!(escape_line("a\u{200d}b"), "a\\u{200d}b");
    assert_eq!(escape_line("👩\u{200d}"), "👩\\u{200d}");
    assert_eq!(escape_line("👩\u{200d}\u{200d}👧"), "👩\\u{200d}\\u{200d}👧");
    assert_eq!(escape_line("👩\u{200d}👧"), "👩\u{200d}👧");
}

#[test]
fn a_refused_text_names_field_limit_and_size() {
    let error = check_title(&"é".repeat(501)).unwrap_err();
    assert_eq!(error.to_string(), "the title has 501 characters; the limit is 500");
    assert_eq!(error.field(), Field::Title);
    let error = check_description(&"x".repeat(1 << 20)).unwrap_err();
    assert_eq!(error.to_string(), "the description has 1048576 bytes; the limit is 262144");
    let error = check_message(&"é".repeat(131_073)).unwrap_err();
    assert_eq!(error.to_string(), "the message has 262146 bytes; the limit is 262144");
    let error = check_task_key(&"a".repeat(5000)).unwrap_err();
    assert_eq!(error.to_string(), "the task key has 5000 characters; the limit is 64");
    let error = check_agent_id("a b").unwrap_err();
    assert_eq!(
        error.to_string(),
        "the agent id contains ' '; allowed: letters, digits, `.`, `_`, `@`, `:`, `/`, `-`"
    );
}

#[test]
fn limits_are_inclusive() {
    check_title(&"é".repeat(500)).unwrap();
    check_description(&"x".repeat(256 * 1024)).unwrap();
    check_description("").unwrap();
    check_task_key(&"a".repeat(64)).unwrap();
    check_agent_id(&"/".repeat(64)).unwrap();
}

#[test]
fn blank_titles_and_nul_are_refused_and_everything_else_is_accepted() {
    assert_eq!(check_title(" \n\t"), Err(TextError::Empty { field: Field::Title }));
    assert_eq!(check_title("a\0b"), Err(TextError::Nul { field: Field::Title }));
    assert_eq!(check_description("a\0b"), Err(TextError::Nul { field: Field::Description }));
    check_title("\x1b[31m 'quoted' \"x\" <b>\n\u{202e}🙂").unwrap();
}

#[test]
fn keys_that_look_like_paths_or_flags_are_refused() {
    for key in ["", "../../x", "--weird", ".hidden", "_x", "a/b", "a b", "é"] {
        assert!(check_task_key(key).is_err(), "{key:?}");
    }
    for key in ["F001", "1", "bd-a3f8.1", "0b7c2a3e-1111-7000-8000-000000000000"] {
        check_task_key(key).unwrap();
    }
}
