//! Options for the share and the logon, used by load runs, `prepare` and `clean`.
//!
//! Owns the sources of credentials (prompt, file, environment, lab, keytab). Passwords never appear
//! on the command line or in an output.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use clap::{Args, ValueEnum};
use smbscope_client::dfs::follow;
use smbscope_client::kerberos::kdc::{KdcAddress, KdcAddressError};
#[cfg(feature = "kerberos")]
use smbscope_client::kerberos::{keytab::Keytab, krb5_conf::Krb5Conf};
use smbscope_client::{Config, Kerberos, Target};
use smbscope_load::run::users::Credentials;
use zeroize::Zeroizing;

use crate::exit::{Code, Failure};
use crate::options::Verbosity;
use crate::pipeline::measure::{runtime, unless_interrupted};
use crate::settings;

/// Names of users without `--user`.
const USER_PATTERN: &str = "user{:05}";

/// The share, and how users log on.
#[derive(Debug, Args)]
pub struct Where {
    /// Share to use: //HOST[:PORT]/SHARE[/FOLDER]. Simulated users have separate folders in it. DFS links in
    /// FOLDER are followed [default: `server` in smbscope.toml].
    #[arg(value_name = "TARGET")]
    pub target: Option<String>,
    /// Use share, users and password of a lab (`smbscope lab up`) instead of TARGET: of the lab in
    /// DIR, or of the default lab. With --auth kerberos only the share is used.
    #[arg(long, value_name = "DIR", num_args = 0..=1, conflicts_with = "target")]
    #[allow(clippy::option_option)]
    pub lab: Option<Option<PathBuf>>,
    #[command(flatten)]
    pub logon: Logon,
}

/// How users log on.
#[derive(Debug, Args)]
#[command(next_help_heading = "Logon options")]
pub struct Logon {
    /// Names of the users: {} or {:05} is replaced with the number of the user. A domain can be
    /// given as DOMAIN\name or name@domain [default: `user` in smbscope.toml, or user{:05}].
    #[arg(long, value_name = "PATTERN")]
    pub user: Option<String>,
    /// Read the password of all users from the first line of this file [default:
    /// $SMBSCOPE_PASSWORD, `password-file` in smbscope.toml, or a prompt].
    #[arg(long, value_name = "FILE")]
    pub password_file: Option<PathBuf>,
    /// Read users from this file: one line NAME:PASSWORD per user.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["user", "password_file"])]
    pub users_file: Option<PathBuf>,
    /// Authentication method [default: ntlm, or kerberos with --keytab].
    #[arg(long, value_enum, value_name = "METHOD")]
    pub auth: Option<Auth>,
    /// Keytab (MIT format) with the users' Kerberos keys, used instead of passwords.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["users_file", "password_file"])]
    pub keytab: Option<PathBuf>,
    /// Kerberos realm of all users [default: the realm in name@REALM, or the default realm of
    /// krb5.conf ($KRB5_CONFIG or /etc/krb5.conf)].
    #[arg(long, value_name = "REALM")]
    pub realm: Option<String>,
    /// Address of the realm's KDC (TCP, port 88); can be repeated, the first that answers is used
    /// [default: the kdc lines of the realm in krb5.conf].
    #[arg(long, value_name = "HOST[:PORT]", value_parser = kdc)]
    pub kdc: Vec<KdcAddress>,
    /// Service principal to request tickets for [default: cifs/HOST, with HOST from TARGET].
    #[arg(long, value_name = "SERVICE/HOST", value_parser = service)]
    pub spn: Option<String>,
}

/// Authentication methods.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Auth {
    /// NTLM (MS-NLMP).
    Ntlm,
    /// Kerberos (RFC 4120).
    Kerberos,
}

/// The share and the credentials of its users.
#[derive(Clone)]
pub struct Destination {
    pub target: Target,
    pub credentials: Credentials,
    /// How to get Kerberos tickets; `None` for NTLM.
    pub kerberos: Option<Arc<Kerberos>>,
    /// The emulated link of a lab in the form of `lab up --wan` (`rtt=20ms,rate=45mbit`).
    pub line: Option<String>,
    /// The process of the lab's smbd, to distinguish it from other Sambas on this machine.
    pub smbd: Option<u32>,
    /// The file of a lab's logons.
    pub logons: Option<PathBuf>,
    /// The network namespace of a lab's clients.
    pub namespace: Option<String>,
}

fn kdc(text: &str) -> Result<KdcAddress, KdcAddressError> {
    KdcAddress::parse(text)
}

fn service(text: &str) -> Result<String, String> {
    match text.split_once('/') {
        Some((service, host)) if !service.is_empty() && !host.is_empty() => Ok(text.to_owned()),
        _ => Err("expected SERVICE/HOST, for example cifs/fs.example".into()),
    }
}

impl Destination {
    /// Follows the DFS links of the path, as the first user, and says where they lead.
    ///
    /// # Errors
    ///
    /// If no target of a link can be used.
    pub fn follow_links(
        &mut self,
        config: &Config,
        limit: Duration,
        verbosity: Verbosity,
    ) -> anyhow::Result<()> {
        if self.target.folder.is_empty() {
            return Ok(());
        }
        let (runtime, _) = runtime(1)?;
        let credential = self.credentials.of_user(1);
        let following = async { Ok(follow(limit, &self.target, config, &credential).await?) };
        let followed = runtime.block_on(unless_interrupted(following))?;
        if !followed.steps.is_empty() {
            verbosity.say(&followed.to_string());
        }
        self.target = followed.target;
        Ok(())
    }
}

/// A word of a shell's command line.
pub fn shell_word(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_./:=@%+,-".contains(c);
    if !text.is_empty() && text.chars().all(is_plain) {
        text.to_owned()
    } else {
        format!("'{}'", text.replace('\'', "'\\''"))
    }
}

impl Where {
    /// The words of a command line with the same share and the same logon.
    pub fn words(&self) -> Vec<String> {
        let mut words = Vec::new();
        let mut add = |option: &str, value: &str| {
            words.extend([option.to_owned(), shell_word(value)]);
        };
        let logon = &self.logon;
        let path = |path: &Path| path.display().to_string();
        if let Some(file) = &logon.users_file {
            add("--users-file", &path(file));
        } else if self.lab.is_none() && logon.users_file().is_none() {
            add("--user", logon.user());
        }
        for (option, file) in
            [("--password-file", &logon.password_file), ("--keytab", &logon.keytab)]
        {
            if let Some(file) = file {
                add(option, &path(file));
            }
        }
        if let Some(auth) = logon.auth.and_then(|auth| auth.to_possible_value()) {
            add("--auth", auth.get_name());
        }
        for (option, value) in [("--realm", &logon.realm), ("--spn", &logon.spn)] {
            if let Some(value) = value {
                add(option, value);
            }
        }
        for kdc in &logon.kdc {
            add("--kdc", &kdc.to_string());
        }
        match (&self.target, &self.lab) {
            (Some(target), _) => words.insert(0, shell_word(target)),
            (None, Some(Some(folder))) => add("--lab", &path(folder)),
            // Its value may be absent: last, before another option.
            (None, Some(None)) => words.push("--lab".to_owned()),
            (None, None) => {}
        }
        words
    }

    /// Evaluates the options.
    pub fn resolve(&self) -> anyhow::Result<Destination> {
        let kerberos = self.logon.kerberos()?.map(Arc::new);
        #[cfg(target_os = "linux")]
        if let Some(dir) = &self.lab {
            let mut place = lab(dir.as_deref())?;
            if let Some(kerberos) = kerberos {
                place.credentials = self.logon.credentials(Some(&kerberos))?;
                place.kerberos = Some(kerberos);
            }
            return Ok(place);
        }
        let Some(target) = self.target.as_ref().or(settings::get().server.as_ref()) else {
            return Err(Failure::usage(
                "no share given: add //HOST/SHARE or --lab, or set `server` in smbscope.toml",
            ));
        };
        let target = Target::parse(target).map_err(|error| Failure::usage(error.to_string()))?;
        let credentials = self.logon.credentials(kerberos.as_deref())?;
        Ok(Destination {
            target,
            credentials,
            kerberos,
            line: None,
            smbd: None,
            logons: None,
            namespace: None,
        })
    }
}

/// Where the share of a running lab is, without entering its network.
#[cfg(target_os = "linux")]
pub fn running_lab(dir: Option<&Path>) -> anyhow::Result<Destination> {
    use smbscope_lab::{Lab, State, default_dir};
    let dir = dir.map_or_else(default_dir, Path::to_owned);
    let status = Lab::status(&dir).map_err(|error| unusable(error.to_string()))?;
    if status.state != State::Running {
        return Err(unusable(format!(
            "{}: the lab is not running; start it with `smbscope lab up`",
            dir.display()
        )));
    }
    let record = status.record;
    let password = Lab::password(&dir).map_err(|error| unusable(error.to_string()))?;
    let target = Target {
        host: record.address.to_string(),
        port: record.port,
        share: record.share.clone(),
        folder: String::new(),
    };
    let credentials = Credentials::pattern(smbscope_lab::USER_PATTERN, &password)?;
    let smbd = record.smbd_pid().and_then(|pid| u32::try_from(pid).ok());
    let namespace = record.line.as_ref().map(|line| line.client());
    let line = record.line.map(|line| line.options);
    let logons = Some(Lab::logons(&dir));
    Ok(Destination { target, credentials, kerberos: None, line, smbd, logons, namespace })
}

/// There are no labs here.
#[cfg(not(target_os = "linux"))]
pub fn running_lab(_: Option<&Path>) -> anyhow::Result<Destination> {
    Err(Failure::usage("--lab: labs need Linux"))
}

fn unusable(message: String) -> anyhow::Error {
    Failure::new(Code::Input, message).into()
}

/// Share and credentials of a running lab, in whose network this process is from now on.
#[cfg(target_os = "linux")]
fn lab(dir: Option<&Path>) -> anyhow::Result<Destination> {
    let place = running_lab(dir)?;
    // Clients of a lab behind a line are in a network namespace; `ip netns exec` is not needed.
    if let Some(namespace) = &place.namespace {
        smbscope_lab::wan::netns::enter(namespace).map_err(|error| {
            unusable(format!("{error}; or run it as root, or with: ip netns exec {namespace} ..."))
        })?;
    }
    Ok(place)
}

impl Logon {
    /// Names of the users, where no file has them.
    pub fn user(&self) -> &str {
        let set = settings::get().user.as_deref();
        self.user.as_deref().or(set).unwrap_or(USER_PATTERN)
    }

    /// The file with names and passwords.
    pub fn users_file(&self) -> Option<&Path> {
        let is_given = self.user.is_some() || self.password_file.is_some() || self.keytab.is_some();
        let set = settings::get().users_file.as_deref().filter(|_| !is_given);
        self.users_file.as_deref().or(set)
    }

    /// How to get Kerberos tickets; `None` for NTLM.
    fn kerberos(&self) -> anyhow::Result<Option<Kerberos>> {
        let only = [
            ("--keytab", self.keytab.is_some()),
            ("--realm", self.realm.is_some()),
            ("--kdc", !self.kdc.is_empty()),
            ("--spn", self.spn.is_some()),
        ];
        let meant = self.auth.unwrap_or(match self.keytab {
            Some(_) => Auth::Kerberos,
            None => Auth::Ntlm,
        });
        if meant == Auth::Ntlm {
            return match only.iter().find(|(_, given)| *given) {
                Some((name, _)) => {
                    Err(Failure::usage(format!("{name} needs Kerberos: add --auth kerberos")))
                }
                None => Ok(None),
            };
        }
        #[cfg(not(feature = "kerberos"))]
        {
            Err(Failure::usage(crate::commands::left_out("this build has no Kerberos")))
        }
        #[cfg(feature = "kerberos")]
        self.tickets().map(Some)
    }

    #[cfg(feature = "kerberos")]
    fn tickets(&self) -> anyhow::Result<Kerberos> {
        let keytab = match &self.keytab {
            Some(path) => Some(Arc::new(
                Keytab::read(path).map_err(|error| Failure::new(Code::Input, error.to_string()))?,
            )),
            None => None,
        };
        Ok(Kerberos {
            realm: self.realm.clone(),
            kdcs: self.kdc.clone(),
            service: self.spn.clone(),
            keytab,
            conf: Krb5Conf::of_environment(),
        })
    }

    fn credentials(&self, kerberos: Option<&Kerberos>) -> anyhow::Result<Credentials> {
        let credentials = self.secrets()?;
        let realm = kerberos.and_then(Kerberos::common_realm);
        Ok(match realm {
            Some(realm) => credentials.in_domain(&realm),
            None => credentials,
        })
    }

    fn secrets(&self) -> anyhow::Result<Credentials> {
        #[cfg(target_os = "linux")]
        crate::capabilities::keep_memory_private();
        let input = |message: String| Failure::new(Code::Input, message);
        if let Some(path) = self.users_file() {
            let shown = path.display();
            let text = std::fs::read_to_string(path)
                .with_context(|| input(format!("{shown}: cannot read the file")))?;
            let text = Zeroizing::new(text);
            return Credentials::list(&text)
                .map_err(|error| input(format!("{shown}: {error}")).into());
        }
        let set = settings::get().password_file.as_ref();
        let of_environment = std::env::var("SMBSCOPE_PASSWORD");
        let file = self.password_file.as_ref().or(set.filter(|_| of_environment.is_err()));
        let password = Zeroizing::new(match file {
            _ if self.keytab.is_some() => String::new(),
            Some(path) => {
                let shown = path.display();
                let text = std::fs::read_to_string(path)
                    .with_context(|| input(format!("{shown}: cannot read the file")))?;
                Zeroizing::new(text).lines().next().unwrap_or_default().to_owned()
            }
            None => match of_environment {
                Ok(password) => password,
                Err(_) => rpassword::prompt_password(format!("Password of {}: ", self.user()))
                    .map_err(|_| {
                        Failure::usage(format!(
                            "no password of {} is given, and there is no terminal to ask for it: use --password-file FILE, \
                             --users-file FILE or the variable SMBSCOPE_PASSWORD",
                            self.user()
                        ))
                    })?,
            },
        });
        Credentials::pattern(self.user(), &password)
            .map_err(|error| Failure::usage(error.to_string()))
    }
}
