//! Options of `smbscope net`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use crate::format::TextFormat;
use crate::options::Reading;

/// Measure the network without SMB.
///
/// `net listen` waits on one machine, `net send` runs the test from the other: TCP streams in both
/// directions, their rate, round trip, windows and losses, what limits them (sender, receiver or
/// network), CPU time for each GB, packet sizes, and round trips of messages as large as SMB's. The
/// result says what SMB could reach on this path; `compare` and `report` put it next to a recording
/// of SMB. The other side may be an unmodified iperf3 server instead (--against). docs/guide/net.md
/// has examples, docs/method/net.md describes what is measured. Needs Linux, but no privileges.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  smbscope net listen 10.0.0.2                           # on the server; prints the next command
  smbscope net send 10.0.0.2 --token TOKEN               # on the client
  smbscope net send --against iperf3://10.0.0.2          # the server runs `iperf3 -s`
  smbscope compare smb-run/ net-run/                     # is it the network?")]
pub struct Net {
    /// Which side.
    #[command(subcommand)]
    pub command: NetCommand,
}

/// The sides. The help texts are those of the structs.
#[derive(Debug, Subcommand)]
pub enum NetCommand {
    Listen(Listen),
    Send(Box<Send>),
}

/// Wait for one test, serve it, and end.
///
/// Prints a token and the command for the other machine. Only a sender that knows the token is
/// served; the token itself is not sent. It listens on one address. Connections with a wrong token
/// and strangers are refused and counted.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  smbscope net listen
  smbscope net listen 10.0.0.2
  smbscope net listen '[2001:db8::2]:5555' --timeout 1h")]
pub struct Listen {
    /// Address of this machine, and port [default: the address of the default route, port 5446].
    #[arg(value_name = "ADDRESS[:PORT]")]
    pub address: Option<String>,
    /// End if no sender comes within this time.
    #[arg(long, value_name = "DURATION", default_value = "10m")]
    pub timeout: String,
}

/// Run a test against `net listen` or an iperf3 server.
///
/// Each direction is a phase of its own unless --together is given. A phase lasts 10 s, or until
/// --bytes are sent. Rates count payload at the receiver.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  smbscope net send 10.0.0.2 --token TOKEN
  smbscope net send 10.0.0.2 --token TOKEN --streams 4 --write-size 1MiB --out net-run
  smbscope net send 10.0.0.2 --token TOKEN --direction receive --duration 30s --interval 100ms
  smbscope net send 10.0.0.2 --token TOKEN --like smb-run/ --out net-run
  smbscope net send 10.0.0.2 --token TOKEN --pace 400mbit --together
  smbscope net send --against iperf3://10.0.0.2:5201 --streams 4")]
pub struct Send {
    /// The machine that listens [default port: 5446].
    #[arg(value_name = "HOST[:PORT]", required_unless_present = "against")]
    pub host: Option<String>,
    /// The token that `net listen` printed.
    #[arg(long, value_name = "TOKEN", env = "SMBSCOPE_NET_TOKEN", hide_env_values = true)]
    pub token: Option<String>,
    /// Use an iperf3 server instead of `net listen`: iperf3://HOST[:PORT]. It has no round trips of messages.
    #[arg(long, value_name = "URL", conflicts_with = "host")]
    pub against: Option<String>,
    /// Direction of the data, seen from this machine.
    #[arg(long, value_enum, value_name = "DIRECTION", default_value_t)]
    pub direction: DirectionChoice,
    /// Run both directions at the same time.
    #[arg(long)]
    pub together: bool,
    /// TCP connections in each direction [default: 1].
    #[arg(long, value_name = "N")]
    pub streams: Option<u32>,
    /// Length of one write [default: 128KiB].
    #[arg(long, value_name = "SIZE")]
    pub write_size: Option<String>,
    /// Length of each phase [default: 10s].
    #[arg(long, value_name = "DURATION", conflicts_with = "bytes")]
    pub duration: Option<String>,
    /// Bytes to send in each direction, all streams together.
    #[arg(long, value_name = "SIZE")]
    pub bytes: Option<String>,
    /// Rate of all streams of a direction (400mbit, 50MB/s), or `none` [default: none].
    #[arg(long, value_name = "RATE")]
    pub pace: Option<String>,
    /// Take the number of streams, the write sizes and the pace from this recording of SMB; options
    /// that are given win.
    #[arg(long, value_name = "INPUT")]
    pub like: Option<String>,
    /// Time between two samples of each stream, at least 100ms.
    #[arg(long, value_name = "DURATION", default_value = "1s")]
    pub interval: String,
    /// Round trips of each message size before the streams; 0 for none.
    #[arg(long, value_name = "N", default_value_t = 200)]
    pub round_trips: u32,
    /// Write a run folder that report, compare and query read.
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Output format.
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t)]
    pub format: TextFormat,
    /// How the recording of --like is read.
    #[command(flatten)]
    pub reading: Reading,
}

/// Directions to measure.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum DirectionChoice {
    /// From this machine.
    Send,
    /// To this machine.
    Receive,
    /// First from this machine, then to it.
    #[default]
    Both,
}
