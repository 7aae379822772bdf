//! Text with a meaning in SQL, in every field that takes text, and in the URL.

use serde_json::json;

use crate::harness::Project;
use tenure_testkit::postgres::Cluster;

const HOSTILE: &[&str] = &[
    "'; DROP SCHEMA tenure CASCADE; --",
    "\"; DELETE FROM tenure.tasks; --",
    "$1 $2 $$ \\' \\\\ E'\\x00'",
    "{a,NULL,\"b\"}",
    "%s %1$s \u{2028} ﬃ 🦀 \u{202e}",
    "NULL",
    "COMMIT",
];

#[test]
fn every_field_treats_sql_as_plain_text() {
    let project = Project::new();
    for (n, text) in HOSTILE.iter().enumerate() {
        let section = project.ok(&["sections", "add", text]);
        assert_eq!(section["section"]["name"], *text);
        let key = format!("H{n}");
        let task = project.ok(&[
            "tasks",
            "add",
            text,
            "--id",
            &key,
            "-d",
            text,
            "--section",
            text,
            "--label",
            text,
            "--source",
            text,
        ]);
        for field in ["title", "description", "section", "sourceFile"] {
            assert_eq!(task["task"][field], *text, "{field}");
        }
        assert_eq!(task["task"]["labels"], json!([text]));
        assert_eq!(project.ok(&["tasks", "show", text])["task"]["key"], key.as_str());
        let found = project.ok(&["tasks", "list", "--search", text])["tasks"].clone();
        assert!(found.as_array().unwrap().iter().any(|task| task["key"] == key.as_str()), "{found}");
        assert_eq!(project.ok(&["tasks", "list", "--section", text])["total"], 1);
        project.ok(&["msg", "send", "--task", &key, "-m", text]);
        assert_eq!(project.ok(&["msg", "list", "--task", &key])["messages"][0]["text"], *text);
        project.ok(&["tasks", "claim", &key, "--agent", "eve"]);
        project.ok(&["tasks", "fail", &key, "--agent", "eve", "-m", text]);
        let history = project.ok(&["tasks", "show", &key, "--history"]).to_string();
        assert!(history.contains(&serde_json::to_string(text).unwrap().trim_matches('"').to_owned()));
        for reference in [text, &"locks"] {
            let refused = project.run(&["--json", "locks", "show", &format!("section:{reference}")]);
            assert!(matches!(refused.code, Some(0 | 4)), "{refused:?}");
        }
        let joined = project.ok(&["agents", "join", "--name", text]);
        assert_eq!(joined["agent"]["name"], *text);
    }
    assert_eq!(project.ok(&["tasks", "list", "--status", "all"])["total"], HOSTILE.len());
}

#[test]
fn a_hostile_url_is_refused_and_not_printed() {
    let project = Project::new();
    let good = Cluster::shared().url();
    for (url, code) in [
        (good.replace("/postgres", "/x%27%3B%20DROP%20DATABASE%20postgres%3B%20--"), 1),
        (good.replace("tenure@", "nobody%27%3B--:s3cret@"), 5),
        // It is accepted and has no effect, because every statement qualifies its names with the schema.
        (format!("{good}?options=-c%20search_path%3Devil%3Bs3cret"), 0),
        (format!("{good}?sslmode=s3cret"), 3),
        (format!("{good}?s3cret=1"), 3),
        // The host comes from the environment.
        ("postgres://a:s3cret@/".to_owned(), 1),
        ("postgres://a:s3cret@host:99999999/x".to_owned(), 3),
        ("file:///etc/passwd?s3cret".to_owned(), 3),
    ] {
        let mut command = project.command(&["--json", "-vv", "--timeout", "1s", "status"]);
        command.env("TENURE_STORE", &url).env("PGHOST", "/nowhere");
        let answer = tenure_testkit::cli::Running::start(command).end();
        assert_eq!(answer.code, Some(code), "{url}: {answer:?}");
        assert!(!format!("{answer:?}").contains("s3cret"), "{url}: {answer:?}");
    }
    project.ok(&["status"]);
}
