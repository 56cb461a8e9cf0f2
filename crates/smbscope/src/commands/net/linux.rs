//! The two sides: what is checked before a test, said while it runs, and shown at its end.

use std::fmt::Write as _;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs as _, UdpSocket};
use std::time::Duration;

use smbscope_analysis::net::like::Like;
use smbscope_load::net::{
    Direction, Length, Listener, NetError, Observer, Outcome, PORT, Spec, Target, Token, iperf3,
    send,
};
use smbscope_report::format;
use smbscope_report::recording::{NetAnswer, RecordingAnswer};
use smbscope_tables::quantity::{parse_duration, parse_rate, parse_size, rate_text, size_text};
use smbscope_tables::tables::NetInterval;

use super::args::{DirectionChoice, Listen, Net, NetCommand, Send};
use crate::answer::{meta, show};
use crate::exit::{Code, Failure};
use crate::options::Verbosity;
use crate::output::Output;
use crate::pipeline::net::{self, Folder, Rows};
use crate::{interrupt, terminal};

const CLEAR_LINE: &str = "\r\x1b[K";

pub fn run(args: &Net, verbosity: Verbosity) -> anyhow::Result<()> {
    match &args.command {
        NetCommand::Listen(args) => listen(args, verbosity),
        NetCommand::Send(args) => send_to(args, verbosity),
    }
}

fn listen(args: &Listen, verbosity: Verbosity) -> anyhow::Result<()> {
    let wait = quantity("--timeout", parse_duration(&args.timeout)).map(Duration::from_nanos)?;
    let address = match &args.address {
        Some(text) => own_address(text)?,
        None => SocketAddr::new(default_address()?, PORT),
    };
    let listener = Listener::bind(address).map_err(coded)?;
    let address = listener.address();
    let mut output = Output::stdout();
    output.text(&format!(
        "token  {token}\nOn the other machine, within {}:\n  smbscope net send {} --token {token}\n",
        args.timeout,
        short(address),
        token = listener.token(),
    ))?;
    // The command must be readable while this one waits.
    output.finish()?;
    let served = listener.serve(wait, &interrupt::asked, &mut |refused, strangers| {
        let said = [
            (refused, "connections with a wrong token were refused"),
            (strangers, "connections did not speak the protocol, or came during the test"),
        ];
        for (number, what) in said.into_iter().filter(|(number, _)| *number > 0) {
            verbosity.say(&format!("warning: {} {what}", format::count(number)));
        }
    });
    let served = served.map_err(coded)?;
    let mut text = format!("served one test of {}\n", served.sender);
    for phase in &served.phases {
        let what = match phase.direction {
            Direction::Send => "received",
            Direction::Receive => "sent",
        };
        let (bytes, rate) = (format::bytes(phase.bytes), format::bits(phase.bits_per_second));
        let streams = if phase.streams == 1 { "stream" } else { "streams" };
        let _ = writeln!(text, "  {what} {bytes} over {} {streams}, {rate}", phase.streams);
    }
    let mut output = Output::stdout();
    output.text(&text)?;
    output.finish()
}

/// The address of this machine, with a port.
fn own_address(text: &str) -> anyhow::Result<SocketAddr> {
    let (host, port) = host_and_port(text, PORT)?;
    let mut addresses = (host.as_str(), port).to_socket_addrs().map_err(|error| {
        Failure::usage(format!("{text}: is not an address of this machine: {error}"))
    })?;
    let none = || Failure::usage(format!("{text}: the name has no address"));
    addresses.next().ok_or_else(none)
}

/// The address from which the default route leaves. No packet is sent.
fn default_address() -> anyhow::Result<IpAddr> {
    let found = || -> std::io::Result<IpAddr> {
        let socket = UdpSocket::bind("0.0.0.0:0")?;
        // A documentation address (RFC 5737): nothing is sent to it.
        socket.connect("192.0.2.1:9")?;
        Ok(socket.local_addr()?.ip())
    };
    found().map_err(|error| {
        let why =
            format!("this machine has no default route ({error}): give the address to listen on");
        Failure::usage(why)
    })
}

/// Host and port of `host`, `host:port`, `[v6]:port` or a bare IPv6 address.
fn host_and_port(text: &str, default: u16) -> anyhow::Result<(String, u16)> {
    let wrong = || {
        Failure::usage(format!(
            "{text}: expected HOST or HOST:PORT, for example 10.0.0.2:{default}"
        ))
    };
    let (host, port) = match text.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((host, "")) => (host, None),
        Some((host, rest)) => (host, Some(rest.strip_prefix(':').ok_or_else(wrong)?)),
        None if text.matches(':').count() > 1 => (text, None),
        None => text.split_once(':').map_or((text, None), |(host, port)| (host, Some(port))),
    };
    let port = port.map_or(Ok(default), |port| port.parse::<u16>().map_err(|_| wrong()))?;
    if host.is_empty() {
        return Err(wrong());
    }
    Ok((host.to_owned(), port))
}

fn short(address: SocketAddr) -> String {
    match (address, address.port() == PORT) {
        (SocketAddr::V4(address), true) => address.ip().to_string(),
        (address, _) => address.to_string(),
    }
}

fn send_to(args: &Send, verbosity: Verbosity) -> anyhow::Result<()> {
    let against = args.against.as_deref().map(iperf3_target).transpose()?;
    let spec = spec(args, against.is_some(), verbosity)?;
    spec.check().map_err(coded)?;
    let folder = args.out.as_deref().map(|out| Folder::create(out, verbosity.force)).transpose()?;
    let mut shown = Shown::new(verbosity, &spec);
    let recording = format!("net-{}", std::process::id());
    let outcome = match (&against, &args.host) {
        (Some(target), _) => {
            verbosity
                .say("iperf3 measures no round trips of messages, and reports no state of its TCP");
            iperf3::run(target, &spec, &recording, &mut shown)
        }
        (None, host) => {
            let (host, port) = host_and_port(host.as_deref().unwrap_or_default(), PORT)?;
            let missing =
                || Failure::usage("--token: `smbscope net listen` on the other machine prints it");
            let token: Token = args.token.as_deref().ok_or_else(missing)?.parse().map_err(coded)?;
            send::run(&Target { host, port }, &token, &spec, &recording, &mut shown)
        }
    };
    shown.end();
    let Outcome { tests, intervals, round_trips } = outcome.map_err(coded)?;
    let rows = Rows { tests, intervals, round_trips };
    let found = net::alone(&rows);
    if let Some(folder) = folder {
        folder.write(rows)?;
    }
    let report = net::report(found);
    let target = args.against.clone().or_else(|| args.host.clone()).unwrap_or_default();
    let meta = meta(&[target], None);
    let answer = NetAnswer(RecordingAnswer { report: &report, meta: &meta });
    show(&answer, args.format, None, true)
}

fn iperf3_target(url: &str) -> anyhow::Result<Target> {
    let wrong = || Failure::usage(format!("--against {url}: expected iperf3://HOST[:PORT]"));
    let rest = url.strip_prefix("iperf3://").ok_or_else(wrong)?;
    let (host, port) = host_and_port(rest.trim_end_matches('/'), iperf3::PORT)?;
    Ok(Target { host, port })
}

/// The test that the options describe.
fn spec(args: &Send, is_iperf3: bool, verbosity: Verbosity) -> anyhow::Result<Spec> {
    let mut spec = Spec { round_trips: args.round_trips, ..Spec::default() };
    if is_iperf3 {
        spec.round_trips = 0;
    }
    if let Some(input) = &args.like {
        let source = args.reading.open(std::slice::from_ref(input), None)?;
        let nothing = || {
            let why = format!(
                "--like {input}: has no reads or writes of file data to take anything from"
            );
            Failure::new(Code::Runtime, why)
        };
        let like = net::like(&source, &verbosity)?.ok_or_else(nothing)?;
        take(&mut spec, &like, is_iperf3);
        verbosity.say(&taken(input, &like, &spec));
    }
    spec.directions = match args.direction {
        DirectionChoice::Send => vec![Direction::Send],
        DirectionChoice::Receive => vec![Direction::Receive],
        DirectionChoice::Both => vec![Direction::Send, Direction::Receive],
    };
    spec.together = args.together;
    spec.streams = args.streams.unwrap_or(spec.streams);
    if let Some(size) = &args.write_size {
        let bytes = quantity("--write-size", parse_size(size))?;
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
        (spec.send_write_bytes, spec.receive_write_bytes) = (bytes, bytes);
    }
    if let Some(duration) = &args.duration {
        spec.length = Length::DurationNs(quantity("--duration", parse_duration(duration))?);
    }
    if let Some(bytes) = &args.bytes {
        spec.length = Length::Bytes(quantity("--bytes", parse_size(bytes))?);
    }
    match args.pace.as_deref() {
        Some("none") => spec.pace_bits_per_second = None,
        Some(rate) => spec.pace_bits_per_second = Some(quantity("--pace", parse_rate(rate))?),
        None => {}
    }
    spec.interval_ns = quantity("--interval", parse_duration(&args.interval))?;
    Ok(spec)
}

/// Takes what a recording says.
fn take(spec: &mut Spec, like: &Like, is_iperf3: bool) {
    let most = if is_iperf3 { 1 << 20 } else { smbscope_load::net::spec::WRITE_MAX };
    let size = |bytes: u64| u32::try_from(bytes).unwrap_or(most).min(most);
    spec.streams =
        u32::try_from(like.streams).unwrap_or(u32::MAX).min(smbscope_load::net::spec::STREAMS_MAX);
    // What clients write goes from this machine, what they read comes to it.
    let either = like.write_bytes.or(like.read_bytes);
    if let Some(bytes) = either {
        spec.send_write_bytes = size(bytes);
        spec.receive_write_bytes = size(like.read_bytes.unwrap_or(bytes));
    }
    spec.pace_bits_per_second = like.pace_bits_per_second.map(|pace| pace.max(1000));
}

/// What was taken, and from what.
fn taken(input: &str, like: &Like, spec: &Spec) -> String {
    let pace = match spec.pace_bits_per_second {
        Some(pace) => format!(
            "a pace of {} because requests were in flight for only {} of the time (--pace none: no limit)",
            rate_text(pace),
            format::share(like.busy_share)
        ),
        None => format!(
            "no pace because requests were in flight for {} of the time",
            format::share(like.busy_share)
        ),
    };
    let left_out = match like.left_out {
        0 => String::new(),
        n => format!(" ({} operations past a limit were left out)", format::count(n)),
    };
    format!(
        "like {input}: {} reads and writes of {}; {} streams, writes of {} out and {} back, {pace}{left_out}",
        format::count(like.operations),
        format::bytes(like.bytes),
        spec.streams,
        size_text(u64::from(spec.send_write_bytes)),
        size_text(u64::from(spec.receive_write_bytes)),
    )
}

/// Follows a test on the terminal.
struct Shown {
    shows: bool,
    streams: u32,
}

impl Shown {
    fn new(verbosity: Verbosity, spec: &Spec) -> Shown {
        let shows = terminal::stderr_is_terminal() && !verbosity.quiet && !verbosity.no_progress;
        Shown { shows, streams: spec.streams }
    }

    fn end(&self) {
        if self.shows {
            anstream::eprint!("{CLEAR_LINE}");
        }
    }
}

impl Observer for Shown {
    fn intervals(&mut self, rows: &[NetInterval]) {
        if !self.shows {
            return;
        }
        let mut line = String::new();
        for direction in [Direction::Send, Direction::Receive] {
            let of = rows.iter().filter(|row| row.direction == direction.name());
            let (mut sum, mut again, mut rtt, mut n) = (0.0, 0, 0, 0);
            for row in of {
                sum += row.bits_per_second;
                again += row.retransmissions.unwrap_or(0);
                rtt += row.rtt_ns.unwrap_or(0);
                n += 1;
            }
            if n > 0 {
                let (rate, rtt) = (format::bits(sum), format::duration(rtt / n));
                let name = direction.name();
                let _ = write!(
                    line,
                    "{name} {rate} over {} streams, round trip {rtt}, {again} retransmitted  ",
                    self.streams
                );
            }
        }
        if !line.is_empty() {
            anstream::eprint!("{CLEAR_LINE}{line}");
        }
    }

    fn stopped(&self) -> bool {
        interrupt::asked()
    }
}

fn quantity<T>(
    option: &str,
    value: Result<T, smbscope_tables::quantity::UnitError>,
) -> anyhow::Result<T> {
    value.map_err(|error| Failure::usage(format!("{option}: {error}")))
}

/// An error with its exit code.
fn coded(error: NetError) -> anyhow::Error {
    let code = match &error {
        NetError::Spec(_) | NetError::Token(_) | NetError::AllAddresses(_) => Code::Usage,
        NetError::Interrupted => Code::Interrupted,
        _ => Code::Runtime,
    };
    Failure::new(code, error.to_string()).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_have_ports_and_brackets() {
        let of = |text: &str| host_and_port(text, 7).ok();
        let some = |host: &str, port| Some((host.to_owned(), port));
        assert_eq!(of("fs1"), some("fs1", 7));
        assert_eq!(of("fs1:9"), some("fs1", 9));
        assert_eq!(of("2001:db8::2"), some("2001:db8::2", 7));
        assert_eq!(of("[2001:db8::2]:9"), some("2001:db8::2", 9));
        assert_eq!(of("[::1]"), some("::1", 7));
        for wrong in ["", ":9", "fs1:x", "fs1:70000", "[::1]9"] {
            assert_eq!(of(wrong), None, "{wrong}");
        }
        assert!(iperf3_target("iperf3://h:1/").is_ok_and(|target| target.port == 1));
        assert!(iperf3_target("http://h").is_err());
    }

    #[test]
    fn a_recording_gives_streams_sizes_and_pace() {
        let like = Like {
            streams: 500,
            write_bytes: Some(1 << 20),
            read_bytes: None,
            pace_bits_per_second: Some(5_000_000),
            busy_share: 0.2,
            bytes: 1 << 30,
            operations: 9,
            left_out: 0,
        };
        let mut spec = Spec::default();
        take(&mut spec, &like, false);
        assert_eq!(
            (spec.streams, spec.send_write_bytes, spec.receive_write_bytes),
            (128, 1 << 20, 1 << 20)
        );
        assert_eq!(spec.pace_bits_per_second, Some(5_000_000));
        let text = taken("run", &like, &spec);
        assert!(
            text.contains("1MiB out") && text.contains("5mbit") && text.contains("20.0 %"),
            "{text}"
        );
    }
}
