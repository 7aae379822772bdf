//! A launchd agent: one property list.

use std::ffi::OsStr;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::time::Duration;

use super::{Installed, Machine, TimerCall, TimerEntry, TimerError, refuse_control, remove, write};
use crate::sys::launchd_domain;

pub fn plist(label: &str, call: &TimerCall) -> Result<String, TimerError> {
    let given: Vec<&str> =
        std::iter::once(&call.binary).chain(&call.path).chain(&call.home).map(String::as_str).collect();
    refuse_control(&given)?;
    let text = |value: &str| format!("<string>{}</string>", escape(value));
    let mut words = String::new();
    for word in [call.binary.as_str(), "runners", "wakeup", "--quiet", "--timer", "launchd"] {
        let _ = writeln!(words, "    {}", text(word));
    }
    let mut variables = String::new();
    for (name, value) in [("PATH", &call.path), ("TENURE_HOME", &call.home)] {
        if let Some(value) = value {
            let _ = writeln!(variables, "    <key>{name}</key>{}", text(value));
        }
    }
    Ok(format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
         <!DOCTYPE plist PUBLIC \"-//Apple//DTD PLIST 1.0//EN\" \"http://www.apple.com/DTDs/PropertyList-1.0.dtd\">\n\
         <plist version=\"1.0\">\n<dict>\n  <key>Label</key>{}\n  <key>ProgramArguments</key>\n  <array>\n{words}  </array>\n  \
         <key>EnvironmentVariables</key>\n  <dict>\n{variables}  </dict>\n  <key>StartInterval</key><integer>{}</integer>\n  \
         <key>RunAtLoad</key><true/>\n  <!-- The runners that it starts stay when it is done. -->\n  \
         <key>AbandonProcessGroup</key><true/>\n</dict>\n</plist>\n",
        text(label),
        call.every.max(Duration::from_secs(1)).as_secs()
    ))
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

fn file(machine: &Machine) -> Option<PathBuf> {
    Some(machine.user_home.as_ref()?.join("Library/LaunchAgents").join(format!("{}.plist", machine.name())))
}

pub(super) fn install(call: &TimerCall, machine: &Machine) -> Result<Installed, TimerError> {
    let path = file(machine).ok_or(TimerError::NoHome)?;
    write(&path, &plist(&machine.name(), call)?)?;
    let service = format!("{}/{}", launchd_domain(), machine.name());
    // A loaded agent keeps its old definition, so it is unloaded first.
    launchctl(machine, &[OsStr::new("bootout"), OsStr::new(&service)]);
    let loaded =
        launchctl(machine, &[OsStr::new("bootstrap"), OsStr::new(&launchd_domain()), path.as_os_str()]);
    let by_hand = format!("launchctl bootstrap {} '{}'", launchd_domain(), path.display());
    Ok(Installed {
        entry: TimerEntry {
            shown: path.to_string_lossy().into_owned(),
            binary: Some(call.binary.clone().into()),
        },
        enable: (!loaded).then_some(by_hand),
    })
}

pub(super) fn uninstall(machine: &Machine) -> Result<bool, TimerError> {
    let Some(path) = file(machine).filter(|path| path.exists()) else { return Ok(false) };
    launchctl(
        machine,
        &[OsStr::new("bootout"), OsStr::new(&format!("{}/{}", launchd_domain(), machine.name()))],
    );
    remove(&path)
}

pub(super) fn find(machine: &Machine) -> Option<TimerEntry> {
    let path = file(machine).filter(|path| path.is_file())?;
    let text = std::fs::read_to_string(&path).unwrap_or_default();
    Some(TimerEntry { shown: path.to_string_lossy().into_owned(), binary: binary(&text) })
}

fn binary(plist: &str) -> Option<PathBuf> {
    let word = plist.split("<array>").nth(1)?.split("<string>").nth(1)?.split("</string>").next()?;
    Some(PathBuf::from(word.replace("&gt;", ">").replace("&lt;", "<").replace("&amp;", "&")))
}

fn launchctl(machine: &Machine, args: &[&OsStr]) -> bool {
    machine.run("launchctl", args, &[]).is_ok_and(|output| output.status.success())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_property_list_keeps_runners_alive_and_preserves_every_character_of_the_paths() {
        let call = TimerCall {
            binary: "/opt/a & <b> 'c'/tenure".into(),
            path: Some("/usr/bin:/x%y".into()),
            home: None,
            every: Duration::from_mins(1),
        };
        let list = plist("tenure-wakeup", &call).unwrap();
        assert!(list.contains("<string>/opt/a &amp; &lt;b&gt; 'c'/tenure</string>"));
        assert!(list.contains("<key>PATH</key><string>/usr/bin:/x%y</string>"));
        assert!(list.contains("<key>StartInterval</key><integer>60</integer>"));
        assert!(list.contains("<key>AbandonProcessGroup</key><true/>"));
        assert!(!list.contains("TENURE_HOME"));
        assert_eq!(binary(&list), Some(PathBuf::from(&call.binary)));
    }
}
