use serde_json::json;

use super::*;
use crate::config::{Config, Layer, Layers};

fn document(text: &str) -> Document {
    Document::parse(text).unwrap()
}

fn content(text: &str) -> TrustContent {
    TrustContent::of(&document(text))
}

const TEXT: &str = "
project: {name: shop}
locking: {leaseTtl: 5m}
runners: {preset: mine}
presets: {mine: {command: [./agent.sh, --careful], env: {MODEL: large, A: b}}}
hooks: [{name: notify, event: task.completed, type: script, command: ./notify.sh}]
";

#[test]
fn the_content_has_only_what_needs_trust_and_does_not_depend_on_the_notation() {
    let one = content(TEXT);
    let names: Vec<&str> = one.keys.keys().map(String::as_str).collect();
    assert_eq!(names, ["hooks", "presets.mine.command", "presets.mine.env", "runners.preset"]);
    let other = content(
        "
# A comment.
hooks:
  - {type: script, event: task.completed, command: \"./notify.sh\", name: notify, _description: hello}
presets:
  mine:
    env: &env {A: b, MODEL: large}
    command: {_default: [], value: [./agent.sh, '--careful']}
runners: {preset: {_description: 'which', value: mine}, killGrace: 1s}
",
    );
    assert_eq!((&one, one.hash()), (&other, other.hash()));
    assert!(!document("locking: {leaseTtl: 5m}\nrunners: {wakeup: {enabled: false}}").needs_trust());
    assert!(content("project: {name: x}").is_empty());
}

#[test]
fn every_difference_in_what_is_run_or_reached_changes_the_content() {
    let one = content(TEXT);
    for (from, to) in [
        ("--careful", "--careless"),
        ("MODEL: large", "MODEL: small"),
        ("command: ./notify.sh", "command: ./other.sh"),
        ("task.completed", "task.failed"),
        ("preset: mine", "preset: claude"),
        ("locking:", "store: {url: 'postgres://h/d'}\nlocking:"),
        ("locking:", "review: {enabled: true}\nlocking:"),
    ] {
        assert!(TEXT.contains(from));
        let other = content(&TEXT.replacen(from, to, 1));
        assert_ne!(one, other, "{from}");
        assert_ne!(one.hash(), other.hash(), "{from}");
    }
    let mut with_file = one.clone();
    with_file.files.insert("./notify.sh".to_owned(), sha256(b"exit 0\n"));
    assert_ne!(one.hash(), with_file.hash());
}

#[test]
fn an_alias_is_what_it_stands_for() {
    let aliased = "presets: {a: {command: &c [./x.sh]}, b: {command: *c}}";
    let plain = "presets: {a: {command: [./x.sh]}, b: {command: [./x.sh]}}";
    assert_eq!(content(aliased), content(plain));
    let changed = "presets: {a: {command: &c [./y.sh]}, b: {command: *c}}";
    assert_eq!(content(changed).keys["presets.b.command"], json!(["./y.sh"]));
}

#[test]
fn commands_arguments_variables_and_the_template_may_name_files() {
    let text = "
runners: {promptTemplate: ci/prompt.md, preset: a}
presets: {a: {command: [bash, ci/agent.sh, --config=ci/a.json], env: {BASH_ENV: ci/env.sh}}, b: {command: [sh, -c, 'cd x && ./run; ./then']}}
hooks:
  - {name: n, event: task.failed, type: script, command: ./hook.sh, args: [data.txt, '{{task.title}}']}
  - {name: w, event: task.failed, type: webhook, url: 'https://h/x'}
";
    let words = document(text).words_that_may_name_files();
    for word in
        ["ci/prompt.md", "ci/agent.sh", "ci/a.json", "ci/env.sh", "./run", "./then", "./hook.sh", "data.txt"]
    {
        assert!(words.contains(word), "{word} in {words:?}");
    }
    assert!(!words.contains("bash") && !words.contains("https://h/x"));
}

#[test]
fn the_summary_names_commands_hosts_and_variables_and_no_password() {
    let text = "
store: {url: 'postgres://ann:s3/cret@db.example:5432/x?sslmode=require'}
presets: {mine: {command: [./agent.sh, --careful], env: {MODEL: large}}}
hooks:
  - {name: n, event: task.failed, type: script, command: ./n.sh, args: ['${GITHUB_TOKEN}']}
  - {name: w, event: task.failed, type: webhook, url: 'https://hooks.example/x', headers: {A: 'Bearer ${TOKEN}'}}
";
    let summary = TrustSummary::of(&document(text));
    assert_eq!(summary.commands, ["./agent.sh --careful", "./n.sh ${GITHUB_TOKEN}"]);
    assert_eq!(summary.hosts, ["db.example:5432", "hooks.example"]);
    assert_eq!(summary.variables, ["GITHUB_TOKEN", "MODEL", "TOKEN"]);
    let shown = format!("{:?}", content(text).changes_since(None));
    assert!(shown.contains("postgres://ann:****@db.example:5432"), "{shown}");
    assert!(!shown.contains("s3/c"), "{shown}");
}

#[test]
fn a_host_cannot_be_disguised() {
    for (url, hosts) in [
        ("https://evil.example/@good.example", vec!["evil.example"]),
        ("https://good.example@evil.example/x", vec!["evil.example"]),
        ("https://evil.example?x=@good.example", vec!["evil.example"]),
        ("postgres://u:p@evil.example/x@good.example", vec!["evil.example"]),
        ("postgres://good.example/x?host=evil.example", vec!["good.example", "evil.example"]),
        ("postgres:///x?host=/run/pg", vec!["/run/pg"]),
        ("sqlite:", vec![]),
    ] {
        assert_eq!(hosts_of(url), hosts, "{url}");
    }
}

#[test]
fn changes_are_shown_per_setting_hook_and_file() {
    let before = content(TEXT);
    let mut after = content(&TEXT.replace("--careful", "--bold").replace("./notify.sh", "./tell.sh"));
    after.files.insert("./tell.sh".to_owned(), "ab".to_owned());
    let changes = after.changes_since(Some(&before));
    let changed: Vec<&str> =
        changes.iter().filter(|change| change.is_change()).map(|change| change.name.as_str()).collect();
    assert_eq!(changed, ["hooks.notify", "presets.mine.command", "file ./tell.sh"]);
    assert!(before.changes_since(Some(&before)).iter().all(|change| !change.is_change()));
    assert!(before.changes_since(None).iter().all(TrustChange::is_change));
}

#[test]
fn a_changed_order_of_hooks_is_a_change_that_is_shown() {
    let hook = |name: &str| format!("{{name: {name}, event: task.failed, type: script, command: ./x}}");
    let in_order = |a: &str, b: &str| content(&format!("hooks: [{}, {}]", hook(a), hook(b)));
    let (one, other) = (in_order("a", "b"), in_order("b", "a"));
    assert_ne!(one, other);
    assert!(one.changes_since(Some(&other)).iter().any(TrustChange::is_change));
}

#[test]
fn the_state_follows_from_the_content_and_the_record() {
    let record = |text: &str| TrustRecord {
        path: "/p".to_owned(),
        trusted_at: Timestamp::from_millis(0),
        content: content(text),
    };
    let state = |text: &str, record: Option<&TrustRecord>| TrustState::of(&content(text), record);
    assert_eq!(state("", None), TrustState::Nothing);
    assert_eq!(state(TEXT, None), TrustState::Untrusted);
    assert_eq!(state(TEXT, Some(&record(TEXT))), TrustState::Trusted);
    assert_eq!(state("", Some(&record(""))), TrustState::Trusted);
    assert_eq!(state("", Some(&record(TEXT))), TrustState::Changed);
    assert_eq!(state(TEXT, Some(&record(""))), TrustState::Changed);
}

#[test]
fn a_record_survives_its_file() {
    let mut content = content(TEXT);
    content.files.insert("./notify.sh".to_owned(), sha256(b"x"));
    let record = TrustRecord { path: "/p".to_owned(), trusted_at: Timestamp::from_millis(5), content };
    let text = serde_json::to_string(&record).unwrap();
    assert_eq!(serde_json::from_str::<TrustRecord>(&text).unwrap(), record);
    assert_ne!(TrustRecord::file_name("/p"), TrustRecord::file_name("/q"));
}

fn resolve(user: &str, project: &str, trusts_project: bool) -> Config {
    let (user, project) = (document(user), document(project));
    Config::resolve(Layers {
        project: Some(Layer { path: "project", document: &project }),
        user: Some(Layer { path: "user", document: &user }),
        trusts_project,
        ..Layers::default()
    })
    .unwrap()
}

#[test]
fn settings_that_need_trust_count_only_from_a_trusted_file() {
    let user =
        "runners: {preset: codex}\nhooks: [{name: notify, event: task.failed, type: script, command: mine}]";
    let trusted = resolve(user, TEXT, true);
    assert_eq!((trusted.runners.preset.as_str(), trusted.ignored.len()), ("mine", 0));
    assert!(trusted.presets.contains_key("mine") && trusted.hooks.len() == 1);

    let untrusted = resolve(user, TEXT, false);
    assert_eq!(untrusted.runners.preset, "codex", "the user's value counts");
    assert_eq!(untrusted.locking.lease_ttl, std::time::Duration::from_mins(5), "harmless keys count");
    assert!(untrusted.presets.is_empty() && untrusted.is_untrusted("presets.mine.command"));
    assert_eq!((untrusted.hooks.len(), untrusted.ignored_hooks.len()), (1, 1));
    assert!(matches!(&untrusted.hooks[0].action, HookAction::Script { command, .. } if command == "mine"));
    assert!(!untrusted.has_untrusted_store() && !untrusted.is_untrusted("locking.leaseTtl"));
}

#[test]
fn an_untrusted_store_is_overridden_by_the_environment_only() {
    let project = document("store: {url: 'postgres://evil/x'}");
    let user = document("store: {url: 'postgres://mine/x'}");
    let environment = [crate::config::Override { key: "store.url", value: "sqlite:", label: "TENURE_STORE" }];
    let resolve = |environment, trusts_project| {
        let layers = Layers {
            project: Some(Layer { path: "project", document: &project }),
            user: Some(Layer { path: "user", document: &user }),
            environment,
            trusts_project,
            ..Layers::default()
        };
        Config::resolve(layers).unwrap()
    };
    assert!(resolve(&[], false).has_untrusted_store());
    assert!(!resolve(&environment, false).has_untrusted_store());
    assert_eq!(resolve(&environment, false).store_url, None);
    assert_eq!(resolve(&[], true).store_url.as_deref(), Some("postgres://evil/x"));
}

#[test]
fn wake_up_belongs_to_the_user_even_in_a_trusted_file() {
    let project = "runners: {wakeup: {enabled: false, projectPaths: [/]}}";
    let config = resolve("", project, true);
    assert!(config.runners.wakeup.enabled && config.runners.wakeup.project_paths.is_empty());
    assert!(config.ignored.iter().all(|ignored| ignored.authority == Authority::UserOnly));
    let own = resolve(project, "", false);
    assert!(!own.runners.wakeup.enabled);
}
