//! `smbscope.toml`: what a project or a user would otherwise repeat on every command line.
//!
//! Owns where the files are, their keys, and which of them counts: options of the command line first, then the file
//! of the project (in the working folder or above it), then that of the user. `SMBSCOPE_CONFIG` names one file
//! instead of both; empty, there is none. A project's file that others may write is not read: it names servers that
//! passwords are sent to.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use anyhow::Context as _;
use chrono::{FixedOffset, Offset as _, Utc};
use serde::Deserialize;
use smbscope_load::capacity::Limit;

use crate::exit::{Code, Failure};
use crate::fail_on::Noticed;

/// The file's name.
const NAME: &str = "smbscope.toml";
/// Names one file instead of those of project and user.
const VARIABLE: &str = "SMBSCOPE_CONFIG";
/// Longest file.
const BYTES_MAX: u64 = 1 << 20;
/// From which time on users notice that they wait, if no file says so.
const NOTICED: Noticed = Noticed(1_000_000_000);

static SETTINGS: OnceLock<Settings> = OnceLock::new();

/// Settings of both files together.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Settings {
    /// The share that `load` and `durability` use: //HOST[:PORT]/SHARE[/FOLDER].
    pub server: Option<String>,
    /// Names of the users, as `--user`.
    pub user: Option<String>,
    /// Their password, as `--password-file`.
    pub password_file: Option<PathBuf>,
    /// Their names and passwords, as `--users-file`.
    pub users_file: Option<PathBuf>,
    /// Prometheus endpoints of the server, as `--metrics`.
    pub metrics: Vec<String>,
    /// From which time in a row on the site's users notice that they wait, as `--noticed`.
    pub slow: Option<Slow>,
    /// Limits on response times of a capacity search, as `--max-response`.
    pub max_response: Vec<String>,
    /// Times of day: `local`, `utc` or an offset such as +02:00.
    pub time_zone: Option<Zone>,
    /// Folder of the baselines [default: $XDG_DATA_HOME/smbscope/baselines].
    pub baselines: Option<PathBuf>,
    /// The files that were read, and project files that were not, with the reason.
    #[serde(skip)]
    pub files: Vec<PathBuf>,
    #[serde(skip)]
    pub refused: Vec<String>,
}

/// A duration in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct Slow(pub Noticed);

impl TryFrom<String> for Slow {
    type Error = String;

    fn try_from(text: String) -> Result<Slow, String> {
        text.parse().map(Slow)
    }
}

/// Where times of day are read and shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub enum Zone {
    /// The zone of this machine.
    Local,
    /// A fixed one.
    Fixed(FixedOffset),
}

impl TryFrom<String> for Zone {
    type Error = String;

    fn try_from(text: String) -> Result<Zone, String> {
        match text.as_str() {
            "local" => Ok(Zone::Local),
            "utc" | "UTC" => Ok(Zone::Fixed(Utc.fix())),
            _ => text.parse().map(Zone::Fixed).map_err(|_| {
                format!("`{text}` is not a zone: expected local, utc or an offset such as +02:00")
            }),
        }
    }
}

/// The settings that were read, or none.
pub fn get() -> &'static Settings {
    static NONE: OnceLock<Settings> = OnceLock::new();
    SETTINGS.get().unwrap_or_else(|| NONE.get_or_init(Settings::default))
}

/// Reads the files, once and before the command runs.
///
/// # Errors
///
/// A file that cannot be read, or is not of this form.
pub fn load() -> anyhow::Result<()> {
    let settings = match std::env::var_os(VARIABLE) {
        Some(path) if path.is_empty() => Settings::default(),
        Some(path) => read(Path::new(&path))?,
        None => of_places(project().as_deref(), user().as_deref())?,
    };
    let _ = SETTINGS.set(settings);
    Ok(())
}

/// The settings of a project over those of a user.
fn of_places(project: Option<&Path>, user: Option<&Path>) -> anyhow::Result<Settings> {
    let mut settings = match user {
        Some(path) => read(path)?,
        None => Settings::default(),
    };
    if let Some(path) = project {
        match writable_by_others(path) {
            None => settings = read(path)?.over(settings),
            Some(why) => settings.refused.push(format!("{}: {why}", path.display())),
        }
    }
    Ok(settings)
}

impl Settings {
    /// These, and others where these say nothing.
    fn over(self, mut others: Settings) -> Settings {
        // A logon is whole: a password of one file is not that of the users of another.
        let logon =
            if self.user.is_some() || self.password_file.is_some() || self.users_file.is_some() {
                (self.user, self.password_file, self.users_file)
            } else {
                (others.user, others.password_file, others.users_file)
            };
        let several = |own: Vec<String>, other| if own.is_empty() { other } else { own };
        others.files.extend(self.files);
        Settings {
            server: self.server.or(others.server),
            user: logon.0,
            password_file: logon.1,
            users_file: logon.2,
            metrics: several(self.metrics, others.metrics),
            slow: self.slow.or(others.slow),
            max_response: several(self.max_response, others.max_response),
            time_zone: self.time_zone.or(others.time_zone),
            baselines: self.baselines.or(others.baselines),
            files: others.files,
            refused: others.refused,
        }
    }

    /// The value of `--noticed`.
    pub fn noticed(&self, option: Option<Noticed>) -> Noticed {
        option.or(self.slow.map(|slow| slow.0)).unwrap_or(NOTICED)
    }

    /// The limits of a capacity search.
    ///
    /// # Errors
    ///
    /// A text that is not a limit.
    pub fn limits(&self) -> anyhow::Result<Vec<Limit>> {
        let parse = |text: &String| {
            text.parse().map_err(|error| Failure::usage(format!("{NAME}: max-response: {error}")))
        };
        self.max_response.iter().map(parse).collect()
    }

    /// The zone of times of day, unless it is that of this machine.
    pub fn zone(&self, utc: bool) -> Option<FixedOffset> {
        match self.time_zone {
            _ if utc => Some(Utc.fix()),
            Some(Zone::Fixed(zone)) => Some(zone),
            Some(Zone::Local) | None => None,
        }
    }

    /// The folder of a baseline; none for what is not a plain name.
    pub fn baseline(&self, name: &str) -> Option<PathBuf> {
        let is_plain = |c: char| c.is_alphanumeric() || "-_.".contains(c);
        if name.is_empty() || name.starts_with(['.', '-']) || !name.chars().all(is_plain) {
            return None;
        }
        let own = || Some(home_folder("XDG_DATA_HOME", ".local/share")?.join("smbscope/baselines"));
        Some(self.baselines.clone().or_else(own)?.join(name))
    }

    /// What an input means: a path, or the name of a baseline if there is no such path.
    pub fn input(&self, input: &str) -> String {
        if input == "-" || Path::new(input).exists() {
            return input.to_owned();
        }
        let found = self.baseline(input).filter(|folder| folder.is_dir());
        found.map_or_else(|| input.to_owned(), |folder| folder.display().to_string())
    }

    /// What is set, for people.
    pub fn summary(&self) -> String {
        let path = |path: &PathBuf| path.display().to_string();
        let zone = self.time_zone.map(|zone| match zone {
            Zone::Local => "local".to_owned(),
            Zone::Fixed(zone) => zone.to_string(),
        });
        let slow = self.slow.map(|slow| smbscope_report::format::duration(slow.0.0));
        let list = |list: &Vec<String>| Some(list.join(" ")).filter(|text| !text.is_empty());
        let all = [
            ("server", self.server.clone()),
            ("user", self.user.clone()),
            ("password-file", self.password_file.as_ref().map(path)),
            ("users-file", self.users_file.as_ref().map(path)),
            ("metrics", list(&self.metrics)),
            ("slow", slow),
            ("max-response", list(&self.max_response)),
            ("time-zone", zone),
            ("baselines", self.baselines.as_ref().map(path)),
        ];
        let all = all.into_iter().filter_map(|(name, value)| Some(format!("{name} {}", value?)));
        all.collect::<Vec<_>>().join(", ")
    }
}

/// The project's file: in the working folder, or in the closest folder above it.
fn project() -> Option<PathBuf> {
    let folder = std::env::current_dir().ok()?;
    let mut paths = folder.ancestors().map(|folder| folder.join(NAME));
    paths.find(|path| path.is_file())
}

/// The user's file.
fn user() -> Option<PathBuf> {
    let path = home_folder("XDG_CONFIG_HOME", ".config")?.join("smbscope").join(NAME);
    Some(path).filter(|path| path.is_file())
}

fn home_folder(variable: &str, below_home: &str) -> Option<PathBuf> {
    let absolute =
        |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    absolute(variable).or_else(|| Some(absolute("HOME")?.join(below_home)))
}

/// Why a file of a project is not to be trusted.
#[cfg(unix)]
fn writable_by_others(path: &Path) -> Option<&'static str> {
    use std::os::unix::fs::MetadataExt as _;
    let Ok(file) = fs::metadata(path) else { return None };
    let owner = file.uid();
    if owner != 0 && owner != rustix::process::geteuid().as_raw() {
        return Some("it belongs to another user");
    }
    (file.mode() & 0o002 != 0).then_some("every user may write it")
}

#[cfg(not(unix))]
fn writable_by_others(_: &Path) -> Option<&'static str> {
    None
}

fn read(path: &Path) -> anyhow::Result<Settings> {
    let shown = path.display();
    let unreadable = || Failure::new(Code::Input, format!("{shown}: the settings cannot be read"));
    if fs::metadata(path).with_context(unreadable)?.len() > BYTES_MAX {
        return Err(Failure::usage(format!("{shown}: too long for a file of settings")));
    }
    let text = fs::read_to_string(path).with_context(unreadable)?;
    let mut settings: Settings =
        toml::from_str(&text).map_err(|error| Failure::usage(format!("{shown}: {error}")))?;
    let folder = path.parent().unwrap_or(Path::new(""));
    let paths = [&mut settings.password_file, &mut settings.users_file, &mut settings.baselines];
    for one in paths.into_iter().flatten() {
        *one = folder.join(&*one);
    }
    settings.files = vec![path.to_owned()];
    Ok(settings)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(folder: &Path, text: &str) -> PathBuf {
        fs::create_dir_all(folder).unwrap();
        let path = folder.join(NAME);
        fs::write(&path, text).unwrap();
        path
    }

    #[test]
    fn a_project_comes_before_its_user() {
        let folder = tempfile::tempdir().unwrap();
        let user = file(
            &folder.path().join("user"),
            "server = '//a/x'\nuser = 'eva'\npassword-file = 'secret'\nslow = '2s'\ntime-zone = 'utc'\n",
        );
        let project = file(
            &folder.path().join("project"),
            "server = '//b/y'\nusers-file = '/etc/users'\nslow = '300ms'\nmax-response = ['p95<2s']\n",
        );
        let both = of_places(Some(&project), Some(&user)).unwrap();
        assert_eq!(both.server.as_deref(), Some("//b/y"));
        assert_eq!((both.user, both.password_file), (None, None));
        assert_eq!(both.users_file.as_deref(), Some(Path::new("/etc/users")));
        assert_eq!(both.max_response, ["p95<2s"]);
        assert_eq!(both.files, [user.clone(), project]);
        let own = of_places(None, Some(&user)).unwrap();
        assert_eq!(own.password_file, Some(folder.path().join("user/secret")));
        assert_eq!(own.noticed(None), Noticed(2_000_000_000));
        assert_eq!(own.noticed(Some(Noticed(5))), Noticed(5));
        assert_eq!(own.zone(false), Some(Utc.fix()));
        assert!(own.summary().starts_with("server //a/x, user eva"), "{}", own.summary());
        assert_eq!(of_places(None, None).unwrap(), Settings::default());
    }

    #[test]
    fn what_is_not_a_setting_is_an_error_with_its_place() {
        let folder = tempfile::tempdir().unwrap();
        for (text, wanted) in [
            ("sever = '//a/x'", "unknown field `sever`"),
            ("slow = 'soon'", "soon"),
            ("time-zone = 'Mars'", "`Mars` is not a zone"),
            ("server = 3", "invalid type"),
            ("server", "smbscope.toml"),
        ] {
            let path = file(folder.path(), text);
            let error = format!("{:#}", read(&path).unwrap_err());
            assert!(error.contains(wanted) && error.contains("smbscope.toml"), "{text}: {error}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_project_that_everybody_may_write_is_not_believed() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().unwrap();
        let path = file(folder.path(), "server = '//evil/x'");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o666)).unwrap();
        let settings = of_places(Some(&path), None).unwrap();
        assert_eq!(settings.server, None);
        assert!(settings.refused[0].contains("every user may write it"), "{settings:?}");
    }

    #[test]
    fn a_name_is_a_baseline_and_a_path_is_a_path() {
        let folder = tempfile::tempdir().unwrap();
        let baselines = Some(folder.path().to_owned());
        let settings = Settings { baselines, ..Settings::default() };
        fs::create_dir(folder.path().join("last-week")).unwrap();
        let found = folder.path().join("last-week").display().to_string();
        assert_eq!(settings.input("last-week"), found);
        for other in ["next-week", "./last-week", "../x", "-", "..", "", "/etc"] {
            assert_eq!(settings.input(other), other);
        }
        assert_eq!(settings.baseline("../x"), None);
    }
}
