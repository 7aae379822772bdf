//! The same project on PostgreSQL, with a second clone.

use tenure_testkit::postgres::Cluster;

use crate::Desk;
use crate::screens::{Screens, unspaced};

#[test]
fn two_clones_share_a_project_on_a_server() {
    let url = Cluster::shared().url_of(&Cluster::shared().new_database());
    let desk = Desk::new();
    let ann = desk.window("ann");
    let mut screens = Screens::of(&desk);
    screens.replace(&url, "postgres://SERVER");
    ann.run(&format!("URL='{url}'"));
    ann.run("export GIT_AUTHOR_NAME=ann GIT_AUTHOR_EMAIL=ann@example.org GIT_COMMITTER_NAME=ann");
    ann.run("export GIT_COMMITTER_EMAIL=ann@example.org");
    ann.run("git init -q && tenure init -q && tenure tasks add 'Add a login endpoint'");
    ann.run("tenure tasks add 'Hash the passwords'");
    ann.clear();
    screens.play("copied", &ann, &["tenure store copy --to $URL", "tenure tasks"]);
    screens.play(
        "ann",
        &ann,
        &[
            "tenure config set store.url $URL",
            "tenure tasks",
            "git add . && git commit -qm 'Use a server' && git clone -q . ../clone",
        ],
    );
    ann.run("tenure tasks claim T1");
    ann.clear();
    let bob = desk.window_in("bob", &desk.sandbox.path("projects/clone"));
    screens.play("bob", &bob, &["tenure tasks", "tenure tasks claim T1"]);
    bob.start("tenure tasks claim T1 --wait");
    bob.wait_for("elapsed");
    ann.run("tenure tasks done T1");
    bob.wait_until_idle();
    screens.keep("bob", &bob);
    bob.run("tenure tasks next --claim");
    screens.play("ann", &ann, &["tenure status", "tenure tasks --status all"]);
    unspaced().bind(|| insta::assert_snapshot!(screens.into_text()));
}
