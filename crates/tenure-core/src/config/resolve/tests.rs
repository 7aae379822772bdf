use super::*;
use crate::config::HookAction;

fn resolve(user: &str, project: &str) -> Result<Config, ConfigError> {
    let (user, project) = (Document::parse(user).unwrap(), Document::parse(project).unwrap());
    Config::resolve(Layers {
        user: Some(Layer { path: "~/.tenure/config.yaml", document: &user }),
        project: Some(Layer { path: ".tenure/config.yaml", document: &project }),
        trusts_project: true,
        ..Layers::default()
    })
}

#[test]
fn without_any_layer_the_documented_defaults_hold() {
    let config = Config::resolve(Layers::default()).unwrap();
    let minutes = |n: u64| Duration::from_secs(n * 60);
    assert_eq!(config.locking.task_timeout, minutes(60));
    assert_eq!(config.locking.section_timeout, minutes(120));
    assert_eq!(config.locking.lease_ttl, minutes(15));
    assert_eq!(config.locking.wait_timeout, minutes(30));
    assert_eq!(config.locking.poll_interval, Duration::from_secs(5));
    assert_eq!((config.tasks.max_attempts, config.tasks.max_rejections), (3, 5));
    assert_eq!((config.review.enabled, config.review.preset), (false, None));
    assert_eq!((config.store_url, config.project.id, config.project.name), (None, None, None));
    assert_eq!(config.runners.heartbeat_interval, Duration::from_secs(30));
    assert_eq!(config.runners.stale_timeout, minutes(5));
    assert_eq!(config.runners.subprocess_hang_timeout, minutes(15));
    assert_eq!(config.runners.agent_timeout, minutes(120));
    assert_eq!(config.runners.kill_grace, Duration::from_secs(5));
    assert_eq!(config.runners.max_concurrent, 1);
    assert_eq!(config.runners.idle_timeout, Duration::ZERO);
    assert_eq!(config.runners.log_retention, minutes(7 * 24 * 60));
    assert_eq!((config.runners.preset.as_str(), config.runners.prompt_template), ("claude", None));
    assert!(config.runners.wakeup.enabled);
    assert_eq!(config.runners.wakeup.check_interval, minutes(1));
    assert!(
        config.runners.wakeup.project_paths.is_empty()
            && config.presets.is_empty()
            && config.hooks.is_empty()
    );
}

#[test]
fn each_layer_overrides_the_one_below() {
    let user =
        Document::parse("locking: {leaseTtl: 1m, waitTimeout: 1m, pollInterval: 1s, taskTimeout: 59m}")
            .unwrap();
    let project = Document::parse("locking:\n  leaseTtl: 2m\n  waitTimeout: 2m\n  pollInterval: 2s").unwrap();
    let environment = [
        Override { key: "locking.leaseTtl", value: "3m", label: "TENURE_LEASE_TTL" },
        Override { key: "locking.waitTimeout", value: "3m", label: "X" },
    ];
    let flags = [Override { key: "locking.leaseTtl", value: "4m", label: "--ttl" }];
    let config = Config::resolve(Layers {
        flags: &flags,
        environment: &environment,
        project: Some(Layer { path: "project.yaml", document: &project }),
        user: Some(Layer { path: "user.yaml", document: &user }),
        trusts_project: false,
    })
    .unwrap();
    let origin =
        |key: &str| config.settings.iter().find(|s| s.key == key).map(|s| s.origin.to_string()).unwrap();
    assert_eq!(config.locking.lease_ttl, Duration::from_mins(4));
    assert_eq!(origin("locking.leaseTtl"), "--ttl");
    assert_eq!(config.locking.wait_timeout, Duration::from_mins(3));
    assert_eq!(origin("locking.waitTimeout"), "X");
    assert_eq!(config.locking.poll_interval, Duration::from_secs(2));
    assert_eq!(origin("locking.pollInterval"), "project.yaml:4");
    assert_eq!(origin("locking.taskTimeout"), "user.yaml:1");
    assert_eq!(origin("locking.sectionTimeout"), "default");
}

#[test]
fn a_wrong_value_in_the_environment_names_its_variable() {
    for (key, value, words) in [
        (
            "locking.leaseTtl",
            "15",
            "locking.leaseTtl from TENURE_LEASE_TTL must be a duration from 1s to 30d",
        ),
        ("locking.leaseTTL", "15m", "Did you mean \"locking.leaseTtl\""),
        ("runners.wakeup.projectPaths", "[a", "must be valid YAML"),
        ("runners.wakeup.projectPaths", "a", "must be a list"),
    ] {
        let environment = [Override { key, value, label: "TENURE_LEASE_TTL" }];
        let error = Config::resolve(Layers { environment: &environment, ..Layers::default() }).unwrap_err();
        assert!(error.to_string().contains(words), "{error}");
        assert!(error.is_usage());
    }
}

#[test]
fn timeouts_that_make_a_live_runner_look_stale_are_refused() {
    let error = resolve("runners: {heartbeatInterval: 2m}", "locking:\n  taskTimeout: 10m").unwrap_err();
    assert_eq!(
        error.to_string(),
        "3 × runners.heartbeatInterval ≤ runners.staleTimeout ≤ locking.taskTimeout must hold, but \
         runners.heartbeatInterval is 2m (~/.tenure/config.yaml:1), runners.staleTimeout is 5m (default), \
         locking.taskTimeout is 10m (.tenure/config.yaml:2)."
    );
    assert!(!error.is_usage());
    assert!(matches!(resolve("", "locking: {taskTimeout: 4m}"), Err(ConfigError::Conflict { .. })));
    assert!(resolve("", "runners: {heartbeatInterval: 100s}").is_ok());
    assert!(resolve("", "locking: {taskTimeout: 5m}").is_ok());
}

#[test]
fn hooks_of_user_and_project_are_merged_and_the_project_wins_by_name() {
    let config = resolve(
        "hooks: [{name: a, event: lease.lost, type: script, command: ./user.sh}, {name: b, event: lease.lost, type: script, command: ./b.sh}]",
        "hooks: [{name: a, event: lease.lost, type: webhook, url: u}, {name: c, event: lease.lost, type: script, command: ./c.sh}]",
    )
    .unwrap();
    let names: Vec<&str> = config.hooks.iter().map(|hook| hook.name.as_str()).collect();
    assert_eq!(names, ["a", "b", "c"]);
    assert!(matches!(&config.hooks[0].action, HookAction::Webhook { method, .. } if method == "POST"));
}

#[test]
fn presets_are_merged_key_by_key() {
    let config = resolve(
        "presets: {mine: {command: [a], env: {X: '1'}}, claude: {env: {K: v}}}",
        "presets: {mine: {command: [b, -c]}}",
    )
    .unwrap();
    assert_eq!(config.presets["mine"].command, ["b", "-c"]);
    assert_eq!(config.presets["mine"].env["X"], "1");
    assert!(config.presets["claude"].command.is_empty());
}
