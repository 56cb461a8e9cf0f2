//! Runs programs of the machine and reads their answer.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

/// Where a program is: on PATH, or where administrators' programs are.
pub fn program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut dirs: Vec<_> = std::env::split_paths(&path).collect();
    dirs.extend(["/usr/sbin", "/sbin"].map(PathBuf::from));
    dirs.into_iter().map(|dir| dir.join(name)).find(|file| file.is_file())
}

/// What a program prints when it succeeds within two seconds. What it prints has to fit a pipe.
pub fn answer_of(name: &str, arguments: &[&str]) -> Option<String> {
    let mut child = Command::new(program(name)?)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .ok()?;
    for _ in 0..200 {
        if let Ok(Some(status)) = child.try_wait() {
            let output = child.wait_with_output().ok()?;
            return status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned());
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    let _ = child.kill();
    let _ = child.wait();
    None
}

/// Runs a command of the shell, which an option named; its output goes to standard error.
///
/// # Errors
/// It cannot be started, or does not succeed.
pub fn shell(command: &str, option: &str) -> anyhow::Result<()> {
    let (shell, flag) = if cfg!(windows) { ("cmd", "/C") } else { ("sh", "-c") };
    let mut run = Command::new(shell);
    run.args([flag, command]).stdin(Stdio::null()).stdout(std::io::stderr());
    let status = run.status().map_err(|error| anyhow::anyhow!("{option}: {shell}: {error}"))?;
    if status.success() {
        return Ok(());
    }
    Err(anyhow::anyhow!("{option}: `{command}` failed ({status}): the plug was not pulled"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_of_the_shell_succeeds_or_says_why() {
        assert!(shell("exit 0", "--pull").is_ok());
        let error = shell("exit 3", "--pull").unwrap_err().to_string();
        assert!(error.contains("--pull: `exit 3` failed"), "{error}");
    }

    #[test]
    fn programs_answer_or_do_not() {
        assert_eq!(answer_of("echo", &["a"]).as_deref(), Some("a\n"));
        assert_eq!(answer_of("false", &[]), None);
        assert_eq!(answer_of("no-such-program", &[]), None);
        assert_eq!(answer_of("sleep", &["60"]), None);
    }
}
