//! The user's crontab: maintains a block between two marker lines and leaves every other byte unchanged.

use std::ffi::OsStr;
use std::path::PathBuf;
use std::time::Duration;

use super::{Installed, Machine, TimerCall, TimerEntry, TimerError, refuse_control, said};

/// Common cron implementations refuse or truncate longer commands.
const MAX_COMMAND: usize = 990;

pub(super) fn install(call: &TimerCall, machine: &Machine) -> Result<Installed, TimerError> {
    let line = line(call)?;
    let before = read(machine)?;
    write(machine, &with_block(&before, machine.home.as_deref(), &line)?)?;
    // Reads the crontab back, because `crontab` can succeed without storing the entry.
    match find(machine)? {
        Some(entry) if entry.shown == line => Ok(Installed { entry, enable: None }),
        _ => Err(TimerError::Failed {
            program: "crontab",
            said: "crontab accepted the entry but did not store it".to_owned(),
        }),
    }
}

pub(super) fn uninstall(machine: &Machine) -> Result<bool, TimerError> {
    if !machine.has("crontab") {
        return Ok(false);
    }
    let before = read(machine)?;
    let Some(after) = without_block(&before, machine.home.as_deref())? else { return Ok(false) };
    if after.is_empty() {
        let output = machine.run("crontab", &[OsStr::new("-r")], &[])?;
        return if output.status.success() { Ok(true) } else { Err(failed(&output)) };
    }
    write(machine, &after)?;
    Ok(true)
}

pub(super) fn find(machine: &Machine) -> Result<Option<TimerEntry>, TimerError> {
    if !machine.has("crontab") {
        return Ok(None);
    }
    Ok(entry(&read(machine)?, machine.home.as_deref())?
        .map(|line| TimerEntry { binary: binary(&line), shown: line }))
}

fn failed(output: &std::process::Output) -> TimerError {
    TimerError::Failed { program: "crontab", said: said(output) }
}

/// The crontab; empty if the user has none.
fn read(machine: &Machine) -> Result<Vec<u8>, TimerError> {
    let output = machine.run("crontab", &[OsStr::new("-l")], &[])?;
    if output.status.success() {
        return Ok(output.stdout);
    }
    let message = said(&output).to_lowercase();
    // `crontab -l` exits with 1 both for a missing crontab and for other errors.
    if message.contains("no crontab") || message.contains("no such file") {
        Ok(Vec::new())
    } else {
        Err(failed(&output))
    }
}

fn write(machine: &Machine, text: &[u8]) -> Result<(), TimerError> {
    let output = machine.run("crontab", &[OsStr::new("-")], text)?;
    if output.status.success() { Ok(()) } else { Err(failed(&output)) }
}

/// `* * * * * /usr/bin/env PATH=… /usr/local/bin/tenure runners wakeup --quiet --timer cron`
pub fn line(call: &TimerCall) -> Result<String, TimerError> {
    let mut words = vec!["/usr/bin/env".to_owned()];
    words.extend(call.path.as_ref().map(|path| format!("PATH={}", word(path))));
    words.extend(call.home.as_ref().map(|home| format!("TENURE_HOME={}", word(home))));
    words.push(word(&call.binary));
    words.push("runners wakeup --quiet --timer cron".to_owned());
    let given: Vec<&str> =
        std::iter::once(&call.binary).chain(&call.path).chain(&call.home).map(String::as_str).collect();
    refuse_control(&given)?;
    if given.iter().any(|word| word.contains('\\')) {
        return Err(TimerError::Impossible(
            "a backslash in the binary's path, in PATH or in TENURE_HOME means something else to every cron"
                .to_owned(),
        ));
    }
    let command = words.join(" ");
    if command.len() > MAX_COMMAND {
        return Err(TimerError::TooLong(command.len() - MAX_COMMAND));
    }
    Ok(format!("{} {command}", schedule(call.every)?))
}

/// Quotes for the shell, and for cron, which treats a percent sign as the end of the line.
fn word(text: &str) -> String {
    let plain =
        !text.is_empty() && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"._-/:@+=,".contains(&b));
    let quoted = if plain { text.to_owned() } else { format!("'{}'", text.replace('\'', r"'\''")) };
    quoted.replace('%', r"\%")
}

/// The schedules that cron supports: intervals of minutes that divide an hour, or hours that divide a day.
fn schedule(every: Duration) -> Result<String, TimerError> {
    let minutes = every.as_secs() / 60;
    let whole = every == Duration::from_secs(minutes * 60);
    match minutes {
        1 if whole => Ok("* * * * *".to_owned()),
        2..60 if whole && 60 % minutes == 0 => Ok(format!("*/{minutes} * * * *")),
        60..=1440 if whole && minutes.is_multiple_of(60) && 24_u64.is_multiple_of(minutes / 60) => {
            Ok(match minutes / 60 {
                1 => "0 * * * *".to_owned(),
                24 => "0 0 * * *".to_owned(),
                hours => format!("0 */{hours} * * *"),
            })
        }
        _ => Err(TimerError::Impossible(format!(
            "cron cannot call every {}; set runners.wakeup.checkInterval to minutes that divide an hour",
            tenure_core::duration::format_short(every)
        ))),
    }
}

/// The binary that a line written by tenure calls.
fn binary(line: &str) -> Option<PathBuf> {
    let command = line.strip_suffix(" runners wakeup --quiet --timer cron")?.replace(r"\%", "%");
    let mut last = String::new();
    let mut quoted = false;
    let mut rest = command.chars();
    while let Some(c) = rest.next() {
        match c {
            '\'' => quoted = !quoted,
            '\\' if !quoted => last.extend(rest.next()),
            ' ' if !quoted => last.clear(),
            _ => last.push(c),
        }
    }
    Some(PathBuf::from(last))
}

/// The first and last line of the block; each home has a separate block.
fn marks(home: Option<&str>) -> (String, String) {
    let whose = home.map(|home| format!(" ({home})")).unwrap_or_default();
    (format!("# >>> tenure wake-up{whose} >>>"), format!("# <<< tenure wake-up{whose} <<<"))
}

/// The byte range of the block, including the last line break.
fn span(text: &[u8], home: Option<&str>) -> Result<Option<(usize, usize)>, TimerError> {
    let (begin, end) = marks(home);
    let mut at = 0;
    let mut begun = None;
    for line in text.split_inclusive(|byte| *byte == b'\n') {
        let bare = line.trim_ascii_end();
        if bare == begin.as_bytes() && begun.is_none() {
            begun = Some(at);
        }
        at += line.len();
        if let (Some(from), true) = (begun, bare == end.as_bytes()) {
            return Ok(Some((from, at)));
        }
    }
    match begun {
        None => Ok(None),
        // Text after an unclosed marker may belong to the user.
        Some(_) => Err(TimerError::Impossible(format!(
            "the crontab has a line \"{begin}\" without \"{end}\"; correct it with `crontab -e`"
        ))),
    }
}

/// The text with a block that contains `line`, replacing an existing block, else appended.
pub fn with_block(text: &[u8], home: Option<&str>, line: &str) -> Result<Vec<u8>, TimerError> {
    let (begin, end) = marks(home);
    let block = format!("{begin}\n{line}\n{end}\n");
    let (before, after) = match span(text, home)? {
        Some((from, to)) => (&text[..from], &text[to..]),
        None => (text, &[][..]),
    };
    let mut new = before.to_vec();
    if !new.is_empty() && !new.ends_with(b"\n") {
        new.push(b'\n');
    }
    new.extend_from_slice(block.as_bytes());
    new.extend_from_slice(after);
    Ok(new)
}

/// The text without the block; `None` if it has none.
pub fn without_block(text: &[u8], home: Option<&str>) -> Result<Option<Vec<u8>>, TimerError> {
    Ok(span(text, home)?.map(|(from, to)| [&text[..from], &text[to..]].concat()))
}

/// The line in the block.
fn entry(text: &[u8], home: Option<&str>) -> Result<Option<String>, TimerError> {
    let Some((from, to)) = span(text, home)? else { return Ok(None) };
    let block = String::from_utf8_lossy(&text[from..to]).into_owned();
    Ok(block
        .lines()
        .map(str::trim)
        .find(|line| !line.is_empty() && !line.starts_with('#'))
        .map(str::to_owned))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call() -> TimerCall {
        TimerCall {
            binary: "/usr/local/bin/tenure".into(),
            path: Some("/usr/local/bin:/usr/bin:/bin".into()),
            home: None,
            every: Duration::from_mins(1),
        }
    }

    const LINE: &str = "* * * * * /usr/bin/env PATH=/usr/local/bin:/usr/bin:/bin /usr/local/bin/tenure runners wakeup --quiet --timer cron";

    #[test]
    fn the_line_has_the_documented_form() {
        assert_eq!(line(&call()).unwrap(), LINE);
    }

    #[test]
    fn install_reinstall_and_uninstall_keep_every_other_byte() {
        let others: [&[u8]; 6] = [
            b"",
            b"MAILTO=ann\n0 5 * * 1 tar -zcf /var/backups/home.tgz /home/\n",
            b"# \xe4 Latin-1 comment\r\n\n\n  * * * * * a %b\n",
            b"# >>> tenure wake-up (/srv/other) >>>\n* * * * * x\n# <<< tenure wake-up (/srv/other) <<<\n",
            b"# a remark about # >>> tenure wake-up >>> in a line\n",
            b"\n",
        ];
        for before in others {
            let with = with_block(before, None, LINE).unwrap();
            assert!(with.starts_with(before));
            assert_eq!(entry(&with, None).unwrap().as_deref(), Some(LINE));
            assert_eq!(with_block(&with, None, LINE).unwrap(), with, "installing is idempotent");
            let moved = with_block(&with, None, "* * * * * other").unwrap();
            assert_eq!(entry(&moved, None).unwrap().as_deref(), Some("* * * * * other"));
            assert_eq!(without_block(&moved, None).unwrap().as_deref(), Some(before));
            assert_eq!(without_block(before, None).unwrap(), None);
        }
    }

    #[test]
    fn lines_around_the_block_keep_their_position() {
        let with = [&with_block(b"a\n", None, LINE).unwrap()[..], b"z\n"].concat();
        let again = with_block(&with, None, "* * * * * new").unwrap();
        assert!(again.starts_with(b"a\n# >>>") && again.ends_with(b"<<<\nz\n"));
        assert_eq!(without_block(&again, None).unwrap().as_deref(), Some(&b"a\nz\n"[..]));
    }

    #[test]
    fn a_missing_final_line_break_is_added_and_nothing_else() {
        let with = with_block(b"* * * * * a", None, LINE).unwrap();
        assert!(with.starts_with(b"* * * * * a\n# >>> tenure wake-up >>>\n"));
        assert_eq!(without_block(&with, None).unwrap().as_deref(), Some(&b"* * * * * a\n"[..]));
    }

    #[test]
    fn a_block_without_its_end_is_refused() {
        let broken = b"a\n# >>> tenure wake-up >>>\n* * * * * x\nprecious\n";
        assert!(with_block(broken, None, LINE).is_err());
        assert!(without_block(broken, None).is_err());
    }

    #[test]
    fn two_homes_have_two_blocks() {
        let both = with_block(&with_block(b"", None, "1").unwrap(), Some("/srv/t"), "2").unwrap();
        assert_eq!(entry(&both, None).unwrap().as_deref(), Some("1"));
        assert_eq!(entry(&both, Some("/srv/t")).unwrap().as_deref(), Some("2"));
        let one = without_block(&both, None).unwrap().unwrap();
        assert_eq!(entry(&one, Some("/srv/t")).unwrap().as_deref(), Some("2"));
    }

    #[test]
    fn spaces_percents_and_quotes_are_preserved_and_the_binary_is_found_again() {
        for path in [
            "/opt/my tools/tenure",
            "/opt/100%/tenure",
            "/opt/it's/tenure",
            "/opt/a'%' b/$HOME/`x`/tenure",
            "/x",
        ] {
            let call = TimerCall { binary: path.into(), path: Some(format!("/a b:{path}")), ..call() };
            let line = line(&call).unwrap();
            assert_eq!(binary(&line), Some(PathBuf::from(path)), "{line}");
            assert!(!line.replace(r"\%", "").contains('%'), "{line}");
        }
        for bad in ["/opt/a\nb", "/opt/a\\b", "/opt/\u{7}"] {
            assert!(line(&TimerCall { binary: bad.into(), ..call() }).is_err(), "{bad:?}");
        }
        assert!(line(&TimerCall { path: Some("/x".repeat(600)), ..call() }).is_err());
    }

    #[test]
    fn intervals_that_cron_does_not_support_are_an_error() {
        let said = |minutes: u64| schedule(Duration::from_mins(minutes)).ok();
        assert_eq!(said(1).as_deref(), Some("* * * * *"));
        assert_eq!(said(5).as_deref(), Some("*/5 * * * *"));
        assert_eq!(said(60).as_deref(), Some("0 * * * *"));
        assert_eq!(said(120).as_deref(), Some("0 */2 * * *"));
        assert_eq!(said(1440).as_deref(), Some("0 0 * * *"));
        assert_eq!((said(0), said(7), said(90), said(2880)), (None, None, None, None));
        assert!(schedule(Duration::from_secs(90)).is_err());
    }
}
