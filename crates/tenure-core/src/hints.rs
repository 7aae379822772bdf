//! Every hint that a command, an error or the board gives: a reason, and a command that works when it is pasted.
//!
//! A [`Hint`] can be created only here. Each line of the table becomes a function, and [`HINTS`] has the same table for the test
//! `tests/cli/hints` of the binary, which requires a scenario for each hint: the scenario makes the program give the hint, and
//! the test runs the suggested command in the same place.
//!
//! The functions insert their arguments as they are: a caller quotes what a user has chosen (`shell_quote`).

use std::fmt::Display;

/// A suggested next step.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(
    clippy::manual_non_exhaustive,
    reason = "non_exhaustive would let other modules of this crate create one"
)]
pub struct Hint {
    /// What the command is for.
    pub why: String,
    pub command: String,
    /// Keeps other modules from creating a hint.
    from_table: (),
}

/// One line of the table of hints.
#[derive(Debug)]
pub struct HintTemplate {
    pub name: &'static str,
    pub why: &'static str,
    /// The command, with its parameters in braces.
    pub command: &'static str,
}

macro_rules! hints {
    ($($name:ident($($parameter:ident),*): $why:literal => $command:literal;)*) => {
        $(pub fn $name($($parameter: impl Display),*) -> Hint {
            Hint { why: $why.to_owned(), command: format!($command), from_table: () }
        })*

        /// All hints.
        pub const HINTS: &[HintTemplate] =
            &[$(HintTemplate { name: stringify!($name), why: $why, command: $command }),*];
    };
}

#[rustfmt::skip]
mod table {
    use super::{Display, Hint, HintTemplate};

    hints! {
        // Projects and the environment.
        init(): "create one" => "tenure init";
        init_at(path): "create one" => "tenure init -C {path}";
        init_here(): "create one here" => "tenure init";
        rename_project(name): "rename it" => "tenure config set project.name {name}";
        register(path): "register it" => "tenure projects add {path}";
        register_for_wakeup(path): "register it for wake-up" => "tenure projects add {path}";
        init_for_wakeup(path): "register it for wake-up" => "tenure init -C {path}";
        enable_project(path): "enable it again" => "tenure projects enable {path}";
        unregister(path): "unregister a missing project" => "tenure projects remove {path}";
        list_projects(): "see all projects" => "tenure projects list";
        choose_home(): "choose a folder" => "export TENURE_HOME=/var/lib/tenure";
        choose_temp_folder(command): "use another folder" => "TMPDIR=/var/tmp tenure {command}";
        unset(variable): "unset it" => "unset {variable}";
        untrack_database(root, database): "if it is yours, stop tracking it" => "git -C {root} rm --cached -- {database}";

        // Tasks.
        add_task(): "add a task" => "tenure tasks add 'Fix the login page'";
        list_tasks(): "see all tasks" => "tenure tasks list --status all";
        list_ready(): "see ready tasks" => "tenure tasks list --ready";
        list_failed(): "see the failed tasks" => "tenure tasks list --status failed";
        list_section_tasks(section): "see its tasks" => "tenure tasks list --status all --section={section}";
        show_task(key): "see its state" => "tenure tasks show {key}";
        show_holder(key): "see who holds it" => "tenure tasks show {key}";
        claim_next(): "claim the next task" => "tenure tasks next --claim";
        wait_for_next(): "wait for one" => "tenure tasks next --claim --wait";
        claim(key): "claim it" => "tenure tasks claim {key}";
        try_claim(key): "see whether you could claim it" => "tenure tasks claim --dry-run {key}";
        take_over(key): "take it over" => "tenure tasks claim {key}";
        wait_for_task(key): "wait for it" => "tenure tasks claim {key} --wait";
        repeat_claim(agent, task): "wait for it" => "tenure tasks claim --wait 30m{agent} {task}";
        renew(key, agent): "renew before it expires" => "tenure task renew {key} --agent {agent}";
        finish(key, agent): "mark it done" => "tenure task done {key} --agent {agent}";
        give_up(key, agent): "if you cannot finish it" => "tenure task release {key} --agent {agent} -m WHY";
        retry(key): "try it again" => "tenure tasks retry {key}";
        reopen(key): "reopen it" => "tenure tasks reopen {key}";
        approve(key): "approve it" => "tenure tasks approve {key}";
        reject(key): "reject it" => "tenure tasks reject {key} -m 'what is missing'";
        skip(key): "skip it" => "tenure tasks skip {key}";
        remove_dependency(task, on): "remove the dependency" => "tenure tasks depend {task} --not-on {on}";
        preview_update(file): "see what an update would change" => "tenure tasks import --update --dry-run {file}";
        show_agent_log(key): "see what its agent did" => "tenure tasks logs {key}";
        show_log_retention(): "see how long logs are kept" => "tenure config get runners.logRetention";
        why(): "see why" => "tenure why";
        why_task(key): "see why" => "tenure why {key}";

        // Sections, locks, agents, messages, hooks.
        list_sections(): "see all sections" => "tenure sections list";
        show_similar_section(name): "did you mean" => "tenure sections show {name}";
        show_blocking_section(name): "see its tasks" => "tenure sections show {name}";
        make_parallel(section): "allow several holders" => "tenure sections update {section} --parallel";
        list_locks(): "see all locks" => "tenure locks list";
        apply_kept_outcome(): "apply it once the store answers" => "tenure locks cleanup";
        list_agents(): "see all agents" => "tenure agents list";
        join(): "register an agent" => "tenure agents join";
        use_agent(id): "use it" => "export TENURE_AGENT={id}";
        send_to_task(): "for example" => "tenure msg send --task T1 -m 'what the next holder should know'";
        acknowledge(message): "acknowledge it" => "tenure msg ack {message}";
        list_hooks(): "see all hooks" => "tenure hooks list";

        // Runners and timers.
        start_runner(): "start a runner" => "tenure runners start";
        probe_parked(): "try it now" => "tenure runners start";
        list_ended_runners(): "see those that have ended" => "tenure runners list --ended 10";
        list_runners(): "see all runners" => "tenure runners list";
        follow_runner(id): "see its log" => "tenure runners logs {id} --follow";
        show_runner_log(id): "see its log" => "tenure runners logs {id}";
        stop_runner(id): "stop it" => "tenure runners stop {id}";
        start_with_preset(preset): "choose an available one" => "tenure runners start --preset {preset}";
        set_preset(preset): "choose an available one" => "tenure config set runners.preset {preset}";
        set_review_preset(preset): "choose an available one" => "tenure config set review.preset {preset}";
        define_preset(): "define one under presets" => "tenure config edit";
        allow_commands(): "allow the commands of this project" => "tenure config set runners.allow '[make, git add, git commit]'";
        permit_work(): "let it do more" => "tenure config set runners.permissions work";
        enable_wakeup(): "enable it" => "tenure config set --user runners.wakeup.enabled true";
        wake_up(): "run wake-up now" => "tenure runners wakeup";
        preview_wakeup(): "what it would do now" => "tenure runners wakeup --dry-run";
        install_timer(): "install a timer" => "tenure runners cron install";
        enable_timer(command): "enable it" => "{command}";
        show_timer(): "see whether it fires" => "tenure runners cron status";
        linger(): "keep it running while you are logged out" => "loginctl enable-linger";

        // Sessions and jobs.
        list_sessions(): "see all sessions" => "tenure sessions list";
        list_jobs(): "see all jobs" => "tenure jobs list";
        resume(id): "resume it" => "tenure resume {id}";
        resume_unchanged(name): "resume it unchanged" => "tenure resume {name}";
        accept_definition(id): "resume with the new definition" => "tenure resume {id} --accept-changes";
        accept_items(id): "resume with the new items" => "tenure resume {id} --accept-changes";
        show_progress(kind, id): "see its progress" => "tenure {kind}s show {id}";
        show_results(id): "see its results" => "tenure jobs show {id}";
        show_job(id): "see the job" => "tenure jobs show {id}";
        show_remaining(job): "see the remaining items" => "tenure jobs show {job}";
        cancel_job(name): "or cancel it first" => "tenure jobs cancel {name}";
        retry_dead_letters(id): "retry the dead letters" => "tenure jobs retry {id}";

        // The exclusive lock.
        show_exclusive(): "see the holder" => "tenure exclusive status";
        check_exclusive(): "see whether the project is locked" => "tenure exclusive status";
        wait_for_exclusive(options): "wait for it" => "tenure exclusive acquire --wait {options}";
        repeat_exclusive(options, command): "wait for it" => "tenure exclusive run --wait {options} -- {command}";
        release_exclusive(pid): "when you are done" => "tenure exclusive release --pid {pid}";
        remove_exclusive(): "remove it" => "tenure exclusive release --force";

        // Trust and configuration.
        trust_at(path): "review what it would run and connect to" => "tenure trust -C {path}";
        trust_settings(): "see them and decide" => "tenure trust";
        show_trust(): "see what it would run and connect to, and its hash" => "tenure trust --show";
        untrust(): "withdraw it" => "tenure untrust";
        list_config_files(): "see the configuration files" => "tenure config path";
        show_config(): "see store.url" => "tenure config show";
        set_for_user(key, value): "set it there" => "tenure config set --user {key} {value}";
        edit_again(flag): "fix it" => "tenure config edit{flag}";
        name_editor(): "name one" => "EDITOR=nano tenure config edit";
        validate_config(): "check it" => "tenure config validate";
        edit_by_hand(flag): "edit the file by hand" => "tenure config edit{flag}";
        list_settings(): "see every setting" => "tenure config show";
        add_project_id(id): "add one" => "tenure config set project.id {id}";

        // Stores.
        adopt(): "make it a separate project" => "tenure store adopt";
        use_store(url): "use that store" => "tenure config set store.url {url}";
        return_to_store(url): "return to that store, then copy again" => "tenure config set store.url {url}";
        use_new_store(url): "use the new store" => "tenure config set store.url {url}";
        back_up_to(file): "save a copy in another file" => "tenure store backup {file}";
        restore(file): "restore it" => "tenure store restore {file}";
        restore_backup(): "restore a backup" => "tenure store restore --help";
        begin_anew(): "start over" => "tenure init";
        set_aside(database, damaged, root): "start over" => "mv {database} {damaged} && tenure init -C {root}";
        create_database(options, name): "create it" => "createdb{options} {name}";
        create_utf8_database(options, name): "create another one" => "createdb{options} --encoding UTF8 --template template0 {name}";
        show_store_url(): "see which store it is" => "tenure config get store.url";
        show_status(): "see the current state" => "tenure status";

        // Findings of `doctor`.
        fix(): "fix what can be fixed" => "tenure doctor --fix";
        clean_up(): "close it" => "tenure locks cleanup";
        show_lease(lease): "see how long it lasts" => "tenure locks show {lease}";
        show_last_events(): "see the last events" => "tenure events --limit 5";
        edit_config(): "remove it" => "tenure config edit";
        log_in(command): "log in" => "{command}";
        take_ownership(path): "make it yours" => "sudo chown \"$(id -u)\" {path}";
        close_to_others(path): "remove others' access" => "chmod go-rwx {path}";
        make_writable(path): "make it writable" => "chmod u+w {path}";
        list_folder(path): "see its files and their permissions" => "ls -la {path}";
        show_free_space(path): "see how much space is left" => "df -h {path}";
        set_registry_aside(file, damaged): "set it aside" => "mv {file} {damaged}";
        start_timer(command): "start it" => "{command}";
        grant_disk_access(): "give tenure full disk access" => "open 'x-apple.systempreferences:com.apple.preference.security?Privacy_AllFiles'";

        // Clients.
        set_up(client): "set it up" => "tenure setup {client}";
        set_up_mcp(client): "set it up" => "tenure setup {client} --mcp";
        set_up_mcp_example(): "for example" => "tenure setup codex --mcp";
        use_mcp(): "or use MCP" => "tenure setup vscode --mcp";
        write_agents_md(): "write AGENTS.md" => "tenure setup agents-md";
        check_client(client): "check it later" => "tenure setup {client} --check";
        check_mcp(client): "check that it works" => "tenure setup {client} --mcp --check";
        choose_port(): "let the system choose a port" => "tenure mcp --http 0";
        choose_web_port(): "let the system choose a port" => "tenure web --http 0";

        // The program itself.
        demo(): "watch a demo" => "tenure demo";
        demo_after_check(): "watch agents being killed" => "tenure demo";
        run_demo(): "run it" => "tenure demo";
        show_demo(folder): "inspect the project" => "tenure -C {folder} status";
        run_self_check(): "run it" => "tenure self-check";
        install(command): "install it" => "{command}";
        quick_bench(): "get a rough result" => "tenure bench --quick";
        help(): "see all commands" => "tenure --help";
        help_for(command): "see all commands" => "{command} --help";
        list_subcommands(command): "see its subcommands" => "tenure {command} --help";
        add_command(arguments): "did you mean" => "tenure {arguments}";
        show_named(arguments): "to show it" => "tenure {arguments}";
        watch_as_json(): "print a line whenever it changes" => "tenure status --watch --json";
    }
}

pub use table::*;
