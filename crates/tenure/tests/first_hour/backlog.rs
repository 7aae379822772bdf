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
    ann.run("tenure");
    screens.keep("ann", &ann);
    ann.run("tenure init");
    ann.run("tenure tasks import plan.md");
    screens.keep("ann", &ann);
    ann.run("tenure tasks");
    ann.run("tenure tasks tree");
    screens.keep("ann", &ann);
    ann.run("tenure tasks next --claim");
    screens.keep("ann", &ann);
    bob.run("tenure tasks claim B1");
    bob.run("tenure tasks claim b2");
    bob.run("tenure why B2");
    screens.keep("bob", &bob);
    bob.run("tenure tasks claim R1");
    cat.run("tenure tasks next --claim --section Release");
    cat.run("tenure why R2");
    screens.keep("cat", &cat);
    cat.start("tenure tasks claim B1 --wait");
    cat.wait_for("elapsed");
    ann.run("tenure msg send B1 'The cookie is called sid'");
    ann.run("tenure tasks release B1 -m 'The tests are missing'");
    screens.keep("ann", &ann);
    cat.wait_until_idle();
    screens.keep("cat", &cat);
    cat.run("tenure tasks done B1");
    cat.run("tenure tasks show B1");
    screens.keep("cat", &cat);
    ann.run("tenure status");
    ann.run("tenure tasks --status all");
    screens.keep("ann", &ann);
    ann.run("tenure events --limit 8");
    ann.run("tenure locks");
    screens.keep("ann", &ann);
    insta::assert_snapshot!(screens.into_text());
}
