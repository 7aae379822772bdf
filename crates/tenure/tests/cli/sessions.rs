use crate::story::Story;
use crate::work_rows::{self, SESSION};

#[test]
fn an_interrupted_session_is_listed_and_shown_with_where_it_was() {
    let story = Story::project(|env| work_rows::session(env))
        .tell(&["sessions"])
        .tell(&["session", "show", &SESSION[..8]])
        .tell(&["sessions", "show", "nowhere"])
        .tell(&["sessions", "show", "../x"]);
    insta::assert_snapshot!(story);
    insta::assert_snapshot!("no_sessions", Story::project(|_| {}).tell(&["sessions", "list"]));
}

#[test]
fn a_session_whose_agent_is_another_now_is_not_resumed_in_passing() {
    let story = Story::project(|env| {
        work_rows::session(env);
        env.write("work/agent.sh", "#!/bin/sh\n");
        let path = env.path("work/agent.sh");
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(path, mode).unwrap();
        env.write("home/.tenure/config.yaml", "presets: {mine: {command: ['./agent.sh']}}\n");
    })
    .tell(&["resume", SESSION])
    .tell(&["resume", SESSION, "--accept-changes", "--dry-run"])
    .tell(&["resume", SESSION, "--retry-failed"]);
    insta::assert_snapshot!(story);
}
