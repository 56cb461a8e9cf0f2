//! Options of `smbscope lab`, and their conversion to [`smbscope_lab::Options`].

use std::path::{Path, PathBuf};
use std::str::FromStr;

use anyhow::Context as _;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, Subcommand};
use smbscope_lab::wan;
use smbscope_lab::{
    Cipher, Dialect, Encryption, Line, NAMESPACES, Options, Signing, SigningAlgorithm, USERS_MAX,
    default_dir, parse_setting,
};

use crate::exit::{Code, Failure};
use crate::format::TextFormat;

/// Run a private Samba server for experiments.
///
/// A lab is a separate Samba server on a loopback port. Its configuration, accounts, state and
/// share are in one folder. It runs as root or as an ordinary user, independently of the system's
/// Samba, which it neither reads nor changes, until `lab down` removes it. smbscope's own tests use
/// labs.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  smbscope lab up
  smbscope lab status
  smbscope load prepare --lab
  smbscope lab down")]
pub struct Lab {
    /// What to do.
    #[command(subcommand)]
    pub command: LabCommand,
}

/// What to do with labs. The help texts are those of the structs.
#[derive(Debug, Subcommand)]
pub enum LabCommand {
    Up(Box<Up>),
    Down(Down),
    Status(Status),
    Conf(Conf),
}

/// The lab's folder.
#[derive(Debug, Args)]
pub struct Folder {
    /// Folder of the lab [default: $XDG_RUNTIME_DIR/smbscope-lab or /tmp/smbscope-lab-UID].
    #[arg(long, value_name = "DIR")]
    pub dir: Option<PathBuf>,
}

impl Folder {
    /// The folder given, or the default.
    pub fn path(&self) -> PathBuf {
        self.dir.clone().unwrap_or_else(default_dir)
    }
}

/// Start a lab, wait until it answers, and show how to reach it.
///
/// The users are named user00001, user00002 ... and have the same random password, which is stored
/// in a file that only you can read. They all use one share with the rights of one system user:
/// yours, or the user `nobody` if you are root. Settings without an option keep Samba's defaults.
/// The lab keeps running when the terminal is closed.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  smbscope lab up
  smbscope lab up --users 1000 --signing required --signing-algorithms aes-gmac
  smbscope lab up --dir /srv/lab --port 4455 --encrypt required --ciphers aes-256-gcm
  smbscope lab up --min-dialect 2.1 --max-dialect 2.1 --leases off
  smbscope lab up --set 'strict sync = no' --set 'smbd profiling level = on'
  sudo smbscope lab up --wan rtt=20ms,rate=45mbit
  scripts/samba-4.22.sh ~/samba-4.22 &&
    smbscope lab up --samba ~/samba-4.22 --directory-leases on")]
pub struct Up {
    #[command(flatten)]
    pub folder: Folder,
    /// The smbd to run, or a folder with bin/smbd or sbin/smbd in it [default: the installed smbd].
    #[arg(long, value_name = "PATH")]
    pub samba: Option<PathBuf>,
    /// TCP port on 127.0.0.1 [default: the first free port from 4450], or with --wan on 10.45.0.2
    /// [default: 445].
    #[arg(long, value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..))]
    pub port: Option<u16>,
    /// Emulate a WAN link between clients and lab (root only): server and clients are in separate
    /// network namespaces, connected by a `smbscope wan` in the background. The value lists its
    /// options, for example rtt=20ms,rate=20mbit/100mbit (docs/method/wan.md).
    #[arg(long, value_name = "OPTION=VALUE,...")]
    pub wan: Option<String>,
    /// Prefix for the names of the network namespaces of --wan.
    #[arg(long, value_name = "NAME", default_value = NAMESPACES, requires = "wan")]
    pub netns: String,
    /// Name of the share.
    #[arg(long, value_name = "NAME", default_value = "home")]
    pub share: String,
    /// Samba's log level; 3 logs each request.
    #[arg(long, value_name = "0-10", default_value_t = 1,
          value_parser = clap::value_parser!(u8).range(0..=10), hide_possible_values = true)]
    pub log_level: u8,
    /// Add this line to smb.conf, for the server and as a default for the share; can be repeated.
    /// Paths and ports are set by the lab and cannot be changed.
    #[arg(long, value_name = "NAME = VALUE")]
    pub set: Vec<String>,
    /// Output format.
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t)]
    pub format: TextFormat,
    #[command(flatten)]
    pub users: Users,
    #[command(flatten)]
    pub protocol: Protocol,
}

/// Users and their password.
#[derive(Debug, Args)]
#[command(next_help_heading = "User options")]
pub struct Users {
    /// Number of users. Each user adds 0.7 µs to the logons of the users after it.
    #[arg(long, value_name = "N", default_value_t = 100,
          value_parser = clap::value_parser!(u32).range(1..=i64::from(USERS_MAX)))]
    pub users: u32,
    /// System user whose rights the users get (root only) [default: `nobody` for root, else
    /// yourself].
    #[arg(long, value_name = "USER")]
    pub owner: Option<String>,
    /// Read the password from the first line of this file instead of generating one.
    #[arg(long, value_name = "FILE")]
    pub password_file: Option<PathBuf>,
    /// Also show the password. It stays visible in the terminal: prefer the file.
    #[arg(long)]
    pub show_password: bool,
}

/// What the server offers and demands.
#[derive(Debug, Args)]
#[command(next_help_heading = "Protocol options")]
pub struct Protocol {
    /// Signing of messages. `off` affects SMB1 only: SMB2 clients that ask for signing still get
    /// it.
    #[arg(long, value_name = "MODE", default_value = "auto", value_parser = choice::<Signing>(Signing::NAMES))]
    pub signing: Signing,
    /// Signing algorithms that the server offers, in order of preference.
    #[arg(long, value_name = "A,B,...", value_delimiter = ',', value_parser = choice::<SigningAlgorithm>(SigningAlgorithm::NAMES))]
    pub signing_algorithms: Vec<SigningAlgorithm>,
    /// Encryption of messages.
    #[arg(long, value_name = "MODE", default_value = "off", value_parser = choice::<Encryption>(Encryption::NAMES))]
    pub encrypt: Encryption,
    /// Ciphers that the server offers, in order of preference.
    #[arg(long, value_name = "A,B,...", value_delimiter = ',', value_parser = choice::<Cipher>(Cipher::NAMES))]
    pub ciphers: Vec<Cipher>,
    /// Oldest dialect that the server accepts.
    #[arg(long, value_name = "DIALECT", default_value = "2.0.2", value_parser = choice::<Dialect>(Dialect::NAMES))]
    pub min_dialect: Dialect,
    /// Newest dialect that the server accepts.
    #[arg(long, value_name = "DIALECT", default_value = "3.1.1", value_parser = choice::<Dialect>(Dialect::NAMES))]
    pub max_dialect: Dialect,
    /// Grant oplocks.
    #[arg(long, value_name = "ON|OFF", value_parser = on_off())]
    pub oplocks: Option<bool>,
    /// Grant leases on files.
    #[arg(long, value_name = "ON|OFF", value_parser = on_off())]
    pub leases: Option<bool>,
    /// Grant leases on directories (Samba 4.22 or later, where this is the default).
    #[arg(long, value_name = "ON|OFF", value_parser = on_off())]
    pub directory_leases: Option<bool>,
    /// Allow several connections per session (SMB3 multichannel).
    #[arg(long, value_name = "ON|OFF", value_parser = on_off())]
    pub multichannel: Option<bool>,
    /// Grant durable handles.
    #[arg(long, value_name = "ON|OFF", value_parser = on_off())]
    pub durable: Option<bool>,
    /// Let smbd read and write files asynchronously, in separate threads.
    #[arg(long, value_name = "ON|OFF", value_parser = on_off())]
    pub aio: Option<bool>,
    /// Refuse connections beyond this number [default: no limit].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub max_connections: Option<u32>,
}

/// Stop a lab and remove its files.
///
/// Stops the lab's processes and removes its configuration, accounts and state, all files in its
/// share, the network namespaces of --wan, and the folder if the lab created it. Files that other
/// programs put into the folder are kept. This also works if the lab's smbd was killed.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  smbscope lab down
  smbscope lab down --dir /srv/lab")]
pub struct Down {
    #[command(flatten)]
    pub folder: Folder,
}

/// List labs with their state, address and Samba version.
///
/// Lists all running labs whose folders you can read, also those of other users, and the lab in
/// your default folder even if its smbd has ended.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  smbscope lab status
  smbscope lab status --dir /srv/lab --format json | jq .labs[0].state")]
pub struct Status {
    #[command(flatten)]
    pub folder: Folder,
    /// Output format.
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t)]
    pub format: TextFormat,
}

/// Show the smb.conf of a lab.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  smbscope lab conf | grep signing")]
pub struct Conf {
    #[command(flatten)]
    pub folder: Folder,
}

impl Up {
    /// The options in the library's form.
    pub fn options(&self) -> anyhow::Result<Options> {
        let set: Result<Vec<_>, _> = self.set.iter().map(|text| parse_setting(text)).collect();
        let password = self.users.password_file.as_deref().map(read_password).transpose()?;
        Ok(Options {
            samba: self.samba.clone(),
            dir: Some(self.folder.path()),
            port: self.port,
            share: self.share.clone(),
            users: self.users.users,
            owner: self.users.owner.clone(),
            password,
            signing: self.protocol.signing,
            signing_algorithms: self.protocol.signing_algorithms.clone(),
            encryption: self.protocol.encrypt,
            ciphers: self.protocol.ciphers.clone(),
            dialect_min: self.protocol.min_dialect,
            dialect_max: self.protocol.max_dialect,
            oplocks: self.protocol.oplocks,
            leases: self.protocol.leases,
            directory_leases: self.protocol.directory_leases,
            multichannel: self.protocol.multichannel,
            durable: self.protocol.durable,
            aio: self.protocol.aio,
            connections_most: self.protocol.max_connections,
            log_level: self.log_level,
            set: set?,
            line: self.line()?,
            ..Options::default()
        })
    }
}

impl Up {
    /// The emulated link, which runs as another process of this program.
    fn line(&self) -> anyhow::Result<Option<Line>> {
        let Some(text) = &self.wan else { return Ok(None) };
        let options: wan::Options =
            text.parse().map_err(|error| Failure::usage(format!("--wan {text}: {error}")))?;
        let mut forwarder = vec![std::env::current_exe()?.into_os_string(), "wan".into()];
        forwarder.extend(wan::netns::ENDS.map(Into::into));
        // The keys of the text are the options of `smbscope wan`.
        forwarder.extend(options.to_string().split(',').map(|word| format!("--{word}").into()));
        Ok(Some(Line { options, name: self.netns.clone(), forwarder }))
    }
}

fn read_password(path: &Path) -> anyhow::Result<String> {
    let text = std::fs::read_to_string(path).with_context(|| {
        Failure::new(Code::Input, format!("{}: cannot read the password", path.display()))
    })?;
    Ok(text.lines().next().unwrap_or_default().to_owned())
}

/// Parses one of the names of a type of the library.
fn choice<T>(names: &'static [&'static str]) -> impl TypedValueParser<Value = T>
where
    T: FromStr<Err = String> + Clone + Send + Sync + 'static,
{
    PossibleValuesParser::new(names).try_map(|name| name.parse::<T>().map_err(anyhow::Error::msg))
}

fn on_off() -> impl TypedValueParser<Value = bool> {
    PossibleValuesParser::new(["on", "off"]).map(|word| word == "on")
}
