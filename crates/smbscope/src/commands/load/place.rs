//! Options that say which share, and who logs on how: shared by runs, `prepare` and `clean`.
//!
//! Owns where credentials come from (prompt, file, environment, lab, keytab). No password is ever
//! on the command line or in an output.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context as _;
use clap::{Args, ValueEnum};
use smbscope_client::kerberos::kdc::{KdcAddress, KdcAddressError};
use smbscope_client::kerberos::keytab::Keytab;
use smbscope_client::kerberos::krb5_conf::Krb5Conf;
use smbscope_client::{Kerberos, Target};
use smbscope_load::run::users::Credentials;

use crate::exit::{Code, Failure};

/// Which share, and who logs on.
#[derive(Debug, Args)]
pub struct Where {
    /// The share: //HOST[:PORT]/SHARE[/FOLDER]. Each user has a folder of their own below it.
    #[arg(value_name = "TARGET", required_unless_present = "lab")]
    pub target: Option<String>,
    /// Take share, users and password from a lab (`smbscope lab up`); the default one, or the one in
    /// DIR. With --auth kerberos only the share.
    #[arg(long, value_name = "DIR", num_args = 0..=1, conflicts_with = "target")]
    #[allow(clippy::option_option)]
    pub lab: Option<Option<PathBuf>>,
    #[command(flatten)]
    pub logon: Logon,
}

/// Who logs on.
#[derive(Debug, Args)]
#[command(next_help_heading = "Users")]
pub struct Logon {
    /// Name of the users, with {} or {:05} where their number goes; DOMAIN\\name or name@domain.
    #[arg(long, value_name = "PATTERN", default_value = "user{:05}")]
    pub user: String,
    /// File whose first line is the password of all users. Without it: $SMBSCOPE_PASSWORD, else it is
    /// asked for.
    #[arg(long, value_name = "FILE")]
    pub password_file: Option<PathBuf>,
    /// File with a line NAME:PASSWORD for each user.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["user", "password_file"])]
    pub users_file: Option<PathBuf>,
    /// How users log on. Without it ntlm, with --keytab kerberos.
    #[arg(long, value_enum, value_name = "HOW")]
    pub auth: Option<Auth>,
    /// Keytab (MIT's format) with the users' Kerberos keys, instead of passwords.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["users_file", "password_file"])]
    pub keytab: Option<PathBuf>,
    /// Kerberos realm of all users. Without it: that of name@REALM, else the default realm of
    /// krb5.conf ($KRB5_CONFIG, /etc/krb5.conf).
    #[arg(long, value_name = "REALM")]
    pub realm: Option<String>,
    /// Where the realm's KDC is (TCP, port 88); several are asked in turn. Without it: the realm's kdc
    /// lines in krb5.conf.
    #[arg(long, value_name = "HOST[:PORT]", value_parser = kdc)]
    pub kdc: Vec<KdcAddress>,
    /// Service that the Kerberos tickets are for. Without it: cifs/HOST, with HOST as in TARGET.
    #[arg(long, value_name = "SERVICE/HOST", value_parser = service)]
    pub spn: Option<String>,
}

/// How users log on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Auth {
    /// NTLM (MS-NLMP).
    Ntlm,
    /// Kerberos (RFC 4120).
    Kerberos,
}

/// Which share, who logs on, and by which tickets.
#[derive(Clone)]
pub struct Place {
    pub target: Target,
    pub credentials: Credentials,
    /// `None`: by NTLM.
    pub kerberos: Option<Arc<Kerberos>>,
    /// The line before a lab, as `smbscope wan` takes it (`rtt=20ms,rate=45mbit`).
    pub line: Option<String>,
    /// The lab's smbd: another Samba on this machine is not what is measured.
    pub smbd: Option<u32>,
}

fn kdc(text: &str) -> Result<KdcAddress, KdcAddressError> {
    KdcAddress::parse(text)
}

fn service(text: &str) -> Result<String, String> {
    match text.split_once('/') {
        Some((service, host)) if !service.is_empty() && !host.is_empty() => Ok(text.to_owned()),
        _ => Err("write SERVICE/HOST, as cifs/fs.example".into()),
    }
}

impl Where {
    /// What the options say.
    pub fn resolve(&self) -> anyhow::Result<Place> {
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
        let Some(target) = &self.target else {
            return Err(Failure::usage("no share: write //HOST/SHARE, or --lab"));
        };
        let target = Target::parse(target).map_err(|error| Failure::usage(error.to_string()))?;
        let credentials = self.logon.credentials(kerberos.as_deref())?;
        Ok(Place { target, credentials, kerberos, line: None, smbd: None })
    }
}

/// What a running lab says of itself.
#[cfg(target_os = "linux")]
fn lab(dir: Option<&Path>) -> anyhow::Result<Place> {
    use smbscope_lab::{Lab, State, USER_PATTERN, default_dir};
    let dir = dir.map_or_else(default_dir, Path::to_owned);
    let input = |message: String| anyhow::Error::from(Failure::new(Code::Input, message));
    let status = Lab::status(&dir).map_err(|error| input(error.to_string()))?;
    if status.state != State::Running {
        return Err(input(format!(
            "{}: the lab does not run; start it with `smbscope lab up`",
            dir.display()
        )));
    }
    let record = status.record;
    let password = Lab::password(&dir).map_err(|error| input(error.to_string()))?;
    let target = Target {
        host: record.address.to_string(),
        port: record.port,
        share: record.share.clone(),
        folder: String::new(),
    };
    let credentials = Credentials::pattern(USER_PATTERN, &password)?;
    let smbd = record.smbd_pid().and_then(|pid| u32::try_from(pid).ok());
    let line = record.line.map(|line| line.options);
    Ok(Place { target, credentials, kerberos: None, line, smbd })
}

impl Logon {
    /// How to get tickets; `None` when NTLM is meant.
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
                    Err(Failure::usage(format!("{name} is Kerberos': add --auth kerberos")))
                }
                None => Ok(None),
            };
        }
        let keytab = match &self.keytab {
            Some(path) => Some(Arc::new(
                Keytab::read(path).map_err(|error| Failure::new(Code::Input, error.to_string()))?,
            )),
            None => None,
        };
        Ok(Some(Kerberos {
            realm: self.realm.clone(),
            kdcs: self.kdc.clone(),
            service: self.spn.clone(),
            keytab,
            conf: Krb5Conf::of_environment(),
        }))
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
        let input = |message: String| Failure::new(Code::Input, message);
        if let Some(path) = &self.users_file {
            let shown = path.display();
            let text = std::fs::read_to_string(path)
                .with_context(|| input(format!("{shown}: cannot be read")))?;
            return Credentials::list(&text)
                .map_err(|error| input(format!("{shown}: {error}")).into());
        }
        let password = match &self.password_file {
            _ if self.keytab.is_some() => String::new(),
            Some(path) => {
                let shown = path.display();
                let text = std::fs::read_to_string(path)
                    .with_context(|| input(format!("{shown}: cannot be read")))?;
                text.lines().next().unwrap_or_default().to_owned()
            }
            None => match std::env::var("SMBSCOPE_PASSWORD") {
                Ok(password) => password,
                Err(_) => rpassword::prompt_password(format!("Password of {}: ", self.user))
                    .with_context(|| {
                        Failure::new(
                            Code::Usage,
                            "no password: give --password-file, --users-file or $SMBSCOPE_PASSWORD",
                        )
                    })?,
            },
        };
        Credentials::pattern(&self.user, &password)
            .map_err(|error| Failure::usage(error.to_string()))
    }
}
