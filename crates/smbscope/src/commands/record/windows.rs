//! `smbscope record --print-windows-script`: scripts that record on Windows what its processors do, or what its SMB
//! server does.
//!
//! Its commands are described in Microsoft's documentation: xperf in "Windows Performance Toolkit"
//! (start, stop, stackwalk, WPA providers), start /NODE and /AFFINITY in KB 2028687,
//! DisablePagingExecutive in "Kernel Trace Control API Reference"; logman, netsh trace and wevtutil in "Windows
//! Commands".

use std::ffi::OsString;
use std::time::Duration;

use crate::exit::Failure;

/// What a script records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum What {
    /// Interrupts, deferred work, samples and switches of the processors, with xperf.
    #[default]
    Processors,
    /// Events of the SMB server, packets, and the event logs of SMB, with what Windows has.
    Smb,
}

impl What {
    fn template(self) -> &'static str {
        match self {
            What::Processors => include_str!("windows.cmd"),
            What::Smb => include_str!("windows_smb.cmd"),
        }
    }
}

/// Time without --duration.
const DURATION: Duration = Duration::from_secs(20);
/// Megabytes of a second on a busy server with 64 processors, and those of the file at least and at most.
const MB_EACH_SECOND: u64 = 100;
const FILE_MB: (u64, u64) = (512, 8192);

/// Arguments of the program, in which the folder of the script can be written as --to, as people say
/// it; everywhere else that is the end of a period.
pub fn arguments(given: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let mut given: Vec<_> = given.collect();
    if given.iter().any(|word| word == "--print-windows-script") {
        for word in given.iter_mut().filter(|word| *word == "--to") {
            *word = "--out".into();
        }
    }
    given
}

/// The script, with the ends of lines that Windows expects.
pub fn script(
    what: What,
    node: u32,
    duration: Option<Duration>,
    to: &str,
) -> anyhow::Result<String> {
    check(to)?;
    let seconds = duration.unwrap_or(DURATION).as_secs_f64().ceil().max(1.0) as u64;
    let file_mb = seconds.saturating_mul(MB_EACH_SECOND).clamp(FILE_MB.0, FILE_MB.1);
    let values = [
        ("{VERSION}", env!("CARGO_PKG_VERSION").to_owned()),
        ("{TO}", to.trim_end_matches('\\').to_owned()),
        ("{NODE}", node.to_string()),
        ("{SECONDS}", seconds.to_string()),
        ("{FILE_MB}", file_mb.to_string()),
        ("{FREE_MB}", (2 * file_mb).to_string()),
    ];
    let script = values
        .iter()
        .fold(what.template().to_owned(), |text, (name, value)| text.replace(name, value));
    Ok(script.replace('\n', "\r\n"))
}

/// The folder becomes part of commands: nothing in it may end a string or be replaced.
fn check(to: &str) -> anyhow::Result<()> {
    let mut start = to.chars();
    let is_absolute = start.next().is_some_and(|drive| drive.is_ascii_alphabetic())
        && start.next() == Some(':')
        && start.next() == Some('\\');
    let is_plain = |c: char| c.is_ascii_alphanumeric() || r" \:._-".contains(c);
    if is_absolute && to.chars().all(is_plain) {
        return Ok(());
    }
    Err(Failure::usage(format!(
        r"--out {to}: expected a folder of a drive in letters, digits, spaces and ._-, for example S:\temp"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_script_has_the_values_and_no_placeholder() {
        let script =
            script(What::Processors, 1, Some(Duration::from_millis(19_500)), r"S:\temp\").unwrap();
        assert!(script.contains("set \"TO=S:\\temp\"\r\n"), "{script}");
        for line in
            ["set \"NODE=1\"", "set \"SECONDS=20\"", "set \"FILE_MB=2000\"", "set \"FREE_MB=4000\""]
        {
            assert!(script.contains(line), "{line}");
        }
        assert!(!script.contains('{') && !script.contains("\r\r"), "{script}");
        assert!(script.lines().all(|line| !line.ends_with(' ')));
        let longer =
            super::script(What::Processors, 0, Some(Duration::from_secs(3600)), r"C:\").unwrap();
        assert!(longer.contains("set \"FILE_MB=8192\""));
        let smb = super::script(What::Smb, 0, None, r"C:\x").unwrap();
        assert!(smb.contains("set \"SECONDS=20\"") && !smb.contains('{'), "{smb}");
        for command in ["logman start", "netsh trace start", "wevtutil epl"] {
            assert!(smb.contains(command), "{command}");
        }
    }

    #[test]
    fn the_folder_of_the_script_can_be_written_as_to() {
        let arguments = |line: &str| super::arguments(line.split(' ').map(OsString::from));
        let script = arguments(r"smbscope record --print-windows-script --to S:\temp");
        assert_eq!(script[3], "--out");
        assert_eq!(arguments("smbscope report x --to 14:05")[3], "--to");
    }

    #[test]
    fn a_folder_cannot_become_a_command() {
        assert!(check(r"D:\my traces\a-b_c.d").is_ok());
        for to in [
            "",
            "temp",
            r"\\server\share",
            r"S:temp",
            r"S:\a(1)",
            r#"S:\a" & del"#,
            r"S:\%TEMP%",
            "S:\\a\nb",
            "S:\\ä",
        ] {
            assert!(check(to).is_err(), "{to}");
        }
    }
}
