//! A store that is copied away while a runner cannot notice it. The runner ends its work and says where the project is.

use rustix::process::Signal;
use tenure_testkit::cli::until;
use tenure_testkit::postgres::Cluster;

use crate::project::Project;

#[test]
fn a_runner_on_a_store_that_was_copied_away_ends_and_names_the_new_one() {
    for at_work in [true, false] {
        let project = Project::hasty();
        if at_work {
            project.task("A", &["deaf", "mark begun", "hang"]);
        }
        let runner = project.runner(&["--idle-timeout", "10m"]);
        if at_work {
            project.wait_for("begun");
        } else {
            project.wait_for_log(runner.pid(), "Going idle");
        }
        project.stop_between_writes(runner.pid());
        let url = Cluster::shared().url();
        until("its leases have expired and the store is copied", || {
            project.run(&["store", "copy", "--to", &url]).code == Some(0)
        });
        runner.signal(Signal::CONT);
        let ran = runner.end();
        assert_eq!(ran.code, Some(3), "{ran:?}");
        assert!(ran.err.contains(&format!("copied to {url}")), "{}", ran.err);
        project.expect_no_agents();
        let sealed = project.run(&["--json", "tasks", "list"]);
        assert_eq!(sealed.json()["error"]["code"], "STORE_MOVED", "{sealed:?}");
    }
}
