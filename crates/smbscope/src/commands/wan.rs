//! `smbscope wan`: an emulated WAN link between two network interfaces.
//!
//! Owns the command's options and their conversion to a description of the link. The link itself is
//! `smbscope_lab::wan`; the run with its messages is in `linux.rs`.

#[cfg(target_os = "linux")]
mod linux;

use clap::Args;
use smbscope_lab::wan::Options;

use crate::exit::Failure;
use crate::format::TextFormat;
use crate::options::Verbosity;

/// Emulate a WAN link between two network interfaces.
///
/// Frames received on one interface are sent on the other after half the round-trip time. In each
/// direction they pass a queue that is emptied at the given rate and drops what does not fit, and
/// some are lost if --loss is given. TCP behaves as on a real link of this kind, which a delay in
/// the client cannot achieve. There must be no other connection between the two interfaces. With
/// --netns, smbscope creates two network namespaces, NAME-client and NAME-server, with the link
/// between them, and removes them at the end.
///
/// The link runs until Ctrl-C or for --duration; then it shows how many frames were forwarded and
/// dropped. Options that can differ by direction take two values: IF1 to IF2 (client to server),
/// then the reverse, for example --rate 20mbit/100mbit. Needs Linux and root (CAP_NET_RAW and
/// CAP_NET_ADMIN; with --netns also CAP_SYS_ADMIN). docs/method/wan.md describes the accuracy.
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
    /// Interfaces at the two ends of the link.
    #[arg(value_names = ["IF1", "IF2"], num_args = 2, required_unless_present = "netns")]
    pub interfaces: Vec<String>,
    /// Create network namespaces NAME-client and NAME-server with the link between them.
    #[arg(long, value_name = "NAME", conflicts_with = "interfaces")]
    pub netns: Option<String>,
    /// Remove namespaces left behind by a run that was killed, and exit.
    #[arg(long, requires = "netns")]
    pub remove: bool,
    /// Subnet of the namespaces: the client gets the first address, the server the second.
    #[arg(long, value_name = "SUBNET", default_value = "10.45.0.0/24")]
    pub subnet: String,
    /// Size of the largest IP packet in the namespaces.
    #[arg(long, value_name = "BYTES", default_value_t = 1500, value_parser = clap::value_parser!(u32).range(576..=65_000))]
    pub mtu: u32,
    /// Properties of the link.
    #[command(flatten)]
    pub line: LineArgs,
    /// Stop after this time (30s, 10m).
    #[arg(long, value_name = "DURATION")]
    pub duration: Option<String>,
    /// Format of the counters shown at the end.
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t)]
    pub format: TextFormat,
}

/// Properties of the link. Values are parsed by `smbscope_lab::wan`, which defines their units.
#[derive(Debug, Args)]
#[command(next_help_heading = "Link options")]
pub struct LineArgs {
    /// Round-trip time, half of it in each direction (20ms, 500us).
    #[arg(long, value_name = "DURATION")]
    pub rtt: Option<String>,
    /// Length of an optical fibre (2795km): adds 10 us per kilometre to the round-trip time.
    #[arg(long, value_name = "LENGTH")]
    pub distance: Option<String>,
    /// Maximum deviation of the delay, uniformly distributed (2ms); frames keep their order.
    #[arg(long, value_name = "DURATION[/DURATION]")]
    pub jitter: Option<String>,
    /// Data rate, counting whole Ethernet frames (45mbit, 1gbit, 10MB/s) [default: unlimited].
    #[arg(long, value_name = "RATE[/RATE]")]
    pub rate: Option<String>,
    /// Queue length, in bytes or as time at the given rate (256KiB, 100ms); excess frames are
    /// dropped [default: 100ms, at least 64KiB].
    #[arg(long, value_name = "SIZE[/SIZE]")]
    pub queue: Option<String>,
    /// Share of frames to lose (0.1%, 250ppm).
    #[arg(long, value_name = "PERCENT[/PERCENT]")]
    pub loss: Option<String>,
    /// Lose frames in bursts of N on average instead of independently.
    #[arg(long, value_name = "N")]
    pub loss_burst: Option<String>,
    /// Bytes to add to each frame when the rate is applied: 24 for Ethernet's preamble, checksum and gap,
    /// -14 to count IP packets only [default: 0].
    #[arg(long, value_name = "BYTES", allow_hyphen_values = true)]
    pub overhead: Option<String>,
    /// Seed of the random losses and jitter [default: 1].
    #[arg(long, value_name = "N")]
    pub seed: Option<String>,
}

impl LineArgs {
    /// The description of the link.
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

/// Runs the link until Ctrl-C or the end of `--duration`.
pub fn run(args: &Wan, verbosity: Verbosity) -> anyhow::Result<()> {
    let options = args.line.options()?;
    #[cfg(target_os = "linux")]
    return linux::run(args, &options, verbosity);
    #[cfg(not(target_os = "linux"))]
    {
        let _ = (options, verbosity);
        anyhow::bail!("smbscope wan needs Linux: it forwards packets with AF_PACKET sockets");
    }
}
