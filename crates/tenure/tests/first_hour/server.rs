//! The same project on PostgreSQL, with a second clone.

use tenure_testkit::cli::Terminal;
use tenure_testkit::postgres::Cluster;

use crate::Desk;
use crate::screens::Screens;

#[test]
fn two_clones_share_a_project_on_a_server() {
    let url = Cluster::shared().url_of(&Cluster::shared().new_database());
    let desk = Desk::new();
    let ann = desk.window("ann");
    let mut screens = Screens::of(&desk);
    ann.run(&format!("URL='{url}'"));
    ann.run("export GIT_AUTHOR_NAME=ann GIT_AUTHOR_EMAIL=ann@example.org GIT_COMMITTER_NAME=ann");
    ann.run("export GIT_COMMITTER_EMAIL=ann@example.org");
    ann.run("git init -q && tenure init -q && tenure tasks add 'Add a login endpoint'");
    ann.run("tenure tasks add 'Hash the passwords'");
    ann.clear();
    ann.run("tenure store copy --to $URL");
    ann.run("tenure tasks");
    screens.keep("copied", &ann);
    ann.run("tenure config set store.url $URL");
    ann.run("tenure tasks");
    ann.run("git add . && git commit -qm 'Use a server' && git clone -q . ../clone");
    screens.keep("ann", &ann);
    ann.run("tenure tasks claim T1");
    ann.clear();
    let bob = Terminal::open(&desk.sandbox, "bob", &desk.sandbox.path("projects/clone"), (80, 24));
    bob.run("export TENURE_AGENT=bob");
    bob.clear();
    bob.run("tenure tasks");
    bob.run("tenure tasks claim T1");
    screens.keep("bob", &bob);
    bob.start("tenure tasks claim T1 --wait");
    bob.wait_for("elapsed");
    ann.run("tenure tasks done T1");
    bob.wait_until_idle();
    screens.keep("bob", &bob);
    bob.run("tenure tasks next --claim");
    ann.run("tenure status");
    ann.run("tenure tasks --status all");
    screens.keep("ann", &ann);
    let text = screens.into_text();
    for line in [
        "Copied 2 tasks and 2 events to",
        "T1   in_progress  -        ann     Add a login endpoint",
        "Error: Task \"Add a login endpoint\" is locked by agent ann",
        "Error: task T1 is completed, so it cannot be claimed",
        "T2   in_progress  -        bob     Hash the passwords",
    ] {
        assert!(text.contains(line), "{line}: {text}");
    }
}
