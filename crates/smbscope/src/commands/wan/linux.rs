//! Making the line, showing what passes, and the counters at the end.

use std::fmt::Write as _;
use std::time::Duration;

use anyhow::Context as _;
use serde_json::json;
use smbscope_lab::wan::counters::{Counters, Direction, Dropped};
use smbscope_lab::wan::netns::{self, Netns, Setup};
use smbscope_lab::wan::{Error, Forwarder, Options};
use smbscope_report::format::{bytes, count, duration, number};
use smbscope_tables::quantity::parse_duration;

use super::Wan;
use crate::exit::{Code, Failure};
use crate::format::TextFormat;
use crate::interrupt;
use crate::options::Verbosity;
use crate::output::Output;
use crate::terminal;

/// Delay of packets (ns) above which the link no longer matches the request.
const LATE_NS: u64 = 1_000_000;
const CLEAR_LINE: &str = "\r\x1b[K";

/// Makes the namespaces if they are wanted, forwards, and takes everything away.
pub fn run(args: &Wan, options: &Options, verbosity: Verbosity) -> anyhow::Result<()> {
    let length = args.duration.as_deref().map(parse_duration).transpose();
    let length = length.map_err(|error| Failure::usage(format!("--duration: {error}")))?;
    let length = length.map(Duration::from_nanos);
    let Some(name) = &args.netns else {
        let [first, second] = &args.interfaces[..] else {
            return Err(Failure::usage("no link to emulate: give two interfaces or --netns NAME"));
        };
        let forwarder = Forwarder::open(first, second, None, options).map_err(coded)?;
        verbosity.say(&format!("{first} and {second} are joined ({options}); Ctrl-C ends it"));
        return forward(args, options, forwarder, length, verbosity);
    };
    if args.remove {
        let left = netns::remove(name).map_err(coded)?;
        verbosity.say(&format!("removed {name}-client, {name}-server, {name}-line"));
        say_left(verbosity, &left);
        return Ok(());
    }
    let subnet = args.subnet.parse().map_err(coded)?;
    let setup = Setup { name: name.clone(), subnet, mtu: args.mtu };
    let namespaces = Netns::up(setup).map_err(coded)?;
    interrupt::check()?;
    let [client, server] = netns::ENDS;
    let forwarder =
        Forwarder::open(client, server, Some(&namespaces.line()), options).map_err(coded)?;
    say_how(verbosity, &namespaces, options);
    let done = forward(args, options, forwarder, length, verbosity);
    let left = namespaces.down().map_err(coded)?;
    say_left(verbosity, &left);
    done
}

/// Moves frames and shows what passes.
fn forward(
    args: &Wan,
    options: &Options,
    forwarder: Forwarder,
    length: Option<Duration>,
    verbosity: Verbosity,
) -> anyhow::Result<()> {
    let shown = terminal::stderr_is_terminal() && !verbosity.quiet && !verbosity.no_progress;
    let (mut before, mut warned) = (Counters::default(), false);
    let counters = forwarder.run(length, interrupt::asked, |now| {
        if !warned && let Some(warning) = merged(now) {
            warned = true;
            verbosity.say(&format!("{}{warning}", if shown { CLEAR_LINE } else { "" }));
        }
        if shown {
            anstream::eprint!("{CLEAR_LINE}{}", passing(&before, now));
        }
        before = now.clone();
    });
    if shown {
        anstream::eprint!("{CLEAR_LINE}");
    }
    let counters = counters.map_err(coded)?;
    for warning in warnings(&counters, !warned) {
        verbosity.say(&warning);
    }
    let mut output = Output::stdout();
    output.text(&match args.format {
        TextFormat::Text => text(&counters),
        TextFormat::Json => format!("{}\n", json(options, &counters)?),
    })?;
    output.finish()
}

fn json(options: &Options, counters: &Counters) -> anyhow::Result<String> {
    let mut value = serde_json::to_value(counters).context("counters as JSON")?;
    if let Some(object) = value.as_object_mut() {
        object.insert("line".to_owned(), json!(options.to_string()));
        object.insert("round_trip_ns".to_owned(), json!(options.round_trip_ns()));
    }
    Ok(format!("{value:#}"))
}

/// How to use the namespaces.
fn say_how(verbosity: Verbosity, namespaces: &Netns, options: &Options) {
    let (client, server, subnet) = (namespaces.client(), namespaces.server(), namespaces.subnet());
    let (to_client, to_server) = (subnet.client(), subnet.server());
    verbosity.say(&format!(
        "{client} ({to_client}) and {server} ({to_server}) are joined ({options}); run programs with\n  \
         ip netns exec {server} COMMAND...    # reached at {to_server}\n  \
         ip netns exec {client} COMMAND...    # reaches {to_server}, is {to_client}\n\
         Ctrl-C ends it and removes both"
    ));
}

fn say_left(verbosity: Verbosity, left: &[u32]) {
    if !left.is_empty() {
        let ids: Vec<String> = left.iter().map(u32::to_string).collect();
        verbosity.say(&format!(
            "warning: still running inside, now without network: processes {}",
            ids.join(" ")
        ));
    }
}

/// One line on what passed since `before`.
fn passing(before: &Counters, now: &Counters) -> String {
    let ns = now.elapsed_ns.saturating_sub(before.elapsed_ns).max(1);
    let seconds = ns as f64 / 1e9;
    let mut line =
        duration(i64::try_from(now.elapsed_ns / 1_000_000_000 * 1_000_000_000).unwrap_or(0));
    for (before, now) in before.directions.iter().zip(&now.directions) {
        let packets = now.delivered.packets.saturating_sub(before.delivered.packets) as f64;
        let bits = now.delivered.bytes.saturating_sub(before.delivered.bytes) as f64 * 8.0;
        let _ = write!(
            line,
            "  {} to {}: {} packets/s, {} Mb/s, {} dropped",
            now.from,
            now.to,
            number((packets / seconds).round()),
            number((bits / seconds / 1e4).round() / 100.0),
            count(now.dropped.total()),
        );
    }
    line
}

/// The counters for people.
fn text(counters: &Counters) -> String {
    let ns = |ns: u64| duration(i64::try_from(ns).unwrap_or(i64::MAX));
    let mut text = String::new();
    for way in &counters.directions {
        let Direction { received, delivered, in_flight, late, .. } = way;
        let _ = writeln!(text, "{} to {}", way.from, way.to);
        for (title, volume) in
            [("received", received), ("delivered", delivered), ("in flight", in_flight)]
        {
            if volume.packets > 0 || title != "in flight" {
                let (packets, size) = (count(volume.packets), bytes(volume.bytes));
                let _ = writeln!(text, "  {title:<10} {packets:>14} packets {size:>12}");
            }
        }
        let _ = writeln!(
            text,
            "  {:<10} {:>14} packets{}",
            "dropped",
            count(way.dropped.total()),
            causes(&way.dropped)
        );
        if way.queue_bytes_max > 0 {
            let _ = writeln!(text, "  {:<10} at most {}", "queue", bytes(way.queue_bytes_max));
        }
        if delivered.packets > 0 {
            let (p50, p99, max) = (ns(late.p50_ns), ns(late.p99_ns), ns(late.max_ns));
            let _ = writeln!(text, "  {:<10} p50 {p50}, p99 {p99}, at most {max}", "late");
        }
    }
    let _ = write!(text, "in {}, CPU {}", ns(counters.elapsed_ns), ns(counters.cpu_ns));
    match counters.cpu_ns_per_packet() {
        Some(each) => writeln!(text, ", {} a packet", ns(each)),
        None => writeln!(text),
    }
    .unwrap_or_default();
    text
}

fn causes(dropped: &Dropped) -> String {
    let causes = [
        ("queue full", dropped.queue),
        ("lost", dropped.loss),
        ("no memory", dropped.memory),
        ("not taken by the interface", dropped.send),
        ("not read in time", dropped.receive_buffer),
    ];
    let causes = causes.iter().filter(|(_, number)| *number > 0);
    let list: Vec<_> =
        causes.map(|(cause, number)| format!("{cause} {}", count(*number))).collect();
    if list.is_empty() { String::new() } else { format!(": {}", list.join(", ")) }
}

/// What to do about merged packets.
fn merged(counters: &Counters) -> Option<String> {
    let way = counters.directions.iter().find(|way| way.oversize_packets > 0)?;
    Some(format!(
        "warning: {0}: packets come in merged, larger than its MTU, and a line carries no such ones: \
         turn that off with `ethtool -K {0} gro off lro off`, and where {0} is one end of a virtual \
         pair, at its other end with `ethtool -K IF tso off gso off`",
        way.from
    ))
}

/// Reasons why the link differs from the request.
fn warnings(counters: &Counters, with_merged: bool) -> Vec<String> {
    let mut list: Vec<String> = merged(counters).filter(|_| with_merged).into_iter().collect();
    for way in &counters.directions {
        let Dropped { receive_buffer, send, memory, .. } = way.dropped;
        if receive_buffer > 0 {
            list.push(format!(
                "warning: {}: {} packets were not read in time: this machine is too slow for them; \
                 give it a lower --rate or more CPU",
                way.from,
                count(receive_buffer)
            ));
        }
        if send > 0 {
            list.push(format!(
                "warning: {}: {} packets were not taken by the interface: look whether it is up and \
                 its MTU is not smaller than that of {}",
                way.to,
                count(send),
                way.from
            ));
        }
        if memory > 0 {
            list.push(format!(
                "warning: {} to {}: {} packets did not fit into the memory for what is on the way: \
                 a shorter --rtt or a lower --rate needs less",
                way.from,
                way.to,
                count(memory)
            ));
        }
        if way.late.p99_ns > LATE_NS {
            let late = duration(i64::try_from(way.late.p99_ns).unwrap_or(i64::MAX));
            let why = if counters.realtime {
                "this machine is busy"
            } else {
                "this machine is busy, and `chrt` (util-linux) could not put the line first"
            };
            list.push(format!(
                "warning: {} to {}: 1 % of packets came {late} late or more: {why}",
                way.from, way.to
            ));
        }
    }
    list
}

/// An error with its exit code.
fn coded(error: Error) -> anyhow::Error {
    let wrong = matches!(
        error,
        Error::Options(_) | Error::SameInterface(_) | Error::Name(_) | Error::Subnet(_)
    );
    Failure::new(if wrong { Code::Usage } else { Code::Runtime }, error.to_string()).into()
}
