use super::*;

fn items(name: &str, text: &[u8], change: impl Fn(&mut ItemSource)) -> Result<(Vec<String>, Survey)> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    std::fs::write(&path, text).unwrap();
    let mut source = ItemSource { file: Some(path.to_string_lossy().into_owned()), ..ItemSource::default() };
    change(&mut source);
    let mut items = Items::open(&source)?;
    let survey = items.survey()?;
    let mut found = Vec::new();
    items.each(&mut |payload| {
        found.push(payload);
        Ok(())
    })?;
    assert_eq!(found.len() as u64, survey.items);
    Ok((found, survey))
}

fn plainly(name: &str, text: &str) -> Result<Vec<String>> {
    items(name, text.as_bytes(), |_| ()).map(|(found, _)| found)
}

fn complaint<T: fmt::Debug>(answer: Result<T>) -> String {
    answer.unwrap_err().to_string()
}

#[test]
fn the_three_formats_are_told_apart_by_name_or_by_their_beginning() {
    assert_eq!(plainly("i", " [1, {\"a\": [2]},\n\"x\"]").unwrap(), ["1", "{\"a\": [2]}", "\"x\""]);
    assert_eq!(plainly("i", "{\"a\":1}\n\n {\"a\":2} \n").unwrap(), ["{\"a\":1}", "{\"a\":2}"]);
    assert_eq!(plainly("i.jsonl", "[1]\n\"x\"\n3").unwrap(), ["[1]", "\"x\"", "3"]);
    assert_eq!(plainly("i", "one \"1\"\r\n\n\ttwo\n").unwrap(), ["\"one \\\"1\\\"\"", "\"\\ttwo\""]);
    assert_eq!(plainly("i.txt", "[x] not JSON\n").unwrap(), ["\"[x] not JSON\""]);
    assert!(plainly("i", "").unwrap().is_empty());
    assert!(plainly("i", "[]").unwrap().is_empty());
}

#[test]
fn a_list_inside_of_a_document_is_found_by_its_pointer() {
    let text = br#"{"x": [9], "a": {"b/c": [[0], [1, 2]]}, "z": 1}"#;
    let at = |path: &str| items("i.json", text, |source| source.path = Some(path.to_owned()));
    assert_eq!(at("/a/b~1c/1").unwrap().0, ["1", "2"]);
    assert_eq!(at("/x").unwrap().0, ["9"]);
    assert_eq!(complaint(at("/nowhere")), "i.json: there is nothing at /nowhere");
    assert!(complaint(at("x")).contains("does not begin with a slash"));
    assert!(complaint(at("/z")).contains("expected a list of items"), "{}", complaint(at("/z")));
    assert!(complaint(plainly("i.json", "{\n\"a\": [1]}")).contains("--path"));
}

#[test]
fn filters_and_the_limit_leave_items_out_and_all_are_counted() {
    let text = br#"[{"k":"a","n":1},{"k":"b","n":1},{"k":"a","n":2},{"n":1}]"#;
    let filter = |source: &mut ItemSource| source.filters = vec![("k".into(), "a".into())];
    let (found, survey) = items("i", text, filter).unwrap();
    assert_eq!((found.len(), survey.seen), (2, 4));
    let both = |source: &mut ItemSource| {
        source.filters = vec![("k".into(), "a".into()), ("n".into(), "2".into())];
    };
    assert_eq!(items("i", text, both).unwrap().0, [r#"{"k":"a","n":2}"#]);
    let (found, survey) = items("i", text, |source| source.max_items = Some(3)).unwrap();
    assert_eq!((found.len(), survey.seen), (3, 4));
}

#[test]
fn what_is_wrong_is_named_by_its_line() {
    let lines: Vec<_> = (1..70_000).map(|n| format!("{{\"n\":{n}}}")).collect();
    let good = lines.join("\n");
    let text = format!("{good}\n{{\"n\":\n{good}\n");
    let said = complaint(plainly("i.jsonl", &text));
    assert!(said.starts_with("i.jsonl:70000: not valid JSON: EOF"), "{said}");
    let said = complaint(items("i", b"ok\n\xff\xfe\n", |_| ()));
    assert_eq!(said, "i:2: not UTF-8 text");
    let said = complaint(plainly("i", "[1,\n2,\n"));
    assert!(said.starts_with("i:3: not valid JSON: EOF"), "{said}");
    let said = complaint(plainly("i", "[1] 2"));
    assert!(said.contains("trailing characters"), "{said}");
    // An error after the last selected item is reported, too.
    let said = complaint(items("i", b"[1, 2, x]", |source| source.max_items = Some(1)));
    assert!(said.contains("not valid JSON"), "{said}");
}

#[test]
fn the_hash_is_of_the_items_and_their_order() {
    let hash = |text: &str| items("i", text.as_bytes(), |_| ()).unwrap().1.hash;
    assert_eq!(hash("[1,2]"), hash(" [1 , 2]\n"));
    assert_ne!(hash("[1,2]"), hash("[2,1]"));
    assert_ne!(hash("[12]"), hash("[1,2]"));
    assert_eq!(hash("[1]").len(), 64);
}

#[test]
fn a_file_that_is_not_there_or_is_a_folder_is_said() {
    let gone = ItemSource { file: Some("/nowhere/items".into()), ..ItemSource::default() };
    assert_eq!(complaint(Items::open(&gone)), "cannot read the items: /nowhere/items: there is no such file");
    let folder = ItemSource { file: Some("/".into()), ..ItemSource::default() };
    assert_eq!(complaint(Items::open(&folder)), "cannot read the items: / is a folder");
}
