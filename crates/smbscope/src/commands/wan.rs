//! `smbscope wan`: distance between two network interfaces, made of packets.
//!
//! Owns: the command's options and what the line is that they ask for. The line itself is
//! `smbscope_lab::wan`; what happens on a terminal stands in `linux.rs`.

#[cfg(target_os = "linux")]
mod linux;

use clap::Args;
use smbscope_lab::wan::Options;

use crate::exit::Failure;
use crate::format::TextFormat;
use crate::options::Talk;

/// Put distance between two network interfaces.
///
/// Frames that come in at one interface go out at the other after half the round trip, at the rate,
/// through a queue that drops what it cannot hold, less what is lost; each direction on its own. TCP
/// then behaves as on such a line, which a delay inside a client cannot show. The two interfaces
/// must be joined by nothing else. With --netns there are two network namespaces to run programs
/// in, NAME-client and NAME-server, with the line between them, and at the end they are taken away.
///
/// It runs until Ctrl-C or for --duration, and then counts what passed and what did not. Options
/// that may differ take two values: from IF1 to IF2 (from the client to the server), then back:
/// --rate 20mbit/100mbit. Needs root (CAP_NET_RAW and CAP_NET_ADMIN; CAP_SYS_ADMIN for --netns) and
/// Linux. docs/wan.md tells how exact it is.
#[derive(Debug, Args)]
#[command(override_usage = "\
smbscope wan [OPTIONS] IF1 IF2
       smbscope wan [OPTIONS] --netns NAME
       smbscope wan --netns NAME --remove")]
#[command(after_help = "\
Examples:
  smbscope wan eth1 eth2 --rtt 20ms --rate 45mbit --loss 0.1%
  smbscope wan eth1 eth2 --distance 2795km --rate 45mbit --queue 256KiB
  smbscope wan --netns lab --rtt 20ms --rate 20mbit/100mbit
  ip netns exec lab-server smbd --foreground --no-process-group --configfile smb.conf
  ip netns exec lab-client smbclient //10.45.0.2/share
  smbscope wan --netns lab --remove")]
pub struct Wan {
    /// The interfaces at the two ends of the line.
    #[arg(value_names = ["IF1", "IF2"], num_args = 2, required_unless_present = "netns")]
    pub interfaces: Vec<String>,
    /// Make network namespaces NAME-client and NAME-server, with the line between them.
    #[arg(long, value_name = "NAME", conflicts_with = "interfaces")]
    pub netns: Option<String>,
    /// Remove the namespaces of that name, which a run that was killed left behind, and end.
    #[arg(long, requires = "netns")]
    pub remove: bool,
    /// Addresses in the namespaces: the client has the first, the server the second.
    #[arg(long, value_name = "SUBNET", default_value = "10.45.0.0/24")]
    pub subnet: String,
    /// Largest IP packet in the namespaces, in bytes.
    #[arg(long, value_name = "BYTES", default_value_t = 1500, value_parser = clap::value_parser!(u32).range(576..=65_000))]
    pub mtu: u32,
    /// What the line is like.
    #[command(flatten)]
    pub line: LineArgs,
    /// End after this time (10m, 30s).
    #[arg(long, value_name = "TIME")]
    pub duration: Option<String>,
    /// Form of the counters at the end.
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t)]
    pub format: TextFormat,
}

/// What a line is like. Values are read by `smbscope_lab::wan`, which owns their units.
#[derive(Debug, Args)]
#[command(next_help_heading = "Line")]
pub struct LineArgs {
    /// Round trip, half of it each way (20ms, 500us).
    #[arg(long, value_name = "TIME")]
    pub rtt: Option<String>,
    /// Length of fibre (2795km): light needs 10 us for each kilometre there and back, added to
    /// --rtt.
    #[arg(long, value_name = "LENGTH")]
    pub distance: Option<String>,
    /// Largest deviation of each way's delay, evenly distributed; frames keep their order.
    #[arg(long, value_name = "TIME[/TIME]")]
    pub jitter: Option<String>,
    /// Rate (45mbit, 1gbit, 10MB/s) of whole Ethernet frames; without it as fast as this machine.
    #[arg(long, value_name = "RATE[/RATE]")]
    pub rate: Option<String>,
    /// What may wait to be sent, as bytes or as time at the rate (256KiB, 100ms); what comes then is
    /// dropped [default: 100ms, at least 64KiB].
    #[arg(long, value_name = "SIZE[/SIZE]")]
    pub queue: Option<String>,
    /// Share of frames that are lost (0.1%, 250ppm).
    #[arg(long, value_name = "SHARE[/SHARE]")]
    pub loss: Option<String>,
    /// Lose so many frames in a row on average, instead of each independently of the others.
    #[arg(long, value_name = "N")]
    pub loss_burst: Option<String>,
    /// Bytes that each frame takes at the rate beside its own: 24 for what Ethernet has on the wire,
    /// -14 to count IP packets only [default: 0].
    #[arg(long, value_name = "BYTES", allow_hyphen_values = true)]
    pub overhead: Option<String>,
    /// What losses and jitter follow from [default: 1].
    #[arg(long, value_name = "N")]
    pub seed: Option<String>,
}

impl LineArgs {
    /// The line that is asked for.
    pub fn options(&self) -> anyhow::Result<Options> {
        let mut options = Options::default();
        let given = [
            ("rtt", &self.rtt),
            ("distance", &self.distance),
            ("jitter", &self.jitter),
            ("rate", &self.rate),
            ("queue", &self.queue),
            ("loss", &self.loss),
            ("loss-burst", &self.loss_burst),
            ("overhead", &self.overhead),
            ("seed", &self.seed),
        ];
        for (key, value) in given {
            if let Some(value) = value {
                options.set(key, value).map_err(|error| Failure::usage(format!("--{error}")))?;
            }
        }
        options.check().map_err(|error| Failure::usage(format!("--{error}")))?;
        Ok(options)
    }
}

/// Runs the line until it is to end.
pub fn run(args: &Wan, talk: Talk) -> anyhow::Result<()> {
    let options = args.line.options()?;
    #[cfg(target_os = "linux")]
    return linux::run(args, &options, talk);
    #[cfg(not(target_os = "linux"))]
    {
        let _ = (options, talk);
        anyhow::bail!("smbscope wan moves packets by AF_PACKET, which Linux alone has");
    }
}
