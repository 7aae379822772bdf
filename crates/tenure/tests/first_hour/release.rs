//! A release script that needs the project for itself, and a job that is interrupted and resumed.

use crate::Desk;
use crate::screens::{Screens, unspaced};

#[test]
fn a_release_has_the_project_for_itself_and_a_job_is_resumed() {
    let desk = Desk::new();
    desk.sandbox.configure_user(&desk.sandbox.agent_presets());
    desk.write_program(
        "release.sh",
        "#!/bin/sh\necho building\nwhile [ ! -e go ]; do sleep 0.05; done\necho released\n",
    );
    desk.write_program(
        "thumbnail.sh",
        "#!/bin/sh\n[ \"$1\" != c.png ] || while [ ! -e go ]; do sleep 0.05; done\n[ \"$1\" != e.png ]\n",
    );
    desk.write("images.txt", "a.png\nb.png\nc.png\nd.png\ne.png\n");
    let (ann, bob) = (desk.window("ann"), desk.window("bob"));
    let mut screens = Screens::of(&desk);
    ann.run("tenure init");
    ann.clear();
    ann.start("tenure exclusive run --holder release -- ./release.sh");
    ann.wait_for("building");
    screens.play(
        "bob",
        &bob,
        &[
            "tenure exclusive status",
            "tenure runners start",
            "tenure exclusive run --holder docs -- ./release.sh",
        ],
    );
    bob.start("tenure exclusive run --holder docs --wait -- ./release.sh");
    bob.wait_for("Waiting");
    screens.look("bob waits", &bob);
    desk.give("go");
    ann.wait_until_idle();
    bob.wait_until_idle();
    screens.keep("ann", &ann);
    screens.keep("bob", &bob);
    std::fs::remove_file(desk.folder.join("go")).unwrap();
    ann.start("tenure jobs start thumbnails --items images.txt --retries 0 -- ./thumbnail.sh {item}");
    ann.wait_for("2 of 5");
    ann.press(&["C-c"]);
    ann.wait_until_idle();
    screens.play("interrupted", &ann, &["tenure jobs list"]);
    desk.give("go");
    screens.play("resumed", &ann, &["tenure resume thumbnails", "tenure jobs show thumbnails"]);
    unspaced().bind(|| insta::assert_snapshot!(screens.into_text()));
}
