//! Three shells and one backlog.

use crate::Desk;
use crate::screens::Screens;

const PLAN: &str = "# Shop

Everything for the first release.

## Backend

- [ ] B1: Add a login endpoint
  Sessions live for a day. See docs/SPEC.md for the fields.
- [ ] B2: Hash the passwords with argon2 (depends on B1)
- [ ] B3: Limit the number of failed logins per address and per account (depends on B2)

## Frontend

- [ ] F1: Show the login form
- [ ] F2: Remember the last user name
- [x] F0: Choose the colours

## Release (serial)

- [ ] R1: Write the notes
- [ ] R2: Tag the release
";

#[test]
fn three_shells_share_one_backlog() {
    let desk = Desk::new();
    desk.write("plan.md", PLAN);
    let (ann, bob, cat) = (desk.window("ann"), desk.window("bob"), desk.window("cat"));
    let mut screens = Screens::of(&desk);
    screens.play("ann", &ann, &["tenure"]);
    screens.play("ann", &ann, &["tenure init", "tenure tasks import plan.md"]);
    screens.play("ann", &ann, &["tenure tasks", "tenure tasks tree"]);
    screens.play("ann", &ann, &["tenure tasks next --claim"]);
    screens.play("bob", &bob, &["tenure tasks claim B1", "tenure tasks claim b2", "tenure why B2"]);
    bob.run("tenure tasks claim R1");
    screens.play("cat", &cat, &["tenure tasks next --claim --section Release", "tenure why R2"]);
    cat.start("tenure tasks claim B1 --wait");
    cat.wait_for("elapsed");
    screens.play(
        "ann",
        &ann,
        &[
            "tenure msg send B1 'The cookie is called sid'",
            "tenure tasks release B1 -m 'The tests are missing'",
        ],
    );
    cat.wait_until_idle();
    screens.keep("cat", &cat);
    screens.play("cat", &cat, &["tenure tasks done B1", "tenure tasks show B1"]);
    screens.play("ann", &ann, &["tenure status", "tenure tasks --status all"]);
    screens.play("ann", &ann, &["tenure events --limit 8", "tenure locks"]);
    insta::assert_snapshot!(screens.into_text());
}
