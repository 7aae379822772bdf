use proptest::prelude::*;

use super::*;
use crate::config::tree;

#[test]
fn texts_are_quoted_only_where_needed() {
    for plain in
        ["claude", "./agent.sh", "~/Projects", "two words", "018f3b1e-0000-7000-8000-000000000000", "30s"]
    {
        assert_eq!(text(plain, true), plain);
    }
    for odd in [
        "",
        "true",
        "No",
        "12",
        "1e3",
        "0x1f",
        "2024-01-01",
        "- a",
        "a: b",
        "a #b",
        " a",
        "a ",
        "a,b",
        "{a}",
        "*x",
    ] {
        assert_eq!(text(odd, true), format!("\"{odd}\""));
    }
    assert_eq!(text("https://host/x", false), "https://host/x");
    assert_eq!(text("https://host/x", true), "\"https://host/x\"");
    assert_eq!(text("a\u{202e}\n\"\\", false), "\"a\\U0000202e\\n\\\"\\\\\"");
}

proptest! {
    #[test]
    fn every_text_reads_back_as_itself(given in any::<String>(), flow: bool, quotes in 0..3usize) {
        let style = [ScalarStyle::Plain, ScalarStyle::SingleQuoted, ScalarStyle::DoubleQuoted][quotes];
        let yaml = if flow {
            format!("k: [{}, x]", text(&given, true))
        } else {
            format!("k: [\n  ]\nv: {} # c\n", text_like(&given, style))
        };
        let root = tree::parse(&yaml).unwrap().unwrap();
        let read = if flow { json_of(&root)["k"][0].clone() } else { json_of(&root)["v"].clone() };
        prop_assert_eq!(read.as_str(), Some(given.as_str()), "{}", yaml);
    }
}
