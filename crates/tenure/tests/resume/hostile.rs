//! Items as the world has them: quotes, newlines, megabytes, missing fields, two of the same, and broken lists.

use serde_json::json;

use crate::project::Project;

#[test]
fn arguments_are_what_the_item_says_byte_for_byte() {
    let p = Project::new();
    let texts = [
        "it's \"quoted\"",
        "two\nlines\n",
        "$(touch owned) `id` \\ * ~",
        "{item.t}",
        "",
        "-rf",
        "ünï\u{202e}",
    ];
    p.items("items.jsonl", texts.iter().map(|text| json!({"t": text}).to_string()));
    p.script("keep.sh", "printf %s \"$1\" >\"$PRETEND/arg-$TENURE_ITEM\"; cat >\"$PRETEND/in-$TENURE_ITEM\"");
    let answer = p.run(&["jobs", "start", "a", "--items", "items.jsonl", "--", "./keep.sh", "{item.t}"]);
    assert_eq!(answer.code, Some(0), "{answer:?}");
    for (number, text) in (1..).zip(texts) {
        let read = |what: &str| std::fs::read_to_string(p.shared(&format!("{what}-{number}"))).unwrap();
        assert_eq!(read("arg"), text);
        assert_eq!(read("in"), json!({"t": text}).to_string(), "the item is on standard input, too");
    }
    assert!(!p.root().join("owned").exists());
}

#[test]
fn a_megabyte_reaches_the_command_on_standard_input_and_is_refused_as_an_argument() {
    let p = Project::new();
    p.items("items.jsonl", [json!({"t": "x".repeat(1 << 20)}).to_string(), json!({"t": "y"}).to_string()]);
    p.script("count.sh", "wc -c >\"$PRETEND/bytes-$TENURE_ITEM\"");
    assert_eq!(p.run(&["jobs", "start", "a", "--items", "items.jsonl", "--", "./count.sh"]).code, Some(0));
    assert_eq!(p.marks("bytes-1")[0].trim(), ((1 << 20) + 8).to_string());
    let args = ["--json", "jobs", "start", "b", "--items", "items.jsonl", "--", "./count.sh", "{item.t}"];
    let answer = p.run(&args);
    assert_eq!(answer.code, Some(1), "{answer:?}");
    let job = answer.json()["data"]["job"].clone();
    assert_eq!((job["succeeded"].as_u64(), job["failed"].as_u64()), (Some(1), Some(1)));
    let letter = &job["deadLetter"][0];
    assert!(letter["error"].as_str().unwrap().contains("1048576 bytes"), "{letter}");
    assert_eq!(letter["failures"], 1, "it would fail the same way again");
}

#[test]
fn a_missing_field_fails_that_item_and_names_it() {
    let p = Project::new();
    p.items(
        "items.jsonl",
        ["{\"a\":{\"b\":1}}".to_owned(), "{\"a\":{}}".to_owned(), "{\"a\":{\"b\":3}}".to_owned()],
    );
    let answer =
        p.run(&["--json", "jobs", "start", "a", "--items", "items.jsonl", "--", "true", "{item.a.b}"]);
    assert_eq!(answer.code, Some(1), "{answer:?}");
    let letters = answer.json()["data"]["job"]["deadLetter"].clone();
    assert_eq!((letters[0]["item"].as_u64(), letters.as_array().unwrap().len()), (Some(2), 1));
    assert_eq!(letters[0]["error"], "the item has no field a.b");
    assert_eq!(p.successes(), [1, 3]);
}

#[test]
fn two_items_with_the_same_id_are_two() {
    let p = Project::new();
    p.items("items.jsonl", (0..4).map(|_| "{\"id\":7}".to_owned()));
    p.script("mark.sh", "echo \"$1\" >>\"$PRETEND/ran\"");
    assert_eq!(
        p.run(&["jobs", "start", "a", "--items", "items.jsonl", "--", "./mark.sh", "{item.id}"]).code,
        Some(0)
    );
    assert_eq!((p.marks("ran").len(), p.successes()), (4, vec![1, 2, 3, 4]));
}

#[test]
fn invalid_json_on_line_70000_is_named_and_nothing_is_made() {
    let p = Project::new();
    let line = |n: u64| if n == 70_000 { "{\"n\":".to_owned() } else { format!("{{\"n\":{n}}}") };
    p.items("items.jsonl", (1..=80_000).map(line));
    let answer = p.run(&["--json", "jobs", "start", "a", "--items", "items.jsonl", "--", "true"]);
    assert_eq!(answer.code, Some(2), "{answer:?}");
    let message = answer.json()["error"]["message"].as_str().unwrap().to_owned();
    assert!(message.starts_with("items.jsonl:70000: not valid JSON"), "{message}");
    assert_eq!(p.ok(&["jobs", "list"])["total"], 0);
    assert!(p.feed().iter().all(|event| !event["kind"].as_str().unwrap().starts_with("job.")));
}

#[test]
fn items_come_from_standard_input_a_pointer_and_a_filter_too() {
    let p = Project::new();
    std::fs::write(
        p.root().join("d.json"),
        r#"{"x":{"list":[{"k":"a","n":1},{"k":"b","n":2},{"k":"a","n":3}]}}"#,
    )
    .unwrap();
    p.script("mark.sh", "echo \"$1\" >>\"$PRETEND/$2\"");
    let args = [
        "jobs",
        "start",
        "a",
        "--items",
        "d.json",
        "--path",
        "/x/list",
        "--filter",
        "k=a",
        "--max-items",
        "9",
        "--",
        "./mark.sh",
        "{item.n}",
        "one",
    ];
    assert_eq!(p.run(&args).code, Some(0));
    assert_eq!(p.marks("one"), ["1", "3"]);
    let mut command = p.command(&[
        "jobs",
        "start",
        "b",
        "--items",
        "-",
        "--max-items",
        "2",
        "--",
        "./mark.sh",
        "{item}",
        "two",
    ]);
    command.stdin(std::fs::File::open(p.root().join("mark.sh")).unwrap());
    assert!(command.status().unwrap().success());
    assert_eq!(p.marks("two").len(), 2);
}
