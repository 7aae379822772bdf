use super::*;

fn written(change: FileChange) -> String {
    let FileChange::Write(text) = change else { panic!("{change:?}") };
    text
}

/// Settings in common and in unusual layouts.
const FILES: &[&str] = &[
    "{}",
    "{}\n",
    "{ }",
    "{\n}\n",
    "  {\"a\": 1}  \n\n",
    r#"{"hooks":{}}"#,
    "{\"hooks\": { }, \"z\": 1}",
    "{\n  \"hooks\": {\n  }\n}",
    "{\n  \"hooks\": {\n    \"SessionStart\": []\n  }\n}\n",
    "{\n  \"hooks\": {\n    \"SessionEnd\": [ ],\n    \"PostToolUse\": [\n    ]\n  }\n}\n",
    "{\n\t\"permissions\": {\n\t\t\"allow\": [\"Bash(npm run test:*)\", \"Read\"]\n\t}\n}\n",
    "{\r\n  \"model\": \"opus\",\r\n  \"env\": {\"A\": \"}\"}\r\n}\r\n",
    "{\"hooks\": {\"PostToolUse\": [{\"matcher\": \"Edit|Write\", \"hooks\": [{\"type\": \"command\", \"command\": \"fmt\"}]}]}}",
    "{\n    \"hooks\": {\n        \"SessionStart\": [\n            {\n                \"matcher\": \"startup\",\n                \"hooks\": [\n                    {\n                        \"type\": \"command\",\n                        \"command\": \"./scripts/hello.sh\"\n                    }\n                ]\n            }\n        ],\n        \"Stop\": []\n    },\n    \"unknown\": {\"deep\": [[[]]]}\n}",
    "{\"\\u0068ooks\": {\"Stop\": []}, \"ü\": \"\\\"hooks\\\": {\"}",
    "{\"hooks\": {\"Stop\": []}, \"hooks\": {\"PreToolUse\": []}}",
    "// mine\n{}\n",
    "{\n  // mine\n}\n",
    "{\n  \"model\": \"opus\", // the large one\n  /* hooks */\n  \"hooks\": { // none yet\n  }\n}\n// end",
    "{\n  \"hooks\": {\n    \"SessionStart\": [\n      // first\n      {\"hooks\": []} // a\n      // last\n    ] // b\n  } // c\n}\n",
];

#[test]
fn putting_the_hooks_in_and_taking_them_out_restores_the_settings() {
    for before in FILES {
        let after = written(put(Some(before), "tenure").unwrap());
        assert_eq!(missing(&after, "tenure").unwrap(), Vec::<&str>::new(), "{after}");
        assert_eq!(put(Some(&after), "tenure").unwrap(), FileChange::Nothing, "{after}");
        assert_eq!(
            take_out(Some(&after), "tenure").unwrap(),
            FileChange::Write((*before).to_owned()),
            "{after}"
        );
        assert_eq!(take_out(Some(before), "tenure").unwrap(), FileChange::Nothing);
        kept(before, &after);
    }
    let own = written(put(None, "tenure").unwrap());
    assert_eq!(put(Some(&own), "tenure").unwrap(), FileChange::Nothing);
    assert_eq!(take_out(Some(&own), "tenure").unwrap(), FileChange::Delete);
    assert_eq!(take_out(None, "tenure").unwrap(), FileChange::Nothing);
}

/// Every other key is still there in its order, and so are every other hook and every comment.
fn kept(before: &str, after: &str) {
    let parse = |text: &str| JsonDocument::parse(text).unwrap().root();
    let (was, is) = (parse(before), parse(after));
    let others: Vec<_> = is.keys().filter(|key| was.contains_key(*key)).collect();
    assert_eq!(others, was.keys().collect::<Vec<_>>());
    for comment in ["/* a, } */", "// \"b\": [", "// ü"] {
        assert_eq!(after.matches(comment).count(), before.matches(comment).count(), "{after}");
    }
    for (key, value) in &was {
        if key != "hooks" {
            assert_eq!(&is[key], value);
            continue;
        }
        for (event, groups) in value.as_object().unwrap() {
            let groups = groups.as_array().unwrap();
            assert_eq!(is[key][event].as_array().unwrap()[..groups.len()], groups[..]);
        }
    }
}

#[test]
fn settings_of_any_layout_are_restored_byte_for_byte() {
    let seed = std::env::var("TENURE_TEST_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1_u64);
    for number in 0..800 {
        let mut dice = Dice(seed.wrapping_add(number).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        let before = dice.settings();
        let after = written(put(Some(&before), "tenure").unwrap());
        let again = take_out(Some(&after), "tenure").unwrap();
        assert_eq!(
            again,
            FileChange::Write(before.clone()),
            "seed {seed}, number {number}:\n{before}\n---\n{after}"
        );
        kept(&before, &after);
    }
}

struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }

    fn one_of<'a>(&mut self, words: &[&'a str]) -> &'a str {
        words[usize::try_from(self.below(words.len() as u64)).unwrap()]
    }

    fn space(&mut self) -> &'static str {
        self.one_of(&[
            "",
            "",
            "",
            " ",
            "\n",
            "\n  ",
            "\r\n\t",
            "\n\n    ",
            "/* a, } */",
            " // \"b\": [\n",
            "\n  // ü\r\n  ",
        ])
    }

    fn settings(&mut self) -> String {
        let hooks = self.hooks();
        let mut entries: Vec<String> = ["a", "b, {", "ü\\\"}"]
            .iter()
            .map(|key| {
                let value = self.value(3);
                format!("\"{key}\"{}:{}{value}", self.space(), self.space())
            })
            .collect();
        entries.truncate(usize::try_from(self.below(4)).unwrap());
        if self.below(4) > 0 {
            let at = usize::try_from(self.below(entries.len() as u64 + 1)).unwrap();
            entries.insert(at, format!("\"hooks\"{}:{}{hooks}", self.space(), self.space()));
        }
        format!("{}{}{}", self.space(), self.list('{', &entries, '}'), self.space())
    }

    fn hooks(&mut self) -> String {
        let mut events = Vec::new();
        for event in ["Stop", "SessionStart", "PostToolUse", "SessionEnd"] {
            if self.below(2) == 0 {
                let count = self.below(3);
                let groups: Vec<String> = (0..count)
                    .map(|_| {
                        let hook = r#"{"type": "command", "command": "x, ] y"}"#;
                        let hooks = self.list('[', &[hook.to_owned()], ']');
                        format!("{{\"matcher\": \"*\", \"hooks\":{}{hooks}}}", self.space())
                    })
                    .collect();
                events.push(format!("\"{event}\":{}{}", self.space(), self.list('[', &groups, ']')));
            }
        }
        self.list('{', &events, '}')
    }

    fn value(&mut self, depth: u32) -> String {
        match self.below(if depth == 0 { 3 } else { 5 }) {
            0 => self.one_of(&["1", "-2.5e-7", "true", "null"]).to_owned(),
            1 | 2 => self.one_of(&[r#""""#, r#""]\\""#, r#""{\"hooks\": [""#, r#""é\n""#]).to_owned(),
            3 => {
                let items: Vec<String> = (0..self.below(3)).map(|_| self.value(depth - 1)).collect();
                self.list('[', &items, ']')
            }
            _ => {
                let items: Vec<String> =
                    (0..self.below(3)).map(|n| format!("\"k{n}\":{}", self.value(depth - 1))).collect();
                self.list('{', &items, '}')
            }
        }
    }

    fn list(&mut self, open: char, items: &[String], close: char) -> String {
        let mut text = format!("{open}{}", self.space());
        for (number, item) in items.iter().enumerate() {
            if number > 0 {
                text.extend([self.space(), ",", self.space()]);
            }
            text.push_str(item);
        }
        text.push_str(self.space());
        text.push(close);
        text
    }
}

#[test]
fn a_hook_that_its_owner_has_moved_or_adapted_is_kept_and_can_be_removed() {
    let adapted = r#"{"hooks": {"SessionStart": [{"matcher": "startup", "hooks": [{"type": "command", "command": "mine"}, {"type": "command", "command": "timeout 3 /opt/bin/tenure -v claude-hook session-start"}]}]}}"#;
    assert_eq!(missing(adapted, "tenure").unwrap(), ["PostToolUse", "PostToolUseFailure", "SessionEnd"]);
    let after = written(put(Some(adapted), "tenure").unwrap());
    assert!(
        after.contains("timeout 3 /opt/bin/tenure") && after.matches("session-start").count() == 1,
        "{after}"
    );
    let gone = written(take_out(Some(&after), "tenure").unwrap());
    assert_eq!(
        gone,
        r#"{"hooks": {"SessionStart": [{"matcher": "startup", "hooks": [{"type": "command", "command": "mine"}]}]}}"#
    );
}

#[test]
fn a_program_of_another_name_is_recognized_and_another_tool_is_not_ours() {
    let own = written(put(None, "/opt/t 1/t").unwrap());
    assert!(own.contains("'/opt/t 1/t' claude-hook"), "{own}");
    assert_eq!(put(Some(&own), "/opt/t 1/t").unwrap(), FileChange::Nothing);
    assert_eq!(take_out(Some(&own), "/opt/t 1/t").unwrap(), FileChange::Delete);
    assert_eq!(take_out(Some(&own), "tenure").unwrap(), FileChange::Nothing);
}

#[test]
fn settings_that_cannot_be_read_are_refused() {
    for text in [
        "",
        " \n",
        "// mine\n",
        "{ # mine\n}",
        "[]",
        "{",
        "{\"a\": 1,}",
        r#"{"hooks": []}"#,
        r#"{"hooks": {"SessionEnd": {}}}"#,
    ] {
        assert!(put(Some(text), "tenure").is_err(), "{text:?}");
        assert!(take_out(Some(text), "tenure").is_err(), "{text:?}");
    }
}
