use crate::story::Story;
use crate::support::TestEnv;

#[test]
fn the_registry_knows_every_project_that_init_made() {
    let story = Story::project(|env| {
        env.cd("other");
        env.ok(&["init"]);
        env.cd("gone");
        env.ok(&["init"]);
        std::fs::remove_dir_all(env.path("gone")).unwrap();
        env.cd("work");
        env.ok(&["projects", "disable", "../other"]);
    })
    .tell(&["projects", "list"])
    .tell(&["projects"]);
    insta::assert_snapshot!(story);
    insta::assert_snapshot!("none_yet", Story::outside(|_| {}).tell(&["projects", "list"]));
}

#[test]
fn a_project_that_is_found_but_not_registered_is_listed_with_the_command_that_registers_it() {
    let story = Story::project(|env| {
        env.write("home/.tenure/config.yaml", "runners: {wakeup: {projectPaths: ['~/src']}}\n");
        env.write("home/src/clone/.tenure/config.yaml", "lockng: {}\n");
        env.cd("home/src/new shop");
        env.ok(&["init"]);
        env.ok(&["projects", "remove"]);
        env.cd("work");
    })
    .tell(&["projects", "list"])
    .tell(&["runners", "wakeup"])
    .tell(&["runners", "wakeup", "--dry-run"]);
    insta::assert_snapshot!(story);
}

#[test]
fn the_registry_is_listed_although_the_users_configuration_has_a_mistake() {
    let env = TestEnv::project();
    env.write("home/.tenure/config.yaml", "lockng: {}\n");
    let listed = env.json(&["projects", "list"]);
    assert_eq!(listed.data()["total"], 1, "{listed}");
    assert!(listed.to_string().contains("lockng"), "{listed}");
}

#[test]
fn a_project_is_added_removed_enabled_and_disabled_by_its_path() {
    let story = Story::project(|_| {})
        .tell(&["projects", "add"])
        .tell(&["projects", "add", "--dry-run"])
        .tell(&["projects", "disable"])
        .tell(&["projects", "enable", "."])
        .tell(&["projects", "remove"])
        .tell(&["projects", "remove", "--dry-run"]);
    insta::assert_snapshot!(story);
}

#[test]
fn what_is_no_project_or_is_not_registered_is_said_so() {
    let story = Story::outside(|env: &mut TestEnv| {
        env.cd("work");
    })
    .tell(&["projects", "add"])
    .tell(&["projects", "remove"])
    .tell(&["projects", "enable", "nowhere"]);
    insta::assert_snapshot!(story);
    let homeless = |env: &mut TestEnv| {
        env.unset("HOME");
    };
    insta::assert_snapshot!("without_a_home", Story::outside(homeless).tell(&["projects", "list"]));
}
