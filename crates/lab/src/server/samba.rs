//! Finds Samba, its version, and the programs that serve named pipes for it.
//!
//! Since 4.16 smbd leaves named pipes (listing shares, names of SIDs) to `samba-dcerpcd` and `rpcd_*`,
//! which it starts from the folder that was compiled in. For a Samba that was unpacked next to the
//! system's, those would be the system's programs; and as root the `rpcd_*` create log files in
//! /var/log/samba before they read smb.conf. So a lab starts them itself, with scripts that set its log
//! folder and disable the TCP ports that they would open. Source: samba-dcerpcd(8),
//! source3/rpc_server/rpc_host.c.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::error::LabError;
use super::paths::Paths;

const HELPER: &str = "samba-dcerpcd";
/// Share lists (srvsvc, wkssvc), accounts by SID (lsarpc, samr), and the registry that they query.
const SERVICES: [&str; 3] = ["rpcd_classic", "rpcd_lsad", "rpcd_winreg"];

/// An installed smbd.
#[derive(Clone, Debug)]
pub(super) struct Samba {
    /// The program, or a script that starts it.
    pub smbd: PathBuf,
    /// As in "4.17.12-Debian".
    pub version: String,
    /// As in (4, 17).
    pub release: (u32, u32),
    /// The folder with the programs that serve named pipes, if they were found.
    helpers: Option<PathBuf>,
}

impl Samba {
    /// Finds smbd in `given` (the program, or a folder with `bin/smbd` or `sbin/smbd`), or else in the
    /// system's folders, and queries its version.
    pub fn find(given: Option<&Path>) -> Result<Samba, LabError> {
        let smbd = match given {
            Some(given) => in_folder(given)?,
            None => in_system()?,
        };
        let not_samba = |why: String| LabError::NotSamba { path: smbd.clone(), why };
        let output = Command::new(&smbd)
            .arg("--version")
            .stdin(Stdio::null())
            .output()
            .map_err(|error| not_samba(format!("cannot be run: {error}")))?;
        let said = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        let Some((version, release)) = parse_version(&said) else {
            let error = String::from_utf8_lossy(&output.stderr).trim().to_owned();
            let said = if said.is_empty() { error } else { said };
            return Err(not_samba(format!(
                "does not print a Samba version; its output was {said:?}"
            )));
        };
        let helpers = helper_folders(&smbd).into_iter().find(|folder| {
            SERVICES.iter().chain([&HELPER]).all(|name| folder.join(name).is_file())
        });
        Ok(Samba { version, release, helpers, smbd })
    }

    /// Whether smbd leaves named pipes to helpers.
    pub fn wants_helpers(&self) -> bool {
        self.release >= (4, 16)
    }

    /// Writes the scripts of the services; returns the program that starts the helpers from them, with
    /// its arguments. `None`: the helpers were not found, or smbd does not need any.
    pub fn helper(&self, paths: &Paths) -> Result<Option<(PathBuf, Vec<OsString>)>, LabError> {
        let Some(folder) = self.helpers.as_ref().filter(|_| self.wants_helpers()) else {
            return Ok(None);
        };
        let mut scripts = Vec::new();
        for name in SERVICES {
            let script = paths.rpc().join(name);
            paths.write(&script, &service(&folder.join(name), &paths.log()), true)?;
            scripts.push(script.into_os_string());
        }
        Ok(Some((folder.join(HELPER), scripts)))
    }
}

/// The script of one service.
fn service(program: &Path, log: &Path) -> String {
    let program = quoted(program);
    let log = quoted(&PathBuf::from(format!("--log-basename={}", log.display())));
    format!(
        "#!/bin/sh\n\
         # No TCP ports: named pipes are all that a lab needs.\n\
         case \" $* \" in\n  \
         *\" --list-interfaces \"*) {program} {log} \"$@\" | grep -v ncacn_ip_tcp ;;\n  \
         *) exec {program} {log} \"$@\" ;;\n\
         esac\n"
    )
}

fn quoted(path: &Path) -> String {
    format!("'{}'", path.display().to_string().replace('\'', r"'\''"))
}

fn in_folder(given: &Path) -> Result<PathBuf, LabError> {
    let missing = || LabError::NoSmbd { place: format!("at {}", given.display()) };
    // smbd changes its working folder, and its path identifies its processes.
    let given = std::path::absolute(given).map_err(|_| missing())?;
    if given.is_file() {
        return Ok(given);
    }
    ["bin/smbd", "sbin/smbd", "smbd"]
        .iter()
        .map(|name| given.join(name))
        .find(|path| path.is_file())
        .ok_or_else(missing)
}

fn in_system() -> Result<PathBuf, LabError> {
    // Ordinary users have no sbin in PATH.
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path)
        .filter(|folder| folder.is_absolute())
        .chain(["/usr/sbin", "/usr/local/sbin", "/usr/local/samba/sbin"].map(PathBuf::from));
    folders
        .map(|folder| folder.join("smbd"))
        .find(|path| path.is_file())
        .ok_or_else(|| LabError::NoSmbd { place: "in PATH or in /usr/sbin".to_owned() })
}

/// Possible folders of an smbd's helpers, nearest first.
fn helper_folders(smbd: &Path) -> Vec<PathBuf> {
    let mut folders = Vec::new();
    folders.extend(smbd.parent().map(Path::to_owned));
    if let Ok(real) = smbd.canonicalize()
        && let Some(prefix) = real.parent().and_then(Path::parent)
    {
        folders.extend(["libexec/samba", "libexec", "lib/samba"].map(|name| prefix.join(name)));
    }
    folders
}

/// Parses "Version 4.17.12-Debian" into version and release.
fn parse_version(said: &str) -> Option<(String, (u32, u32))> {
    let version = said.strip_prefix("Version ")?.split_whitespace().next()?;
    let mut numbers = version.split('.').map(|part| {
        let digits: String = part.chars().take_while(char::is_ascii_digit).collect();
        digits.parse().ok()
    });
    let release = (numbers.next()??, numbers.next()??);
    // Debian repeats the whole version of the package.
    let short = version.split("-Debian-").next().unwrap_or(version);
    Some((short.to_owned(), release))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read() {
        let of = |text| parse_version(text).unwrap();
        assert_eq!(of("Version 4.17.12-Debian"), ("4.17.12-Debian".into(), (4, 17)));
        let backport = of("Version 4.22.6-Debian-4.22.6+dfsg-0+deb13u1~bpo12+1");
        assert_eq!(backport, ("4.22.6".into(), (4, 22)));
        assert_eq!(of("Version 4.23.0rc1").1, (4, 23));
        for text in ["", "Version", "Version x.y", "smbd 4.17"] {
            assert_eq!(parse_version(text), None, "{text}");
        }
    }

    #[test]
    fn a_missing_samba_says_what_to_install() {
        let folder = tempfile::tempdir().unwrap();
        let said = Samba::find(Some(folder.path())).unwrap_err().to_string();
        assert!(said.contains("apt-get install samba") && said.contains("--samba"), "{said}");
    }

    #[test]
    fn a_program_other_than_samba_is_reported() {
        let said = Samba::find(Some(Path::new("/bin/echo"))).unwrap_err().to_string();
        assert!(said.contains("/bin/echo") && said.contains("version"), "{said}");
    }

    #[test]
    fn helpers_next_to_smbd_go_first() {
        let folders = helper_folders(Path::new("/opt/samba/bin/smbd"));
        assert_eq!(folders.first().map(PathBuf::as_path), Some(Path::new("/opt/samba/bin")));
    }

    #[test]
    fn a_service_opens_no_port_and_logs_in_the_lab() {
        let script = service(Path::new("/it's/rpcd_classic"), Path::new("/tmp/lab/log"));
        assert!(script.contains(r"'/it'\''s/rpcd_classic' '--log-basename=/tmp/lab/log'"));
        assert!(script.contains("grep -v ncacn_ip_tcp"));
    }
}
