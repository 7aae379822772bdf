//! A release script that needs the project for itself, and a job that is interrupted and resumed.

use crate::Desk;
use crate::screens::Screens;

#[test]
fn a_release_has_the_project_for_itself_and_a_job_is_resumed() {
    let desk = Desk::new();
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
    bob.run("tenure exclusive status");
    bob.run("tenure runners start");
    bob.run("tenure exclusive run --holder docs -- ./release.sh");
    screens.keep("bob", &bob);
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
    ann.run("tenure jobs list");
    screens.keep("interrupted", &ann);
    desk.give("go");
    ann.run("tenure resume thumbnails");
    ann.run("tenure jobs show thumbnails");
    screens.keep("resumed", &ann);
    let text = screens.into_text();
    for line in [
        "Locked by release, pid NUMBER on HOST",
        "wait for it: tenure exclusive run --wait --holder docs -- ./release.sh",
        "Waiting for the exclusive lock: release, pid NUMBER on HOST",
        "Error: interrupted; 2 of 5 done",
        "resume it: tenure resume ID",
        "ID  thumbnails  interrupted  2/5",
        "failed: 4 of 5 done, 1 failed",
        "retry the dead letters: tenure jobs retry ID",
    ] {
        assert!(text.contains(line), "{line}: {text}");
    }
}
