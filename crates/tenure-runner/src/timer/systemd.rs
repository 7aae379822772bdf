//! A systemd user timer: two unit files.

use std::ffi::OsStr;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::time::Duration;

use super::{Installed, Machine, TimerCall, TimerEntry, TimerError, refuse_control, remove, write};

/// The service and the timer unit.
pub fn units(call: &TimerCall) -> Result<(String, String), TimerError> {
    let given: Vec<&str> =
        std::iter::once(&call.binary).chain(&call.path).chain(&call.home).map(String::as_str).collect();
    refuse_control(&given)?;
    let mut environment = String::new();
    for (name, value) in [("PATH", &call.path), ("TENURE_HOME", &call.home)] {
        if let Some(value) = value {
            let _ = writeln!(environment, "Environment={}", quote(&format!("{name}={value}")));
        }
    }
    let service = format!(
        "# Written by `tenure runners cron install`.\n\
         [Unit]\nDescription=Restart stalled tenure projects\n\n\
         [Service]\nType=oneshot\n\
         # Runners that it starts outlive it.\nKillMode=process\n\
         {environment}ExecStart=/usr/bin/env {} runners wakeup --quiet --timer systemd\n",
        quote(&call.binary).replace('$', "$$")
    );
    let timer = format!(
        "# Written by `tenure runners cron install`.\n\
         [Unit]\nDescription=Call tenure's wake-up\n\n\
         [Timer]\nOnActiveSec=1s\nOnUnitActiveSec={}s\nAccuracySec=1s\n\n\
         [Install]\nWantedBy=timers.target\n",
        call.every.max(Duration::from_secs(1)).as_secs()
    );
    Ok((service, timer))
}

fn quote(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', r"\\").replace('"', "\\\"").replace('%', "%%"))
}

fn files(machine: &Machine) -> Option<(PathBuf, PathBuf)> {
    let own =
        machine.vars.get(OsStr::new("XDG_CONFIG_HOME")).map(PathBuf::from).filter(|path| path.is_absolute());
    let config = own.or_else(|| Some(machine.user_home.as_ref()?.join(".config")))?;
    let folder = config.join("systemd/user");
    let name = machine.name();
    Some((folder.join(format!("{name}.service")), folder.join(format!("{name}.timer"))))
}

pub(super) fn install(call: &TimerCall, machine: &Machine) -> Result<Installed, TimerError> {
    let (service, timer) = files(machine).ok_or(TimerError::NoHome)?;
    let (what, when) = units(call)?;
    write(&service, &what)?;
    write(&timer, &when)?;
    let unit = format!("{}.timer", machine.name());
    let enabled = systemctl(machine, &["daemon-reload"]) && systemctl(machine, &["enable", "--now", &unit]);
    let by_hand = format!("systemctl --user daemon-reload && systemctl --user enable --now {unit}");
    Ok(Installed {
        entry: TimerEntry {
            shown: timer.to_string_lossy().into_owned(),
            binary: Some(call.binary.clone().into()),
        },
        enable: (!enabled).then_some(by_hand),
    })
}

pub(super) fn uninstall(machine: &Machine) -> Result<bool, TimerError> {
    let Some((service, timer)) = files(machine) else { return Ok(false) };
    if !timer.exists() && !service.exists() {
        return Ok(false);
    }
    // Without a running user manager there is nothing to stop; without the files the timer does not start again.
    systemctl(machine, &["disable", "--now", &format!("{}.timer", machine.name())]);
    let had = [remove(&timer)?, remove(&service)?];
    systemctl(machine, &["daemon-reload"]);
    Ok(had.contains(&true))
}

pub(super) fn find(machine: &Machine) -> Option<TimerEntry> {
    let (service, timer) = files(machine)?;
    timer.is_file().then(|| TimerEntry {
        shown: timer.to_string_lossy().into_owned(),
        binary: std::fs::read_to_string(service).ok().and_then(|text| binary(&text)),
    })
}

fn binary(service: &str) -> Option<PathBuf> {
    let line = service.lines().find_map(|line| line.strip_prefix("ExecStart=/usr/bin/env \""))?;
    let word = line.strip_suffix("\" runners wakeup --quiet --timer systemd")?;
    let word = word.replace("$$", "$").replace("%%", "%").replace("\\\"", "\"").replace(r"\\", r"\");
    Some(PathBuf::from(word))
}

fn systemctl(machine: &Machine, args: &[&str]) -> bool {
    let args: Vec<&OsStr> = std::iter::once("--user").chain(args.iter().copied()).map(OsStr::new).collect();
    machine.run("systemctl", &args, &[]).is_ok_and(|output| output.status.success())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_units_keep_runners_alive_and_preserve_every_character_of_the_paths() {
        let call = TimerCall {
            binary: "/opt/100% \"my\" $tools/tenure".into(),
            path: Some("/a b:/c%d:/usr/bin".into()),
            home: Some("/srv/t".into()),
            every: Duration::from_secs(90),
        };
        let (service, timer) = units(&call).unwrap();
        assert!(service.contains("\nKillMode=process\n"));
        assert!(
            service
                .contains("\nEnvironment=\"PATH=/a b:/c%%d:/usr/bin\"\nEnvironment=\"TENURE_HOME=/srv/t\"\n")
        );
        assert!(
            service
                .contains("ExecStart=/usr/bin/env \"/opt/100%% \\\"my\\\" $$tools/tenure\" runners wakeup"),
            "{service}"
        );
        assert_eq!(binary(&service), Some(PathBuf::from(&call.binary)));
        assert!(timer.contains("\nOnUnitActiveSec=90s\n"));
        assert!(units(&TimerCall { binary: "/a\nb".into(), ..call }).is_err());
    }
}
