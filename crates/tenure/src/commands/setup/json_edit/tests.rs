use serde_json::json;

use super::Step::{Index, Key};
use super::*;

fn document(text: &str) -> JsonDocument {
    JsonDocument::parse(text).unwrap()
}

#[test]
fn a_new_entry_is_formatted_like_its_neighbours() {
    let mut json = document("{\n\t\"a\": [1, 2],\n\t\"b\": {}\n}\n");
    json.append(&[], Some("c"), &json!({"d": [true]}));
    json.append(&[Key("a")], None, &json!(3));
    json.append(&[Key("b")], Some("x"), &json!("y"));
    assert_eq!(
        json.text(),
        "{\n\t\"a\": [1, 2, 3],\n\t\"b\": {\"x\": \"y\"},\n\t\"c\": {\n\t\t\"d\": [\n\t\t\ttrue\n\t\t]\n\t}\n}\n"
    );
}

#[test]
fn removing_an_entry_removes_the_containers_created_for_it_and_no_others() {
    let mut json = document("{\n  \"a\": {\n    \"b\": [\n      1\n    ]\n  },\n  \"c\": []\n}");
    assert_eq!(json.remove(&[Key("a"), Key("b"), Index(0)]), Remaining::Something);
    assert_eq!(json.text(), "{\n  \"c\": []\n}");
    assert_eq!(json.remove(&[Key("c")]), Remaining::Nothing);
    let mut kept = document("{\"a\": {\"b\": [1]}}");
    kept.remove(&[Key("a"), Key("b"), Index(0)]);
    assert_eq!(kept.text(), "{\"a\": {\"b\": []}}");
}

#[test]
fn brackets_commas_and_quotes_in_strings_are_text() {
    let odd = r#"{"a,\"}": "]\\", "b": ["{", "}\"", "// x"], "ü": null}"#;
    let mut json = document(odd);
    json.append(&[Key("b")], None, &json!("x"));
    json.append(&[], Some("z"), &json!(-1.5e3));
    assert_eq!(json.root()["b"], json!(["{", "}\"", "// x", "x"]));
    json.remove(&[Key("z")]);
    json.remove(&[Key("b"), Index(3)]);
    assert_eq!(json.text(), odd);
    json.remove(&[Key("a,\"}")]);
    assert_eq!(json.text(), r#"{"b": ["{", "}\"", "// x"], "ü": null}"#);
}

#[test]
fn a_comment_stays_beside_the_entry_it_belongs_to() {
    for (before, after) in [
        ("{\n  \"a\": 1 // one\n}\n", "{\n  \"a\": 1, // one\n  \"b\": 2\n}\n"),
        ("{\n  // one\n  \"a\": 1\n  // end\n}\n", "{\n  // one\n  \"a\": 1,\n  \"b\": 2\n  // end\n}\n"),
        ("{\"a\": 1 // one\n}", "{\"a\": 1, // one\n\"b\": 2\n}"),
        ("{\"a\": 1 /* one */}", "{\"a\": 1, /* one */ \"b\": 2}"),
        ("{\n  // none\n}", "{\"b\": 2\n  // none\n}"),
        ("/* ü */ {} // end", "/* ü */ {\"b\": 2} // end"),
    ] {
        let mut json = document(before);
        json.append(&[], Some("b"), &json!(2));
        assert_eq!(json.text(), after);
        assert_eq!(json.root()["b"], 2);
        assert_eq!(json.remove(&[Key("b")]), Remaining::Something);
        assert_eq!(json.text(), before);
    }
}

#[test]
fn removing_an_entry_keeps_every_comment_around_it_and_leaves_valid_json() {
    for (before, after) in [
        ("{\"a\": 1, // one\n \"b\": 2}", "{\"a\": 1 // one\n }"),
        ("{\"a\": 1, // one\n \"b\": 2, \"c\": 3}", "{\"a\": 1, // one\n \"c\": 3}"),
        ("{\"a\": 1,\n \"b\": 2 // two\n , \"c\": 3}", "{\"a\": 1,\n  // two\n \"c\": 3}"),
        ("{\n  \"b\": 2, // two\n  \"c\": 3\n}", "{\n  // two\n  \"c\": 3\n}"),
        ("{\"a\": 1 /* , */ , /* x */ \"b\": 2 /* y */ }", "{\"a\": 1 /* , */  /* x */ /* y */ }"),
        ("{\n  // mine\n  \"b\": 2\n}", "{\n  // mine\n}"),
        ("{\n  // mine\n  \"b\": 2}", "{\n  // mine\n  }"),
        ("// mine\n{\n  \"b\": 2\n}", "// mine\n{\n}"),
        ("{\n  \"b\": 2\n}\n// mine", "{\n}\n// mine"),
    ] {
        let mut json = document(before);
        assert_eq!(json.remove(&[Key("b")]), Remaining::Something);
        assert_eq!(json.text(), after);
        let mut expected = document(before).root();
        expected.remove("b");
        assert_eq!(document(after).root(), expected);
    }
}

#[test]
fn the_last_of_two_equal_keys_is_the_one_that_is_edited() {
    let mut json = document(r#"{"a": [1], "a": [2]}"#);
    json.append(&[Key("a")], None, &json!(3));
    assert_eq!(json.text(), r#"{"a": [1], "a": [2, 3]}"#);
    json.remove(&[Key("a")]);
    assert_eq!(json.text(), r#"{"a": [1]}"#);
}

#[cfg(feature = "serve")]
#[test]
fn a_value_is_set_in_place_and_a_missing_key_is_appended() {
    let mut json = document("{\n  \"a\": {\n    \"x\": 1, // one\n    \"y\": 2 // two\n  }\n}");
    json.set(&[Key("a")], "x", &json!([true]));
    json.set(&[Key("a")], "z", &json!(3));
    assert_eq!(
        json.text(),
        "{\n  \"a\": {\n    \"x\": [\n      true\n    ], // one\n    \"y\": 2, // two\n    \"z\": 3\n  }\n}"
    );
}

#[test]
fn a_text_that_is_not_one_json_object_is_refused() {
    let deep = format!("{{\"a\": {}1{}}}", "[".repeat(100_000), "]".repeat(100_000));
    for text in [
        "",
        "// mine",
        "/* open {}",
        "[]",
        "{",
        "{\"a\": 1,}",
        "\u{feff}{}",
        "{} {}",
        "{a: 1}",
        "{'a': 1}",
        "{\"a\": 0x1}",
        "{\"a\": \"x\ny\"}",
        "{\"a\": 1\u{a0}}",
        "{\"a\": \"\\ud800\"}",
        "{\"a\": 1e999}",
        "# mine\n{}",
        &deep,
    ] {
        let error = JsonDocument::parse(text).map(JsonDocument::into_text).unwrap_err();
        assert!(error.starts_with("this is not "), "{error}");
    }
}
