//! Options of `smbscope lab`, and what they are in [`smbscope_lab::Options`].

use std::path::{Path, PathBuf};
use std::str::FromStr;

use anyhow::Context as _;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, Subcommand};
use smbscope_lab::wan;
use smbscope_lab::{
    Cipher, Dialect, Encryption, Line, NAMESPACES, Options, Signing, SigningAlgorithm, USERS_MOST,
    default_dir, parse_setting,
};

use crate::exit::{Code, Failure};
use crate::format::TextFormat;

/// Run a private Samba to try things on.
///
/// A lab is a Samba server of its own on a loopback port, with its own configuration, accounts,
/// state and share in one folder. It runs beside the system's Samba, of which it neither reads nor
/// changes anything, as root or as an ordinary user, until `lab down` removes all of it. It is what
/// smbscope's own tests use.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  smbscope lab up
  smbscope lab status
  smbscope lab down")]
pub struct Lab {
    /// What to do.
    #[command(subcommand)]
    pub command: LabCommand,
}

/// What to do with labs. Help is that of the structs.
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
    /// The lab's folder. Without it: $XDG_RUNTIME_DIR/smbscope-lab, or /tmp/smbscope-lab-UID.
    #[arg(long, value_name = "DIR")]
    pub dir: Option<PathBuf>,
}

impl Folder {
    /// The folder that is meant.
    pub fn path(&self) -> PathBuf {
        self.dir.clone().unwrap_or_else(default_dir)
    }
}

/// Start a lab, wait until it answers, tell how to reach it.
///
/// Users are called user00001, user00002 ... and have one password, which is random and lies in a
/// file that only you can read. All work in one share with the rights of one system user: yours, or
/// for root those of nobody. What is not asked for is Samba's default. The lab goes on when the
/// terminal is closed.
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
    /// smbd, or a folder with bin/smbd or sbin/smbd in it; the system's without.
    #[arg(long, value_name = "PATH")]
    pub samba: Option<PathBuf>,
    /// TCP port on 127.0.0.1; without, a free one from 4450 on. Behind a line: on 10.45.0.2, 445.
    #[arg(long, value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..))]
    pub port: Option<u16>,
    /// Put a line with distance before the lab (root only): server and clients are in network
    /// namespaces of their own, joined by a `smbscope wan` in the background. Its options, as
    /// rtt=20ms,rate=20mbit/100mbit (docs/wan.md).
    #[arg(long, value_name = "LINE")]
    pub wan: Option<String>,
    /// With --wan: what the namespaces' names begin with.
    #[arg(long, value_name = "NAME", default_value = NAMESPACES, requires = "wan")]
    pub netns: String,
    /// Name of the share.
    #[arg(long, value_name = "NAME", default_value = "home")]
    pub share: String,
    /// Samba's log level; 3 tells of each request.
    #[arg(long, value_name = "0-10", default_value_t = 1,
          value_parser = clap::value_parser!(u8).range(0..=10), hide_possible_values = true)]
    pub log_level: u8,
    /// A further line of smb.conf, for the server and as the share's default; repeatable. Lines that
    /// hold paths or ports are the lab's own.
    #[arg(long, value_name = "NAME = VALUE")]
    pub set: Vec<String>,
    /// Form of what is told.
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t)]
    pub format: TextFormat,
    #[command(flatten)]
    pub users: Users,
    #[command(flatten)]
    pub protocol: Protocol,
}

/// Users and their password.
#[derive(Debug, Args)]
#[command(next_help_heading = "Users")]
pub struct Users {
    /// How many users there are. Each adds 0.7 µs to the logons of those after it.
    #[arg(long, value_name = "N", default_value_t = 100,
          value_parser = clap::value_parser!(u32).range(1..=i64::from(USERS_MOST)))]
    pub users: u32,
    /// System user whose rights the users get (root only); nobody for root, else yourself.
    #[arg(long, value_name = "USER")]
    pub owner: Option<String>,
    /// Take the password from the first line of this file, instead of a random one.
    #[arg(long, value_name = "FILE")]
    pub password_file: Option<PathBuf>,
    /// Show the password too. Terminals keep what they showed: prefer the file.
    #[arg(long)]
    pub show_password: bool,
}

/// What the server offers.
#[derive(Debug, Args)]
#[command(next_help_heading = "Protocol")]
pub struct Protocol {
    /// Whether messages are signed. off counts for SMB1 only: who asks for it in SMB2 gets it.
    #[arg(long, value_name = "WHEN", default_value = "auto", value_parser = choice::<Signing>(Signing::NAMES))]
    pub signing: Signing,
    /// Signing algorithms that the server offers, the preferred first.
    #[arg(long, value_name = "A,B,...", value_delimiter = ',', value_parser = choice::<SigningAlgorithm>(SigningAlgorithm::NAMES))]
    pub signing_algorithms: Vec<SigningAlgorithm>,
    /// Whether messages are encrypted.
    #[arg(long, value_name = "WHEN", default_value = "off", value_parser = choice::<Encryption>(Encryption::NAMES))]
    pub encrypt: Encryption,
    /// Ciphers that the server offers, the preferred first.
    #[arg(long, value_name = "A,B,...", value_delimiter = ',', value_parser = choice::<Cipher>(Cipher::NAMES))]
    pub ciphers: Vec<Cipher>,
    /// The oldest dialect that the server accepts.
    #[arg(long, value_name = "DIALECT", default_value = "2.0.2", value_parser = choice::<Dialect>(Dialect::NAMES))]
    pub min_dialect: Dialect,
    /// The newest dialect that the server accepts.
    #[arg(long, value_name = "DIALECT", default_value = "3.1.1", value_parser = choice::<Dialect>(Dialect::NAMES))]
    pub max_dialect: Dialect,
    /// Oplocks.
    #[arg(long, value_name = "ON", value_parser = on_off())]
    pub oplocks: Option<bool>,
    /// Leases on files.
    #[arg(long, value_name = "ON", value_parser = on_off())]
    pub leases: Option<bool>,
    /// Leases on directories: Samba 4.22 or later, which has them on.
    #[arg(long, value_name = "ON", value_parser = on_off())]
    pub directory_leases: Option<bool>,
    /// Several connections of one session.
    #[arg(long, value_name = "ON", value_parser = on_off())]
    pub multichannel: Option<bool>,
    /// Durable handles.
    #[arg(long, value_name = "ON", value_parser = on_off())]
    pub durable: Option<bool>,
    /// Reads and writes of smbd in threads of their own.
    #[arg(long, value_name = "ON", value_parser = on_off())]
    pub aio: Option<bool>,
    /// Refuse connections beyond this many; no limit without.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub max_connections: Option<u32>,
}

/// End a lab and remove what it made.
///
/// Ends the lab's processes and removes its configuration, accounts and state and all files in its
/// share; also the folder, if the lab made that, and the line before it with its namespaces. What
/// others put into the folder stays. Works for a lab whose smbd was killed, too.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  smbscope lab down
  smbscope lab down --dir /srv/lab")]
pub struct Down {
    #[command(flatten)]
    pub folder: Folder,
}

/// List labs: whether they run, where, and since which Samba.
///
/// Lists the labs that run, of all users whose folders you may read, and the one in your default
/// folder even if its smbd is gone.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  smbscope lab status
  smbscope lab status --dir /srv/lab --format json | jq .labs[0].state")]
pub struct Status {
    #[command(flatten)]
    pub folder: Folder,
    /// Form of the output.
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t)]
    pub format: TextFormat,
}

/// Show the smb.conf of a lab.
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  smbscope lab conf | grep signing")]
pub struct Conf {
    #[command(flatten)]
    pub folder: Folder,
}

impl Up {
    /// What the library is asked for.
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
    /// The line, whose forwarder is this program.
    fn line(&self) -> anyhow::Result<Option<Line>> {
        let Some(text) = &self.wan else { return Ok(None) };
        let options: wan::Options =
            text.parse().map_err(|error| Failure::usage(format!("--wan {text}: {error}")))?;
        let mut forwarder = vec![std::env::current_exe()?.into_os_string(), "wan".into()];
        forwarder.extend(wan::netns::ENDS.map(Into::into));
        // The words of the text are the options of the command.
        forwarder.extend(options.to_string().split(',').map(|word| format!("--{word}").into()));
        Ok(Some(Line { options, name: self.netns.clone(), forwarder }))
    }
}

fn read_password(path: &Path) -> anyhow::Result<String> {
    let text = std::fs::read_to_string(path).with_context(|| {
        Failure::new(Code::Input, format!("{}: the password cannot be read", path.display()))
    })?;
    Ok(text.lines().next().unwrap_or_default().to_owned())
}

/// One of the names of a type of the library.
fn choice<T>(names: &'static [&'static str]) -> impl TypedValueParser<Value = T>
where
    T: FromStr<Err = String> + Clone + Send + Sync + 'static,
{
    PossibleValuesParser::new(names).try_map(|name| name.parse::<T>().map_err(anyhow::Error::msg))
}

fn on_off() -> impl TypedValueParser<Value = bool> {
    PossibleValuesParser::new(["on", "off"]).map(|word| word == "on")
}
