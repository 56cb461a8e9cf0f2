//! `smbscope record --print-windows-script`: scripts that record on Windows what its CPUs do, or what its SMB
//! server or client does.
//!
//! Its commands are described in Microsoft's documentation: xperf in "Windows Performance Toolkit"
//! (start, stop, stackwalk, WPA providers), start /NODE and /AFFINITY in KB 2028687,
//! DisablePagingExecutive in "Kernel Trace Control API Reference"; logman, netsh trace and wevtutil in "Windows
//! Commands".

use std::ffi::OsString;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::Context as _;

use crate::exit::{Code, Failure};

/// What a script records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum What {
    /// Interrupts, deferred work, samples and switches of the CPUs, with xperf.
    #[default]
    Processors,
    /// Events of the SMB server, packets, and the event logs of SMB, with what Windows has.
    Smb,
    /// The same with the requests of the SMB client (Windows 11 24H2, Server 2025 and later).
    SmbClient,
}

/// What is recorded of the server. 0xF3 are requests and responses, and what names clients, users, shares and files.
const SERVER_EVENTS: &str = r#"rem Events of the server: requests (0x1) and responses (0x2) with the time in its queue, in the file system, in the
rem transport and for signing, and connections (0x10), sessions (0x20), tree connects (0x40) and opens (0x80). They have
rem names of files and users, no contents. When the file is full, the oldest events are overwritten. Memory is bounded:
rem 64 to 256 buffers of 256 KB.
logman start smbscope -p Microsoft-Windows-SMBServer 0xF3 5 -o "%TO%\server.etl" -f bincirc -max %FILE_MB% -bs 256 -nb 64 256 -ct perf -ets"#;

const CLIENT_EVENTS: &str = r#"rem Requests of the client: how long each waited to be sent, for the server, and was processed; waits for credits.
rem They have names of files, no contents. When the file is full, the oldest events are overwritten. Memory is bounded:
rem 64 to 256 buffers of 256 KB.
logman start smbscope -p Microsoft-Windows-SMBClient (Smb_Perf,Smb_Perf_IO,Smb_Perf_IO_Optional,Smb_Perf_Summary) 5 -o "%TO%\client.etl" -f bincirc -max %FILE_MB% -bs 256 -nb 64 256 -ct perf -ets"#;

/// How each script begins: on its node, and by an administrator. The name of the script is in quotes and in no parentheses,
/// which a name can have, too.
const START: &str = r#"rem Start this script again so that it runs although processors are locked. /NODE alone only prefers the node; with
rem /AFFINITY, whose mask counts from the first processor of the node, it runs there only. /HIGH is the priority class; programs
rem do not inherit it, so each one that matters is started with it. Choose a node that the network adapters do not interrupt
rem (Get-NetAdapterHardwareInfo shows their node).
if /i "%~1"=="run" goto run
start "smbscope" /NODE %NODE% /AFFINITY 0xFFFFFFFF /HIGH /B /WAIT cmd /c call "%~f0" run
exit /b

:run
set RUN=start "smbscope" /NODE %NODE% /AFFINITY 0xFFFFFFFF /HIGH /B /WAIT
rem fltmc works for administrators only.
fltmc >nul 2>&1
if not "%errorlevel%"=="0" (
    echo Run this in a console of an administrator.
    exit /b 1
)"#;

/// The folder, and room in it.
const FOLDER: &str = r#"if not exist "%TO%" mkdir "%TO%"
powershell -NoProfile -Command "exit [int]((New-Object IO.DriveInfo '%TO%').AvailableFreeSpace -lt %FREE_MB%MB)"
if not "%errorlevel%"=="0" (
    echo %TO% needs %FREE_MB% MB of free space.
    exit /b 1
)"#;

/// Waits for the moment to record. The names of this class are the same in each language of Windows.
const WAIT: &str = r#"rem Wait until a processor spends this part of its time in DPCs (% DPC Time); Ctrl+C ends it.
set "LIMIT={LIMIT}"
echo Waiting until a processor spends %LIMIT% %% of its time in DPCs ...
%RUN% powershell -NoProfile -Command "while (-not (Get-WmiObject Win32_PerfFormattedData_Counters_ProcessorInformation | Where-Object { $_.Name -notlike '*_Total' -and $_.PercentDPCTime -ge %LIMIT% })) { Start-Sleep -Seconds 1 }"
if not "%errorlevel%"=="0" exit /b 1
"#;

/// What a script records, and how.
#[derive(Clone, Copy, Debug, Default)]
pub struct Script {
    pub what: What,
    pub node: u32,
    pub duration: Option<Duration>,
    /// Wait until a CPU spends this percentage of its time in DPCs.
    pub wait_dpc: Option<u32>,
}

impl What {
    fn template(self) -> &'static str {
        match self {
            What::Processors => include_str!("windows.cmd"),
            What::Smb | What::SmbClient => include_str!("windows_smb.cmd"),
        }
    }

    /// Placeholders of what differs between the server and the client.
    fn values(self) -> [(&'static str, &'static str); 4] {
        match self {
            What::SmbClient => [
                ("{WHAT}", "smb-client"),
                ("{SIDE}", "client"),
                ("{SINCE}", "Windows 11 24H2, Server 2025 or later"),
                ("{EVENTS}", CLIENT_EVENTS),
            ],
            What::Smb | What::Processors => [
                ("{WHAT}", "smb"),
                ("{SIDE}", "server"),
                ("{SINCE}", "Server 2012 R2 or later, 8.1 or later"),
                ("{EVENTS}", SERVER_EVENTS),
            ],
        }
    }
}

/// The longest time that Start-Sleep takes, s: 24 days.
const SECONDS_MAX: u64 = 2_147_483;
/// Time without --duration.
const DURATION: Duration = Duration::from_secs(20);
/// Megabytes of a second on a busy server with 64 CPUs, and those of the file at least and at most.
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

/// Runs a script on this machine. What it says goes to the console.
///
/// # Errors
/// This is not Windows, or the script fails: it has said why.
pub fn run(script: &str, out: &Path) -> anyhow::Result<()> {
    if !cfg!(windows) {
        return Err(Failure::usage(
            "--windows records on Windows; here, --print-windows-script prints the script to run there",
        ));
    }
    let folder = tempfile::tempdir().context("cannot create a temporary folder")?;
    let path = folder.path().join("record.cmd");
    std::fs::write(&path, script).context("cannot write the script")?;
    ran(&mut Command::new(&path), out)
}

/// Waits for a script. Without its folder it has recorded nothing, whatever it returned.
fn ran(script: &mut Command, out: &Path) -> anyhow::Result<()> {
    let status = script.stdin(Stdio::null()).status().context("cannot start the script")?;
    if status.success() && out.is_dir() {
        return Ok(());
    }
    let message = format!("the script ended without a recording in {} ({status})", out.display());
    Err(Failure::new(Code::Runtime, message).into())
}

/// The script, with the ends of lines that Windows expects.
pub fn script(script: Script, to: &str) -> anyhow::Result<String> {
    let Script { what, node, duration, wait_dpc } = script;
    check(to)?;
    let seconds = duration.unwrap_or(DURATION).as_secs_f64().ceil() as u64;
    if !(1..=SECONDS_MAX).contains(&seconds) {
        return Err(Failure::usage("--duration: a script records from one second to 24 days"));
    }
    let file_mb = seconds.saturating_mul(MB_EACH_SECOND).clamp(FILE_MB.0, FILE_MB.1);
    let values = [
        ("{VERSION}", env!("CARGO_PKG_VERSION").to_owned()),
        ("{TO}", to.trim_end_matches('\\').to_owned()),
        ("{NODE}", node.to_string()),
        ("{SECONDS}", seconds.to_string()),
        ("{FILE_MB}", file_mb.to_string()),
        ("{FREE_MB}", (2 * file_mb).to_string()),
    ];
    let wait = wait_dpc.map(|limit| WAIT.replace("{LIMIT}", &limit.to_string()));
    let text = what.template().replace("{START}", START).replace("{FOLDER}", FOLDER);
    let text = text.replace("{WAIT}\n", &wait.unwrap_or_default());
    let text = what.values().iter().fold(text, |text, (name, value)| text.replace(name, value));
    let script = values.iter().fold(text, |text, (name, value)| text.replace(name, value));
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
        r"--to {to}: expected a folder of a drive in letters, digits, spaces and ._-, for example S:\temp"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[test]
    fn a_script_that_recorded_nothing_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let out = folder.path().join("out");
        let shell = |text: &str| ran(Command::new("sh").args(["-c", text]), &out);
        let error = shell("exit 0").unwrap_err().to_string();
        assert!(error.contains("without a recording"), "{error}");
        assert!(shell(&format!("mkdir '{}'; exit 1", out.display())).is_err());
        assert!(shell("exit 0").is_ok());
        let error = run("", &out).unwrap_err().to_string();
        assert!(error.contains("--print-windows-script"), "{error}");
    }

    #[test]
    fn the_script_has_the_values_and_no_placeholder() {
        let of = |what, node, duration, to| {
            super::script(Script { what, node, duration, wait_dpc: None }, to)
        };
        let script =
            of(What::Processors, 1, Some(Duration::from_millis(19_500)), r"S:\temp\").unwrap();
        assert!(script.contains("set \"TO=S:\\temp\"\r\n"), "{script}");
        for line in
            ["set \"NODE=1\"", "set \"SECONDS=20\"", "set \"FILE_MB=2000\"", "set \"FREE_MB=4000\""]
        {
            assert!(script.contains(line), "{line}");
        }
        assert!(!script.contains('{') && !script.contains("\r\r"), "{script}");
        assert!(script.lines().all(|line| !line.ends_with(' ')));
        let longer = of(What::Processors, 0, Some(Duration::from_secs(3600)), r"C:\").unwrap();
        assert!(longer.contains("set \"FILE_MB=8192\""));
        let smb = of(What::Smb, 2, None, r"C:\x").unwrap();
        assert!(smb.contains("set \"SECONDS=20\""), "{smb}");
        let client = of(What::SmbClient, 2, None, r"C:\x").unwrap();
        for (smb, side) in [(&smb, "Server"), (&client, "Client")] {
            let start = format!("logman start smbscope -p Microsoft-Windows-SMB{side} ");
            let commands = [start.as_str(), "netsh trace start", "wevtutil epl", "Start-Sleep"];
            for command in commands {
                assert!(smb.contains(command), "{side}: {command}");
            }
            let file = format!("{}.etl", side.to_lowercase());
            assert!(smb.contains(&format!("%TO%\\{file}")) && !smb.contains("{EV"), "{smb}");
        }
        // `timeout /t` takes up to 99,999 s only.
        for seconds in [0, SECONDS_MAX + 1] {
            let duration = Some(Duration::from_secs(seconds));
            assert!(of(What::Smb, 0, duration, r"C:\x").is_err(), "{seconds}");
        }
    }

    /// Children do not inherit the priority class HIGH, and names of files have spaces, parentheses and `&`.
    #[test]
    fn every_script_runs_on_its_node_with_priority_whatever_its_name() {
        for what in [What::Processors, What::Smb, What::SmbClient] {
            let wait_dpc = Some(80);
            let text = script(Script { what, node: 3, duration: None, wait_dpc }, r"C:\x").unwrap();
            let start = "start \"smbscope\" /NODE %NODE% /AFFINITY 0xFFFFFFFF /HIGH /B /WAIT";
            assert!(text.contains(&format!("\r\n{start} cmd /c call \"%~f0\" run\r\n")), "{text}");
            assert!(
                text.contains(&format!("\r\nset RUN={start}\r\n"))
                    && text.contains("set \"NODE=3\"")
            );
            let recorders = [
                "xperf -on",
                "xperf -stop",
                "wpr -start",
                "wpr -stop",
                "typeperf ",
                "powershell -NoProfile -Command \"Start-Sleep",
            ];
            for line in text.lines().filter(|line| !line.starts_with("rem ")) {
                let is_recorder = recorders.iter().any(|name| line.contains(name));
                assert!(!is_recorder || line.contains("%RUN% "), "{line}");
                // Codes of errors can be negative.
                assert!(
                    !line.contains("if errorlevel") && !line.contains("if not errorlevel"),
                    "{line}"
                );
            }
            assert!(text.contains("set \"LIMIT=80\"") && text.contains("-ge %LIMIT%"), "{text}");
            assert!(!text.contains('{') || text.contains("Where-Object {"), "{text}");
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
