use super::*;
use crate::config::{Document, Layer, Layers};

fn config(text: &str) -> Config {
    let document = Document::parse(text).unwrap();
    let project = Some(Layer { path: "config.yaml", document: &document });
    Config::resolve(Layers { project, trusts_project: true, ..Layers::default() }).unwrap()
}

const TEXT: &str = "
locking: {sectionTimeout: 120m}
presets: {mine: {command: [./a.sh, x y]}}
hooks: [{name: slack, event: task.failed, type: webhook, url: u, headers: {Authorization: 'Bearer ${TOKEN}'}}]
";

#[test]
fn every_key_is_shown_with_value_origin_and_description() {
    let entries = config(TEXT).entries();
    let entry = |key: &str| entries.iter().find(|entry| entry.key == key).unwrap();
    for key in KEYS.iter().filter(|key| !key.name.contains('*') && key.name != "hooks") {
        assert_eq!(entry(key.name).about, key.about);
    }
    assert_eq!(entry("locking.sectionTimeout").display, "120m");
    assert_eq!(entry("locking.sectionTimeout").origin.kind(), "project");
    assert_eq!(entry("tasks.maxAttempts").value, json!(3));
    assert_eq!(entry("tasks.maxAttempts").origin, Origin::Default);
    assert_eq!((&entry("review.preset").value, entry("review.preset").display.as_str()), (&Json::Null, ""));
    assert_eq!(entry("presets.mine.command").value, json!(["./a.sh", "x y"]));
    assert_eq!(entry("hooks.slack").value["headers"]["Authorization"], "Bearer ${TOKEN}");
    assert_eq!(config("").entries().last().map(|entry| entry.display.clone()).as_deref(), Some("[]"));
}

#[test]
fn values_are_found_by_name_and_by_group() {
    let config = config(TEXT);
    assert_eq!(config.get("runners.preset").unwrap().display(), "claude");
    assert_eq!(config.get("presets.mine.command").unwrap().display(), "[./a.sh, x y]");
    assert_eq!(config.get("presets").unwrap().value(), json!({"mine": {"command": ["./a.sh", "x y"]}}));
    assert_eq!(config.get("hooks").unwrap().value()[0]["name"], "slack");
    assert_eq!(config.get("hooks.slack").unwrap().value()["type"], "webhook");
    let runners = config.get("runners").unwrap();
    assert_eq!(runners.value()["wakeup"]["checkInterval"], "1m");
    assert!(runners.display().lines().any(|line| line == "runners.killGrace: 5s"));
    assert_eq!(self::config("").get("presets").unwrap().value(), json!({}));
}

#[test]
fn unknown_names_are_a_usage_error_with_the_nearest_key() {
    let config = config(TEXT);
    for (asked, near) in [
        ("leaseTtl", "locking.leaseTtl"),
        ("presets.mien.command", "presets.mine.command"),
        ("hooks.slak", "hooks.slack"),
        ("runner", "runners"),
    ] {
        let error = config.get(asked).unwrap_err();
        assert!(error.is_usage());
        assert!(matches!(&error, ConfigError::UnknownKey { nearest: Some(n), .. } if n == near), "{error}");
    }
    assert!(
        config.get("").is_err() && config.get("presets.nope.env").is_err() && config.get("locking.").is_err()
    );
}

#[test]
fn passwords_of_the_store_are_masked() {
    for (url, shown) in [
        ("postgres://ann:s3cret@host/db", "postgres://ann:****@host/db"),
        ("postgres://ann:s3/c:r@et@host:5432/db?x=1", "postgres://ann:****@host:5432/db?x=1"),
        ("postgres://ann:s3?c#r@et@host/db", "postgres://ann:****@host/db"),
        ("postgres://ann@host:5432/db", "postgres://ann@host:5432/db"),
        ("postgres://host/db?user=a&password=s3cret&x=1", "postgres://host/db?user=a&password=****&x=1"),
        ("host=h Password='s3 cret' user=a", "host=h Password=**** user=a"),
        ("sqlite:///tmp/é.db", "sqlite:///tmp/é.db"),
    ] {
        let document = Document::parse(&format!("store: {{url: {url:?}}}")).unwrap();
        let user = Some(Layer { path: "u", document: &document });
        let config = Config::resolve(Layers { user, ..Layers::default() }).unwrap();
        let found = config.get("store.url").unwrap();
        assert_eq!((found.display().as_str(), found.value()), (shown, json!(shown)));
        assert_eq!(config.store_url.as_deref(), Some(url));
    }
}
