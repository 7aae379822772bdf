//! The scenarios of all hints, by theme. A hint that is given in several places has several scenarios.

/// How a hint is triggered, and how its command is run.
#[derive(Debug, Clone, Copy)]
pub(super) struct Scenario {
    /// The hint's name in `src/hints.rs`.
    pub(super) hint: &'static str,
    /// Shell commands that must succeed.
    pub(super) before: &'static str,
    /// The command that gives the hint; or, after `board: `, the command of a hint that only the board gives.
    pub(super) gives: &'static str,
    /// Commands after the suggested one, in the same shell.
    pub(super) then: &'static str,
    /// The expected exit code.
    pub(super) exit: i32,
    /// What a person types, if the command is for a person at a terminal.
    pub(super) keys: Option<&'static str>,
    /// The command runs until Ctrl+C.
    pub(super) is_endless: bool,
    /// Only root can prepare it.
    pub(super) needs_root: bool,
}

impl Scenario {
    const fn then(self, then: &'static str) -> Self {
        Self { then, ..self }
    }

    const fn typing(self, keys: &'static str) -> Self {
        Self { keys: Some(keys), ..self }
    }

    const fn as_root(self) -> Self {
        Self { needs_root: true, ..self }
    }

    const fn endless(self) -> Self {
        Self { is_endless: true, ..self }
    }
}

/// A hint whose command succeeds.
const fn given(hint: &'static str, before: &'static str, gives: &'static str) -> Scenario {
    Scenario { hint, before, gives, then: "", exit: 0, keys: None, is_endless: false, needs_root: false }
}

macro_rules! lines {
    ($($line:expr),* $(,)?) => { concat!($($line, "\n"),*) };
}

macro_rules! one {
    () => {
        "tenure tasks add One --id F001"
    };
}
macro_rules! held {
    () => {
        "tenure tasks add One --id F001\ntenure tasks claim F001 --agent ann"
    };
}
/// Releases F001 as soon as a process waits for it.
macro_rules! released { () => {
    "(until_ok sh -c 'tenure why F001 | grep \"1 waiting\"'; tenure tasks release F001 --agent ann) >/dev/null 2>&1 &"
}; }
macro_rules! failed {
    () => {
        "tenure tasks add One --id F001\ntenure tasks update F001 --status failed"
    };
}
macro_rules! outside {
    () => {
        "mkdir ../outside\ncd ../outside"
    };
}
macro_rules! job {
    () => {
        "seq 3 >items\ntenure jobs start work --items items -- true"
    };
}
/// A job of three items that was interrupted during its second one, and would succeed now.
macro_rules! interrupted { () => {
    "seq 3 >items\nprogram item '[ $1 != 2 ] || [ -e ready ] || { touch ready; kill -9 $PPID; sleep 100; }'\ntenure jobs start work --items items -- item {item} || true"
}; }
/// A session that was killed during its only task.
macro_rules! session {
    () => {
        "tenure tasks add One --id F001 --description 'do: mark begun
do: wait go'
tenure runners start --foreground >/dev/null 2>&1 &
until_ok [ -e \"$HERE/../agent/begun\" ]
kill -9 $!
touch \"$HERE/../agent/go\"
SESSION=$(tenure sessions list --json | sed -n 's/.*\"id\": *\"\\([0-9a-f-]*\\)\".*/\\1/p' | head -1)
export SESSION"
    };
}
macro_rules! locked {
    () => {
        "sleep 600 &\ntenure exclusive acquire --holder release --pid $!"
    };
}
/// Ends the holder of the lock as soon as a process waits for it under the name `$NAME`.
macro_rules! freed { () => {
    "export NAME=\"the release $$\"\n(until_ok sh -c 'ps -Aww -o args= | grep \"^tenure exclusive .*--wait --holder $NAME\"'; kill $!) >/dev/null 2>&1 &"
}; }
macro_rules! untrusted { () => {
    "unset TENURE_TRUST\nrm -r \"$TENURE_HOME/trust\"\nprintf 'hooks:\\n  - {name: tell, event: task.created, type: script, command: ./tell.sh}\\n' >>.tenure/config.yaml"
}; }

pub(super) const GROUPS: &[&[Scenario]] = &[
    PROJECTS,
    TASKS,
    CLAIMS,
    SECTIONS,
    RUNNERS,
    TIMERS,
    JOBS,
    EXCLUSIVE,
    CONFIGURATION,
    STORES,
    SERVERS,
    DOCTOR,
    CLIENTS,
    PROGRAM,
    DEMO,
];

pub(super) const PROJECTS: &[Scenario] = &[
    given("init", outside!(), "tenure tasks list"),
    given("init", outside!(), "tenure"),
    given("init_at", "mkdir ../outside", "tenure -C ../outside tasks list"),
    given("init_here", "tenure projects remove .\nmkdir ../outside\ncd ../outside", "tenure projects list"),
    given("rename_project", "", "tenure init --name other"),
    given("register", lines!(one!(), "tenure projects remove ."), "tenure why"),
    given(
        "register_for_wakeup",
        "tenure projects remove .\ntenure config set --user runners.wakeup.projectPaths \"['$PWD/..']\"",
        "tenure projects list",
    ),
    given(
        "init_for_wakeup",
        "mkdir -p ../clone/.tenure\necho 'project: {name: clone}' >../clone/.tenure/config.yaml\ntenure config set --user runners.wakeup.projectPaths \"['$PWD/..']\"",
        "tenure projects list",
    ),
    given("enable_project", lines!(one!(), "tenure projects disable ."), "tenure why"),
    given("unregister", "mkdir ../gone\ntenure init -C ../gone\nrm -r ../gone", "tenure projects list"),
    given("list_projects", "", "tenure projects disable ../nowhere"),
    given("choose_home", "unset HOME TENURE_HOME", "tenure projects list").then("tenure config path"),
    given("choose_temp_folder", "export TMPDIR=/nonexistent", "tenure self-check"),
    given("unset", "export TENURE_FENCE=many", "tenure whoami").then("tenure whoami"),
    given("untrack_database", "git init -q\ngit add --force .tenure/tenure.db", "tenure runners start")
        .then("tenure runners start"),
];

pub(super) const TASKS: &[Scenario] = &[
    given("add_task", "", "tenure status"),
    given("add_task", "", "tenure why"),
    given("add_task", outside!(), "tenure init"),
    given("list_tasks", "", "tenure tasks show nothing"),
    given("list_tasks", "", "tenure hooks run task.completed"),
    given("list_ready", held!(), "tenure agents leave ann"),
    given(
        "list_section_tasks",
        "tenure sections add 'Two words'\ntenure tasks add One --section 'Two words'",
        "tenure sections delete 'Two words'",
    ),
    given("show_task", held!(), "tenure tasks done F001 --agent bob"),
    given("show_task", one!(), "tenure tasks add Two --id F001"),
    given("show_task", one!(), "tenure tasks approve F001"),
    given("retry", failed!(), "tenure tasks show F001"),
    given("skip", failed!(), "board: tenure tasks skip F001"),
    given("retry", failed!(), "tenure tasks claim F001 --agent ann"),
    given("retry", failed!(), "tenure why F001"),
    given("retry", failed!(), "tenure why"),
    given("retry", lines!(one!(), "tenure tasks skip F001"), "tenure why F001"),
    given("reopen", lines!(one!(), "tenure tasks update F001 --status completed"), "tenure tasks retry F001"),
    given(
        "reopen",
        lines!(one!(), "tenure tasks update F001 --status completed"),
        "tenure tasks claim F001 --agent ann",
    ),
    given("approve", lines!(one!(), "tenure tasks update F001 --status review"), "tenure why F001"),
    given("approve", lines!(one!(), "tenure tasks update F001 --status review"), "tenure why"),
    given(
        "reject",
        lines!(one!(), "tenure tasks update F001 --status review"),
        "tenure tasks claim F001 --agent ann",
    ),
    given(
        "remove_dependency",
        lines!(one!(), "tenure tasks add Two --id F002 --depends-on F001"),
        "tenure tasks delete F001",
    ),
    given(
        "preview_update",
        "echo '- [ ] One' >'a plan.md'\ntenure tasks import 'a plan.md'",
        "tenure tasks import 'a plan.md'",
    ),
    given("why", "", "tenure tasks next --claim --agent bob"),
    given(
        "why_task",
        lines!(one!(), "tenure tasks add Two --id F002 --depends-on F001"),
        "tenure tasks claim F002 --agent bob",
    ),
    given("why_task", lines!(one!(), "tenure tasks add Two --id F002 --depends-on F001"), "tenure why F002"),
    given("why_task", lines!(failed!(), "tenure tasks add Two --id F002 --depends-on F001"), "tenure why"),
];

pub(super) const CLAIMS: &[Scenario] = &[
    given("claim_next", one!(), "tenure why"),
    given("claim_next", one!(), "tenure init"),
    given("wait_for_next", one!(), "tenure tasks next --wait 1s"),
    given("claim", one!(), "tenure tasks next"),
    given("claim", one!(), "tenure tasks show F001"),
    given("claim", one!(), "tenure why F001"),
    given("try_claim", one!(), "tenure tasks run F001 --dry-run -- true"),
    given(
        "take_over",
        lines!(
            one!(),
            "tenure tasks claim F001 --agent ann --ttl 1s",
            "until_ok sh -c 'tenure tasks list --status lapsed | grep F001'"
        ),
        "tenure why F001",
    ),
    given("wait_for_task", lines!(held!(), released!()), "tenure why F001"),
    given(
        "wait_for_task",
        lines!(
            "tenure sections add A",
            "tenure tasks add One --id F001 --section A",
            "tenure tasks add Two --id F002 --section A",
            "tenure tasks claim F001 --agent ann --ttl 2s"
        ),
        "tenure why F002 --agent bob",
    ),
    given("repeat_claim", lines!(held!(), released!()), "tenure tasks claim F001 --agent bob"),
    given("renew", one!(), "tenure tasks claim F001 --agent ann"),
    given(
        "finish",
        one!(),
        "tenure tasks claim F001 --agent 'ann lee' || tenure tasks claim F001 --agent ann",
    ),
    given("give_up", one!(), "tenure tasks claim F001 --agent ann"),
    given("show_holder", held!(), "tenure tasks done F001"),
];

pub(super) const SECTIONS: &[Scenario] = &[
    given("list_sections", "", "tenure sections show Nothing"),
    given("show_similar_section", "tenure sections add 'Back end'", "tenure sections show 'Bak end'"),
    given(
        "show_blocking_section",
        lines!(
            "tenure sections add 'The first'",
            "tenure sections add B",
            "tenure tasks add One --id F001 --section 'The first'",
            "tenure tasks add Two --id F002 --section B",
            "tenure sections depend B --on 'The first'"
        ),
        "tenure why F002",
    ),
    given(
        "make_parallel",
        lines!(
            "tenure sections add 'The first'",
            "tenure tasks add One --id F001 --section 'The first'",
            "tenure tasks add Two --id F002 --section 'The first'",
            "tenure tasks claim F001 --agent ann"
        ),
        "tenure why --agent bob",
    )
    .then("tenure tasks next --claim --agent bob"),
    given("list_locks", one!(), "tenure locks release F001"),
    given("list_agents", "", "tenure agents leave nobody"),
    given("list_agents", "", "tenure agents leave"),
    given("join", "", "tenure tasks list --mine"),
    given("join", "", "tenure msg list --mine"),
    given("use_agent", one!(), "tenure agents join").then("tenure tasks claim F001"),
    given("send_to_task", "tenure tasks add One", "tenure msg send -m Hello --agent ann"),
    given(
        "acknowledge",
        "tenure tasks add One\ntenure msg send T1 Hello --agent ann",
        "board: tenure msg ack 1",
    ),
    given("list_hooks", "", "tenure hooks test nothing"),
    given("list_hooks", "", "tenure hooks run runner.started"),
];

pub(super) const RUNNERS: &[Scenario] = &[
    given("start_runner", one!(), "tenure why"),
    given("start_runner", one!(), "tenure runners logs"),
    given("list_ended_runners", "tenure runners start --foreground >/dev/null 2>&1", "tenure runners list"),
    given("list_runners", "", "tenure runners stop 12345678"),
    given("list_runners", "", "tenure runners logs 12345678"),
    given(
        "follow_runner",
        lines!("tenure tasks add One --description 'do: wait go'"),
        "tenure runners start",
    )
    .endless(),
    given("stop_runner", lines!("tenure tasks add One --description 'do: wait go'"), "tenure runners start"),
    given(
        "show_agent_log",
        lines!(
            "tenure tasks add One --id F001 --description 'do: print hello'",
            "tenure runners start --foreground"
        ),
        "tenure why F001",
    ),
    given(
        "show_log_retention",
        lines!("tenure tasks add One --id F001", "tenure runners start --foreground", "rm .tenure/logs/*"),
        "tenure tasks logs F001",
    ),
    given("start_with_preset", one!(), "tenure runners start --preset codex"),
    given("set_preset", lines!(one!(), "tenure config set runners.preset codex"), "tenure runners start")
        .then("tenure runners start"),
    given(
        "set_review_preset",
        lines!(one!(), "tenure config set review.enabled true", "tenure config set review.preset codex"),
        "tenure runners start",
    )
    .then("tenure runners start"),
    given(
        "define_preset",
        lines!(one!(), "echo 'runners: {preset: nothing}' >.tenure/config.yaml", "export EDITOR=true"),
        "PATH=$HERE/../bin tenure runners start --preset nothing",
    ),
    given(
        "probe_parked",
        lines!(
            "for n in 1 2 3 4; do tenure tasks add Task --description 'do: exit 1'; done",
            "tenure runners start --foreground || true"
        ),
        "tenure why",
    ),
    given(
        "allow_commands",
        lines!(
            one!(),
            "program claude 'exit 0'",
            "ln -s /bin/sh \"$HERE/../bin/sh\"",
            "tenure config set runners.preset claude"
        ),
        "PATH=$HERE/../bin tenure runners start",
    ),
    given(
        "permit_work",
        lines!(
            one!(),
            "program amp 'exit 0'",
            "tenure config set runners.permissions edit",
            "tenure config set runners.preset amp"
        ),
        "tenure runners start",
    )
    .then("tenure runners start"),
    given("list_failed", session!(), "tenure resume $SESSION --retry-failed"),
    given(
        "accept_definition",
        lines!(
            session!(),
            "sed -i \"s/pretend-agent.sh']/pretend-agent.sh', '--new']/\" .tenure/config.yaml"
        ),
        "tenure resume $SESSION",
    ),
    given("resume", session!(), "tenure sessions show $SESSION"),
    given(
        "show_runner_log",
        lines!(
            "tenure tasks add One --description 'do: mark begun
do: hang'",
            "tenure runners start --foreground >/dev/null 2>&1 &",
            "until_ok [ -e \"$HERE/../agent/begun\" ]",
            "kill -STOP $!"
        ),
        "tenure runners stop",
    ),
];

pub(super) const TIMERS: &[Scenario] = &[
    given(
        "enable_wakeup",
        lines!(one!(), "tenure config set --user runners.wakeup.enabled false"),
        "tenure why",
    ),
    given("wake_up", lines!("tenure runners wakeup --quiet --timer cron", one!()), "tenure why"),
    given("preview_wakeup", "", "PATH=$HERE/nothing $HERE/../bin/tenure runners cron install --with cron"),
    given("install_timer", one!(), "tenure why"),
    given("install_timer", "", "tenure runners cron status"),
    given("show_timer", "", "tenure runners cron install --with cron"),
    given(
        "linger",
        "program systemctl 'exit 0'\nprogram loginctl 'exit 0'",
        "tenure runners cron install --with systemd",
    ),
    given(
        "enable_timer",
        "program systemctl '[ -e \"$HERE/bus\" ] && exit 0; touch \"$HERE/bus\"; exit 1'",
        "tenure runners cron install --with systemd",
    ),
];

pub(super) const JOBS: &[Scenario] = &[
    given("list_jobs", "", "tenure jobs show 12345678"),
    given("list_jobs", "", "tenure resume 12345678"),
    given("list_sessions", "", "tenure sessions show 12345678"),
    given("resume", interrupted!(), "tenure jobs start work --items items -- item {item}"),
    given(
        "resume",
        "seq 3 >items\nprogram item '[ $1 != 2 ] || [ -e ready ] || { touch ready; kill -INT $PPID; sleep 100; }'",
        "tenure jobs start work --items items -- item {item}",
    ),
    given("resume_unchanged", interrupted!(), "tenure jobs start work --items items -- true"),
    given("cancel_job", interrupted!(), "tenure jobs start work --items items -- true")
        .then("tenure jobs start work --items items -- true"),
    given("accept_items", lines!(interrupted!(), "seq 4 >items"), "tenure resume work"),
    given("show_progress", interrupted!(), "tenure resume work --detach"),
    given("show_progress", session!(), "tenure resume $SESSION --detach"),
    given("show_results", lines!(interrupted!(), "tenure jobs cancel work"), "tenure jobs retry work"),
    given("show_job", job!(), "tenure jobs show work --item 9"),
    given("show_remaining", job!(), "tenure jobs work work --dry-run"),
    given(
        "retry_dead_letters",
        "seq 2 >items\nprogram item '[ -e ready ]'",
        "tenure jobs start work --retries 0 --items items -- item; touch ready",
    ),
];

pub(super) const EXCLUSIVE: &[Scenario] = &[
    given("show_exclusive", locked!(), "tenure why"),
    given("show_exclusive", lines!(one!(), locked!()), "tenure runners start"),
    given("show_exclusive", locked!(), "tenure exclusive acquire --holder me --dry-run"),
    given("check_exclusive", "", "tenure exclusive run --holder me --dry-run -- true"),
    given("wait_for_exclusive", lines!(locked!(), freed!()), "tenure exclusive acquire --holder \"$NAME\""),
    given(
        "repeat_exclusive",
        lines!(locked!(), freed!()),
        "tenure exclusive run --holder \"$NAME\" -- sh -c 'exit 0'",
    ),
    given(
        "release_exclusive",
        "sleep 600 &\nexport HOLDER=$!",
        "tenure exclusive acquire --holder release --pid $HOLDER",
    ),
    given("remove_exclusive", "echo '{' >.tenure/.exclusive-lock", "tenure exclusive acquire --holder me")
        .then("tenure exclusive acquire --holder me"),
];

pub(super) const CONFIGURATION: &[Scenario] = &[
    given("trust_at", lines!(one!(), untrusted!()), "tenure runners start")
        .typing("y\n")
        .then("tenure runners start"),
    given("trust_at", untrusted!(), "tenure projects list").typing("y\n"),
    given("trust_settings", untrusted!(), "tenure config show").typing("y\n"),
    given("trust_settings", untrusted!(), "tenure config set runners.preset pretend").typing("y\n"),
    given("trust_settings", untrusted!(), "tenure hooks list").typing("y\n"),
    given("trust_settings", untrusted!(), "tenure init").typing("y\n"),
    given(
        "trust_settings",
        lines!(untrusted!(), "program edit 'echo \"# changed\" >>\"$1\"'"),
        "EDITOR=edit tenure config edit",
    )
    .typing("y\n"),
    given("show_trust", untrusted!(), "tenure trust"),
    given("untrust", untrusted!(), "script -qefc 'tenure trust --yes' /dev/null"),
    given("list_config_files", "", "tenure config validate nothing.yaml"),
    given("set_for_user", "", "tenure config set runners.wakeup.projectPaths '[~/work]'"),
    given(
        "edit_again",
        "program edit 'if [ -e \"$HERE/once\" ]; then echo >\"$1\"; else touch \"$HERE/once\"; echo \"{\" >\"$1\"; fi'\nexport EDITOR=edit",
        "tenure config edit",
    ),
    given(
        "edit_again",
        "program edit 'if [ -e \"$HERE/once\" ]; then echo >\"$1\"; else touch \"$HERE/once\"; echo \"{\" >\"$1\"; fi'\nexport EDITOR=edit",
        "tenure config edit --user",
    ),
    given("name_editor", "program nano 'exit 0'", "tenure config edit"),
    given("validate_config", "export EDITOR=false", "tenure config edit"),
    given(
        "edit_by_hand",
        "export EDITOR=true\necho 'runners: {preset: pretend}' >.tenure/config.yaml",
        "tenure config set runners.preset claude",
    ),
    given(
        "edit_by_hand",
        "export EDITOR=true\necho 'runners: {preset: pretend}' >\"$TENURE_HOME/config.yaml\"",
        "tenure config set --user runners.preset claude",
    ),
    given("list_settings", "", "tenure config get zzz"),
];

pub(super) const STORES: &[Scenario] = &[
    given("adopt", lines!(one!(), "cp -r . ../copy", "cd ../copy"), "tenure tasks claim F001 --agent ann").then("tenure tasks claim F001 --agent ann"),
    given("adopt", lines!(one!(), "cp -r . ../copy", "cd ../copy"), "tenure init"),
    given("show_config", "", "tenure store copy --to sqlite:"),
    given("back_up_to", "", "tenure store copy --to sqlite:other.db"),
    given("restore", one!(), "tenure store backup 'a file'"),
    given("fix", lines!(one!(), "tenure tasks claim F001 --agent ann --ttl 1s", "until_ok sh -c 'tenure tasks list --status lapsed | grep F001'"), "tenure doctor"),
    given("use_new_store", one!(), "tenure store copy --to $SERVER").then("tenure tasks claim F001 --agent ann"),
    given("use_store", lines!(one!(), "tenure store copy --to $SERVER"), "tenure tasks list").then("tenure tasks claim F001 --agent ann"),
    // A copy back to the file that was interrupted.
    given("return_to_store", lines!(one!(), "tenure store copy --to $SERVER", "python3 -c 'import sqlite3; db = sqlite3.connect(\".tenure/tenure.db\"); db.execute(\"UPDATE identity SET standing = replace(standing, \\\"movedTo\\\", \\\"filledFrom\\\")\"); db.commit()'"), "tenure tasks list").then("tenure tasks claim F001 --agent ann"),
    // The writers' gate is taken while the command runs, and freed after its supervisor was stopped.
    given("apply_kept_outcome", lines!(one!(), "(until_ok [ -e \"$HERE/begun\" ]; flock .tenure/tenure.gate.lock sh -c 'touch \"$HERE/locked\"; while [ ! -e \"$HERE/free\" ]; do sleep 0.02; done') >/dev/null 2>&1 &", "program work 'touch \"$HERE/begun\"; while [ ! -e \"$HERE/locked\" ]; do sleep 0.02; done'"), "timeout -s TERM 3 tenure --timeout 1s tasks run F001 --agent ann -- work; touch \"$HERE/free\"").then("tenure tasks show F001 | grep completed"),
];

/// A database file that is not one.
macro_rules! damaged {
    () => {
        "tenure store backup 'a file'\necho 'not a database, but long enough to be read as one' >.tenure/tenure.db"
    };
}
/// Changes the project's database behind the program's back.
macro_rules! sql {
    ($statements:literal) => {
        concat!(
            "python3 - <<'END'\nimport sqlite3\ndb = sqlite3.connect('.tenure/tenure.db')\ndb.executescript(\"\"\"",
            $statements,
            "\"\"\")\ndb.commit()\nEND"
        )
    };
}

/// Forwards connections to the server. While the file `cut` exists, the next commit is forwarded, and neither its answer nor any other
/// connection.
macro_rules! cutting_proxy {
    () => {
        r#"cat >"$HERE/proxy.py" <<'END'
import os, re, socket, sys, threading, urllib.parse
here, server = os.environ["HERE"], sys.argv[1]
user, host, port, database = re.fullmatch(r"postgres://(\w+)@(.+):(\d+)/(\w+)", server).groups()
listener = socket.create_server(("127.0.0.1", 0))
is_cut = threading.Event()
def is_down():
    return is_cut.is_set() and os.path.exists(here + "/cut")
def pump(a, b, up):
    writes = False
    try:
        while data := a.recv(65536):
            writes |= b"INSERT" in data
            is_last = up and writes and b"COMMIT" in data and os.path.exists(here + "/cut")
            if is_last:
                is_cut.set()
            if not up and is_down():
                break
            b.sendall(data)
            if is_last:
                break
    except OSError:
        pass
    for end in (a, b):
        try:
            end.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
print("postgres://%s@127.0.0.1:%d/%s?sslmode=disable" % (user, listener.getsockname()[1], database), flush=True)
while True:
    a = listener.accept()[0]
    if is_down():
        a.close()
        continue
    b = socket.socket(socket.AF_UNIX)
    b.connect(urllib.parse.unquote(host) + "/.s.PGSQL." + port)
    for args in ((a, b, True), (b, a, False)):
        threading.Thread(target=pump, args=args, daemon=True).start()
END
python3 "$HERE/proxy.py" "$SERVER" >"$HERE/proxy" 2>/dev/null &
until_ok grep . "$HERE/proxy""#
    };
}

pub(super) const SERVERS: &[Scenario] = &[
    given("create_database", "tenure config set store.url \"$SERVER\"_other", "tenure init").then("tenure init"),
    given(
        "create_utf8_database",
        "psql -q \"$SERVER\" -c \"CREATE DATABASE \\\"$(basename $SERVER)_latin\\\" ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0\"\ntenure config set store.url \"$SERVER\"_latin",
        "tenure init",
    )
    .then("TENURE_STORE=${SERVER}_latin_utf8 tenure init"),
    given("show_store_url", "tenure config set store.url postgres://ann@127.0.0.1:1/shop", "tenure --timeout 1s doctor"),
    given(
        "add_project_id",
        "printf 'runners:\\n  preset: pretend\\n' >.tenure/config.yaml",
        "tenure store copy --to $SERVER",
    )
    .then("tenure store copy --to $SERVER"),
    given(
        "show_status",
        lines!(cutting_proxy!(), "export TENURE_STORE=$(cat \"$HERE/proxy\")", "tenure init"),
        "touch \"$HERE/cut\"\ntenure --timeout 2s tasks add One; rm \"$HERE/cut\"",
    ),
];

pub(super) const DOCTOR: &[Scenario] = &[
    given("restore_backup", damaged!(), "tenure tasks list"),
    given("begin_anew", ": >.tenure/tenure.db", "tenure tasks list").then("tenure tasks list"),
    given("set_aside", damaged!(), "tenure doctor").then("tenure tasks list"),
    given(
        "clean_up",
        lines!(
            one!(),
            "tenure tasks claim F001 --agent ann --ttl 1s",
            "until_ok sh -c 'tenure tasks list --status lapsed | grep F001'"
        ),
        "tenure doctor",
    )
    .then("tenure doctor"),
    given(
        "show_lease",
        lines!(
            held!(),
            sql!(
                "DROP INDEX leases_open; INSERT INTO leases (lease_id, key_hash, resource_kind, resource_id, holder_kind, holder_id, ttl_ms, acquired_at, heartbeat_at, expires_at) SELECT 'L0000BBBB', '', resource_kind, resource_id, 'agent', 'eve', ttl_ms, acquired_at, heartbeat_at, expires_at FROM leases WHERE holder_id = 'ann'"
            )
        ),
        "tenure doctor",
    ),
    given("show_last_events", lines!(one!(), sql!("UPDATE events SET at = at + 86400000")), "tenure doctor"),
    given(
        "edit_config",
        "export EDITOR=true\nprintf 'runners:\\n  preset: pretend\\n  wakeup: {projectPaths: [/nowhere]}\\n' >.tenure/config.yaml",
        "tenure doctor",
    ),
    given(
        "log_in",
        "program codex '[ \"$2\" != status ]'\ntenure config set runners.preset codex",
        "tenure doctor",
    ),
    given("take_ownership", "program sudo 'exec \"$@\"'\nchown 12345 .tenure/tenure.db", "tenure doctor")
        .then("tenure doctor")
        .as_root(),
    given("close_to_others", "chmod go+rx .tenure", "tenure doctor").then("tenure doctor"),
    given("make_writable", "chmod u-w .tenure/tenure.db", "tenure doctor").then("tenure doctor"),
    given("list_folder", "mv .tenure/tenure.db ../one\nln -s ../../one .tenure/tenure.db", "tenure doctor"),
    given(
        "show_free_space",
        "",
        "unshare -m sh -c 'mount -t tmpfs -o size=3m,mode=700 none \"$TENURE_HOME\" && tenure doctor'",
    )
    .as_root(),
    given(
        "set_registry_aside",
        "rm \"$TENURE_HOME\"/tenure.db*\necho 'this is no database' >\"$TENURE_HOME/tenure.db\"",
        "tenure doctor",
    )
    .then("tenure doctor"),
    given("start_timer", "program sudo 'exit 0'\ntenure runners cron install --with cron", "tenure doctor"),
    given(
        "grant_disk_access",
        "program open 'exit 0'\nprogram launchctl 'exit 0'\nmkdir -p \"$HOME/Documents/shop\"\ncd \"$HOME/Documents/shop\"\ntenure init\ntenure runners cron install --with launchd",
        "tenure doctor",
    ),
];

pub(super) const CLIENTS: &[Scenario] = &[
    given("set_up", "", "tenure setup claude --check").then("tenure setup claude --check"),
    given("set_up_mcp", "", "tenure setup claude --mcp --check").then("tenure setup claude --mcp --check"),
    given("set_up_mcp_example", "", "tenure setup agents-md --mcp"),
    given("use_mcp", "", "tenure setup vscode"),
    given("write_agents_md", "", "tenure setup vscode"),
    given("check_client", "", "tenure setup claude"),
    given("check_mcp", "", "tenure setup claude --mcp"),
    given("choose_port", "export TENURE_MCP_TOKEN=0123456789abcdef0123456789abcdef\ntenure mcp --http 0 >\"$HERE/first\" 2>&1 &\nuntil_ok grep -o 'http://[^ ]*' \"$HERE/first\"", "tenure mcp --http $(grep -o '127.0.0.1:[0-9]*' \"$HERE/first\" | head -1 | cut -d: -f2)").endless(),
    given("choose_web_port", "tenure web --http 0 >\"$HERE/first\" 2>&1 &\nuntil_ok grep -oE ':[0-9]{4,}' \"$HERE/first\"", "tenure web --http 127.0.0.1:$(grep -oE ':[0-9]{4,}' \"$HERE/first\" | head -1 | cut -c2-)").endless(),
];

pub(super) const PROGRAM: &[Scenario] = &[
    given("run_self_check", "", "tenure self-check --dry-run"),
    given("quick_bench", "", "tenure bench --dry-run"),
    // A pretend npm: nothing is installed by a test.
    given("install", "program npm 'exit 0'", "PATH=$HERE/../bin tenure bench --against bd"),
    given("help", outside!(), "tenure"),
    given("help_for", "", "tenure man tasks nothing"),
    given("help_for", "", "tenure help tasks nothing"),
    given("list_subcommands", "", "tenure store"),
    given("add_command", one!(), "tenure claim F001 --agent ann --ttl 5m"),
    given("add_command", "", "tenure add 'Fix the login page'"),
    given("add_command", "", "tenure cleanup --dry-run"),
    given("add_command", one!(), "tenure -q run F001 --agent ann -- sh -c 'exit 0'"),
    given("show_named", one!(), "tenure task f001"),
    given(
        "show_named",
        job!(),
        "tenure jobs \"$(tenure jobs list --json | sed -n 's/.*\"id\": *\"\\([0-9a-f-]*\\)\".*/\\1/p' | head -1)\"",
    ),
    given("watch_as_json", one!(), "unset TENURE_JSON\ntenure status --watch").endless(),
];

pub(super) const DEMO: &[Scenario] = &[
    given("demo", outside!(), "tenure"),
    given("demo_after_check", "", "tenure self-check"),
    given("run_demo", "", "tenure demo --dry-run"),
    given("show_demo", "", "tenure demo --keep").then("rm -r $(echo /tmp/tenure-demo*)"),
];
