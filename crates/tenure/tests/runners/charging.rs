//! An agent that returns its task is started at most `tasks.maxAttempts` times, no matter which verb it uses.

use crate::project::Project;

#[test]
fn an_agent_that_gives_its_task_back_is_not_started_for_ever() {
    let scrubbed = "env -u TENURE_SUPERVISED -u TENURE_ATTEMPT -u TENURE_FENCE -u TENURE_LEASE tenure";
    let verbs: [(&str, &[&str]); 7] = [
        ("A", &["tenure task release A"]),
        ("B", &["shell tenure locks release B"]),
        ("C", &["shell tenure locks release C --force --agent mallory"]),
        ("D", &["shell tenure task update D --status pending"]),
        ("E", &["tenure task fail E -m no", "shell tenure task retry E"]),
        ("F", &["tenure task done F", "shell tenure task update F --status pending"]),
        // The environment is scrubbed, so nothing shows that this command comes from the attempt.
        ("G", &["tenure whoami; SCRUBBED locks release G --force --agent mallory"]),
    ];
    let project = Project::new();
    for (task, steps) in verbs {
        let mark = format!("mark ran-{task}");
        let steps: Vec<String> = steps.iter().map(|step| step.replace("SCRUBBED", scrubbed)).collect();
        let steps: Vec<&str> =
            std::iter::once(mark.as_str()).chain(steps.iter().map(String::as_str)).collect();
        project.task(task, &steps);
    }
    let ran = project.work(&[]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    for (task, verb) in verbs {
        let shown = project.show(task);
        assert_eq!(
            (shown["status"].as_str(), shown["attempts"].as_u64()),
            (Some("failed"), Some(3)),
            "{verb:?}"
        );
        assert_eq!(project.marks(&format!("ran-{task}")).len(), 3, "{verb:?}");
    }
}
