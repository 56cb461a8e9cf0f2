//! What is different on Windows: names that are devices, who else may read a file, and programs that only it has. Compiled
//! everywhere, so that it is tested everywhere.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::Context as _;

use crate::exit::{Code, Failure};
use crate::subprocess;

/// Names that are devices in every folder, with any extension ("Naming Files, Paths, and Namespaces").
const DEVICES: [&str; 6] = ["CON", "PRN", "AUX", "NUL", "CONIN$", "CONOUT$"];
/// Likewise with a digit.
const NUMBERED: [&str; 2] = ["COM", "LPT"];

/// Fails if the path is one of Windows' devices instead of a file.
pub fn check_name(path: &Path) -> Result<(), Failure> {
    match device(path) {
        Some(name) if cfg!(windows) => {
            let shown = path.display();
            let message =
                format!("{shown}: {name} is a device of Windows, not a file: choose another name");
            Err(Failure::new(Code::Usage, message))
        }
        _ => Ok(()),
    }
}

/// The device that a path names on Windows.
fn device(path: &Path) -> Option<String> {
    let text = path.to_str()?;
    // With this prefix names are taken as they are.
    if text.starts_with(r"\\?\") {
        return None;
    }
    let name = text.rsplit(['\\', '/', ':']).find(|part| !part.is_empty())?;
    let stem = name.split('.').next().unwrap_or(name).trim_end().to_ascii_uppercase();
    let is_numbered = NUMBERED.iter().any(|device| {
        let number = stem.strip_prefix(device);
        // COM0 is a file; superscript digits are digits.
        number.is_some_and(|digit| {
            matches!(digit, "1" | "2" | "3" | "4" | "5" | "6" | "7" | "8" | "9" | "¹" | "²" | "³")
        })
    });
    (is_numbered || DEVICES.contains(&stem.as_str())).then_some(stem)
}

/// Whether other users than its owner, administrators and the system may read a file; false if that is not known.
#[cfg(windows)]
pub fn is_open_to_others(path: &Path) -> bool {
    let Ok(path) = std::path::absolute(path) else { return false };
    let command = "(Get-Acl -LiteralPath $env:SMBSCOPE_FILE).Sddl";
    let run = powershell().map(|program| {
        let mut run = Command::new(program);
        run.args(["-NoProfile", "-NonInteractive", "-Command", command]);
        run.env("SMBSCOPE_FILE", path).stdin(Stdio::null()).stderr(Stdio::null()).output()
    });
    let Some(Ok(output)) = run else { return false };
    lets_others_read(&String::from_utf8_lossy(&output.stdout))
}

/// Whether a security descriptor lets everyone, users or authenticated users read ("Security Descriptor String Format").
#[cfg(any(windows, test))]
fn lets_others_read(sddl: &str) -> bool {
    /// Everyone, built-in users, authenticated users, guests, interactive users, domain users, as constants and as numbers.
    const OTHERS: [&str; 12] = [
        "WD",
        "BU",
        "AU",
        "BG",
        "IU",
        "DU",
        "AN",
        "S-1-1-0",
        "S-1-5-32-545",
        "S-1-5-11",
        "S-1-5-32-546",
        "S-1-5-4",
    ];
    /// FILE_READ_DATA, GENERIC_ALL and GENERIC_READ.
    const READ: u32 = 0x0000_0001 | 0x1000_0000 | 0x8000_0000;
    let Some((_, dacl)) = sddl.split_once("D:") else { return false };
    // System entries follow; they audit.
    let dacl = dacl.split("S:").next().unwrap_or(dacl);
    dacl.split('(').skip(1).any(|entry| {
        let fields: Vec<&str> = entry.trim_end().trim_end_matches(')').split(';').collect();
        let [kind, flags, rights, _, _, who, ..] = fields[..] else { return false };
        // "IO": only for what is created below.
        let applies = kind == "A" && !flags.contains("IO");
        let reads = match rights.strip_prefix("0x") {
            Some(bits) => u32::from_str_radix(bits, 16).is_ok_and(|bits| bits & READ != 0),
            None => ["FA", "FR", "GA", "GR", "CC"].iter().any(|right| rights.contains(right)),
        };
        applies && reads && OTHERS.contains(&who)
    })
}

/// Windows PowerShell, which every Windows has.
fn powershell() -> Option<PathBuf> {
    let root = std::env::var_os("SystemRoot").filter(|_| cfg!(windows)).map(PathBuf::from);
    let own = root.map(|root| root.join(r"System32\WindowsPowerShell\v1.0\powershell.exe"));
    own.filter(|path| path.is_file())
        .or_else(|| subprocess::program("powershell.exe"))
        .or_else(|| subprocess::program("powershell"))
}

/// Runs a script of PowerShell and returns the file that it writes, whose path it is given as its only argument.
///
/// # Errors
/// There is no PowerShell, or the script fails; its own words are shown.
pub fn file_of_script(script: &str, name: &str) -> anyhow::Result<Vec<u8>> {
    let program = powershell()
        .ok_or_else(|| Failure::new(Code::Input, "there is no powershell.exe on this machine"))?;
    file_by(&program, script, name)
}

fn file_by(program: &Path, script: &str, name: &str) -> anyhow::Result<Vec<u8>> {
    let folder = tempfile::tempdir().context("cannot create a temporary folder")?;
    let (source, answer) = (folder.path().join("collect.ps1"), folder.path().join(name));
    // PowerShell 5 reads a script without a mark in the code page of the machine.
    std::fs::write(&source, format!("\u{feff}{script}")).context("cannot write the script")?;
    let output = Command::new(program)
        .args(["-NoProfile", "-NonInteractive", "-ExecutionPolicy", "Bypass", "-File"])
        .args([&source, &answer])
        .stdin(Stdio::null())
        .output()
        .context("cannot start powershell.exe")?;
    match std::fs::read(&answer) {
        Ok(bytes) if output.status.success() => Ok(bytes),
        _ => {
            let said = String::from_utf8_lossy(&output.stderr);
            let said = said.lines().find(|line| !line.trim().is_empty()).unwrap_or("nothing");
            let message = format!("powershell.exe could not read this machine; it said: {said}");
            Err(Failure::new(Code::Input, message).into())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_are_not_files() {
        for name in [
            "nul",
            "NUL.txt",
            r"C:\x\con",
            "aux .pcap",
            "com1",
            "LPT9.log",
            "x/prn",
            "c:nul",
            "COM²",
        ] {
            assert!(device(Path::new(name)).is_some(), "{name}");
        }
        for name in
            ["null", "com0", "com10", "console.txt", r"\\?\C:\nul", "nul/x.pcap", "x.nul", ""]
        {
            assert_eq!(device(Path::new(name)), None, "{name}");
        }
    }

    #[test]
    fn secrets_that_others_may_read_are_noticed() {
        let own = "O:BAG:BAD:PAI(A;;FA;;;SY)(A;;FA;;;BA)(A;;0x1301bf;;;S-1-5-21-1-2-3-1001)";
        assert!(!lets_others_read(own));
        for entry in ["(A;;0x1200a9;;;BU)", "(A;ID;FR;;;WD)", "(A;;FA;;;S-1-5-11)", "(A;;GR;;;AU)"]
        {
            assert!(lets_others_read(&format!("{own}{entry}\r\n")), "{entry}");
        }
        // Denied, inherited only, write only, and audited.
        for entry in
            ["(D;;FA;;;WD)", "(A;OICIIO;FA;;;WD)", "(A;;0x100002;;;WD)", "S:(AU;FA;FA;;;WD)"]
        {
            assert!(!lets_others_read(&format!("{own}{entry}")), "{entry}");
        }
        assert!(!lets_others_read("nonsense"));
    }

    #[cfg(unix)]
    #[test]
    fn a_script_answers_in_a_file_or_says_why_not() {
        use std::os::unix::fs::PermissionsExt as _;
        // A stand-in that logs its arguments and writes the file.
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("powershell");
        let text = "#!/bin/sh\necho \"$@\" >\"$(dirname \"$0\")/log\"\nshift 5\ngrep -q fail \"$1\" && { echo no right >&2; exit 1; }\necho '{}' >\"$2\"\n";
        std::fs::write(&program, text).unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
        assert_eq!(file_by(&program, "ok", "machine.json").unwrap(), b"{}\n");
        let log = std::fs::read_to_string(folder.path().join("log")).unwrap();
        assert!(
            log.starts_with("-NoProfile -NonInteractive -ExecutionPolicy Bypass -File /"),
            "{log}"
        );
        let error = format!("{:#}", file_by(&program, "fail", "machine.json").unwrap_err());
        assert!(error.contains("it said: no right"), "{error}");
    }
}
