//! The timeline of channels: what each path carried and since when, what they carried together,
//! what was offered and not used, and what it cost.

use smbscope_analysis::channels::{
    Brake, ChannelTimeline, Channels, CpuCost, OfferedInterface, SessionTimeline,
};

use crate::answers::diagnosis::cause;
use crate::answers::recording::fields::{column, fact, field};
use crate::document::{AreaMark, Areas, Block, Cell, Facts, Section, Table};
use crate::value::format;

/// Layers of a chart: those with the most bytes, and the rest together.
const LAYERS: usize = 5;
/// Sessions with a chart of their own.
const CHARTS: usize = 6;

pub(crate) fn channels(channels: &Channels) -> Section {
    let mut blocks = Vec::new();
    let causes = channels.findings.iter().enumerate();
    blocks.extend(causes.map(|(place, found)| {
        let recording = &found.details.recording;
        Block::Finding(cause(found, recording, Vec::new(), Vec::new(), place == 0))
    }));
    if channels.sessions.len() > 1 {
        blocks.push(Block::Table(runs(channels)));
    }
    for (place, one) in channels.sessions.iter().enumerate() {
        let mut own = vec![Block::Facts(facts(one)), Block::chart(chart(one))];
        own.push(Block::Table(table(one)));
        if !one.cpu.is_empty() {
            own.push(Block::Table(costs(one)));
        }
        if place < CHARTS { blocks.extend(own) } else { blocks.push(Block::fold(title(one), own)) }
    }
    if !channels.interfaces.is_empty() {
        blocks.push(Block::Table(interfaces(channels)));
    }
    if channels.others > 0 {
        blocks.push(Block::Note(format!(
            "{} more sessions are not listed.",
            format::count(channels.others)
        )));
    }
    Section {
        id: "channels",
        title: "Channels",
        help: "The connections of each session: since when each carried what. Payload of Reads and Writes, spread evenly over its transfer.",
        blocks,
    }
}

fn title(one: &SessionTimeline) -> String {
    let session = one.session_id.map_or(String::new(), |id| format!(", session {id:#x}"));
    format!("{}: {} to {}{session}", one.recording, one.client, one.server)
}

fn rate(bytes_per_second: Option<f64>) -> Cell {
    match bytes_per_second {
        Some(rate) => Cell::Measure(rate, format!("{}/s", format::bytes(rate.max(0.0) as u64))),
        None => Cell::Empty,
    }
}

fn number(value: Option<f64>) -> Cell {
    value.map_or(Cell::Empty, Cell::Number)
}

/// How many times, of what is promised if it is more than one.
fn times(factor: f64, promised: f64) -> Cell {
    let of = if promised > 1.0 { format!(" of {promised:.1}") } else { String::new() };
    Cell::Measure(factor, format!("{factor:.1}{of}"))
}

/// All sessions next to each other.
fn runs(channels: &Channels) -> Table {
    let of = "session_timeline";
    let columns = vec![
        column(of, "recording", 0, |one: &SessionTimeline| Cell::Code(one.recording.clone())),
        column(of, "client", 2, |one: &SessionTimeline| Cell::Text(one.client.clone())),
        column(of, "paths", 0, |one: &SessionTimeline| Cell::Count(one.paths)),
        column(of, "channels", 1, |one: &SessionTimeline| Cell::Count(one.channels.len() as u64)),
        column(of, "written_bytes", 0, |one: &SessionTimeline| Cell::Bytes(one.bytes()))
            .titled("Bytes"),
        column(of, "first_byte_after_ns", 0, |one: &SessionTimeline| {
            Cell::duration(one.first_byte_after_ns)
        }),
        column(of, "plateau_after_ns", 1, |one: &SessionTimeline| {
            Cell::duration(one.plateau_after_ns)
        }),
        column(of, "lasted_ns", 0, |one: &SessionTimeline| Cell::Duration(one.lasted_ns)),
        column(of, "plateau_bytes_per_second", 1, |one: &SessionTimeline| {
            rate(one.plateau_bytes_per_second)
        }),
        column(of, "versus", 0, |one: &SessionTimeline| match &one.versus {
            Some(versus) => times(versus.factor, versus.promised),
            None => Cell::Empty,
        }),
        column("versus", "recording", 1, |one: &SessionTimeline| match &one.versus {
            Some(versus) => Cell::Code(versus.recording.clone()),
            None => Cell::Empty,
        }),
        column("power_state", "deep_idle_before", 2, |one: &SessionTimeline| {
            one.power.as_ref().map_or(Cell::Empty, |power| Cell::Share(power.deep_idle_before))
        }),
    ];
    Table::new("Sessions", field("channels", "sessions").help, &channels.sessions, columns).cut(
        16,
        50,
        "select recording, session_id, count(distinct connection), sum(bytes_written + bytes_read) from channels group by recording, session_id",
    )
}

fn facts(one: &SessionTimeline) -> Facts {
    let of = |name: &str, value: Cell| fact("session_timeline", name, value);
    let mut rows = vec![
        of("written_bytes", Cell::Bytes(one.written_bytes)),
        of("read_bytes", Cell::Bytes(one.read_bytes)),
        of("first_byte_after_ns", Cell::duration(one.first_byte_after_ns)),
        of("plateau_after_ns", Cell::duration(one.plateau_after_ns)),
        of("lasted_ns", Cell::Duration(one.lasted_ns)),
        of("plateau_bytes_per_second", rate(one.plateau_bytes_per_second)),
        of("mean_bytes_per_second", rate(Some(one.mean_bytes_per_second))),
        of("paths", Cell::Count(one.paths)),
    ];
    if one.fairness.is_some() {
        rows.push(of("fairness", number(one.fairness)));
    }
    if let Some(gain) = &one.gain {
        let before = format::bytes(gain.before_bytes_per_second as u64);
        let after = format::bytes(gain.after_bytes_per_second as u64);
        let note = format!("{before}/s with one path, {after}/s with {}", one.paths);
        rows.push(of("gain", times(gain.factor, gain.promised)).noted(note));
    }
    if let Some(versus) = &one.versus {
        let note = format!(
            "times as fast as recording {}, which has {} {}; {:.1} without the time until the first byte",
            versus.recording,
            versus.paths,
            if versus.paths == 1 { "path" } else { "paths" },
            versus.transfer_factor
        );
        rows.push(of("versus", times(versus.factor, versus.promised)).noted(note));
    }
    if let Some(slowest) = &one.slowest {
        let brakes = if slowest.brakes_others {
            "; the others run at its rate although their paths could carry more"
        } else {
            ""
        };
        let note = format!("connection {}: {}{brakes}", slowest.connection, brake(slowest.brake));
        rows.push(of("slowest", rate(Some(slowest.bytes_per_second))).noted(note));
    }
    if let Some(bytes) = one.rdma_bytes.filter(|bytes| *bytes > 0.0) {
        rows.push(of("rdma_bytes", Cell::Bytes(bytes as u64)));
    }
    if let Some(after) = one.rdma_after_ns {
        let note = "from then on TCP carries less than the adapters' counters of RDMA show";
        rows.push(of("rdma_after_ns", Cell::Duration(after)).noted(note.to_owned()));
    }
    if let Some(power) = &one.power {
        let frequency =
            power.hertz_before.map_or(String::new(), |hertz| format!(", {:.2} GHz", hertz / 1e9));
        let note = format!("{} until the plateau{frequency}", power.source);
        let value = Cell::Share(power.deep_idle_before);
        rows.push(fact("power_state", "deep_idle_before", value).noted(note));
    }
    Facts { caption: title(one), rows }
}

fn brake(brake: Brake) -> &'static str {
    match brake {
        Brake::Link => "it carries what its interface can",
        Brake::Loss => "segments are lost",
        Brake::Path => "a slower link on its way is full: it carries data all the time",
        Brake::Window => "the bytes in flight over the round trip are what it carries",
        Brake::Requests => "hardly ever more than one request is in flight",
        Brake::Unknown => "what limits it is not visible in the recording",
    }
}

fn name(one: &ChannelTimeline) -> String {
    let number = one.channel.map_or_else(|| "not bound".to_owned(), |channel| channel.to_string());
    format!("{number}: {} to {}", one.client, one.server)
}

fn chart(one: &SessionTimeline) -> Areas {
    let sum = |channel: &ChannelTimeline| channel.written_bytes.saturating_add(channel.read_bytes);
    let mut order: Vec<usize> = (0..one.channels.len()).collect();
    order.sort_by_key(|&at| std::cmp::Reverse(one.channels.get(at).map_or(0, sum)));
    let has_rdma = !one.rdma_bytes_per_second.is_empty();
    let room = LAYERS - usize::from(has_rdma);
    let most = if order.len() > room { room - 1 } else { room };
    let (mut shown, rest) = order.split_at(most.min(order.len()));
    let mut sorted = shown.to_vec();
    sorted.sort_unstable();
    shown = &sorted;
    let of = |at: &usize| one.channels.get(*at);
    let mut layers: Vec<(String, Vec<f64>)> = (shown.iter().filter_map(of))
        .map(|channel| (name(channel), channel.bytes_per_second.clone()))
        .collect();
    let mut marks = Vec::new();
    for (layer, channel) in shown.iter().filter_map(of).enumerate() {
        let number = channel.channel.map_or(String::new(), |number| format!("{number} "));
        let moments = [
            (channel.opened_ns, "opened", false),
            (channel.bound_ns, "bound", false),
            (channel.first_byte_ns, "first byte", true),
            (channel.plateau_ns, "90 %", true),
            (channel.lost_ns, "lost", false),
        ];
        marks.extend(moments.into_iter().filter_map(|(at, words, is_data)| {
            Some(AreaMark { at_ns: at?, layer, words: format!("{number}{words}"), is_data })
        }));
    }
    if !rest.is_empty() {
        let mut sums = vec![0.0; layers.first().map_or(0, |layer| layer.1.len())];
        for channel in rest.iter().filter_map(of) {
            sums.iter_mut().zip(&channel.bytes_per_second).for_each(|(sum, rate)| *sum += rate);
        }
        layers.push((format!("{} others", rest.len()), sums));
    }
    if has_rdma {
        let name = "RDMA, by counters: bypasses TCP".to_owned();
        layers.push((name, one.rdma_bytes_per_second.clone()));
    }
    Areas {
        caption: format!("Channels of {}", one.recording),
        help: "Rates on top of each other; dashed: opened, bound and lost; solid: first byte and 90 % of the plateau.".to_owned(),
        start_ns: one.bins_start_ns,
        bin_ns: one.bin_ns,
        layers,
        marks,
    }
}

fn table(one: &SessionTimeline) -> Table {
    let of = "channel_timeline";
    let after =
        |at: Option<i64>| Cell::duration(at.map(|at| at.saturating_sub(one.start_ns).max(0)));
    let columns = vec![
        column(of, "channel", 0, |row: &ChannelTimeline| Cell::count(row.channel)),
        column(of, "connection", 3, |row: &ChannelTimeline| Cell::Count(row.connection)),
        column(of, "client", 0, |row: &ChannelTimeline| {
            Cell::Text(format!("{}:{}", row.client, row.client_port))
        }),
        column(of, "server", 0, |row: &ChannelTimeline| {
            Cell::Text(format!("{}:{}", row.server, row.server_port))
        }),
        column(of, "transport", 2, |row: &ChannelTimeline| Cell::text(&row.transport)),
        column(of, "opened_ns", 2, move |row: &ChannelTimeline| after(row.opened_ns)),
        column(of, "bound_ns", 1, move |row: &ChannelTimeline| after(row.bound_ns)),
        column(of, "first_byte_ns", 0, move |row: &ChannelTimeline| after(row.first_byte_ns)),
        column(of, "plateau_ns", 0, move |row: &ChannelTimeline| after(row.plateau_ns)),
        column(of, "written_bytes", 1, |row: &ChannelTimeline| Cell::Bytes(row.written_bytes)),
        column(of, "read_bytes", 1, |row: &ChannelTimeline| Cell::Bytes(row.read_bytes)),
        column(of, "share", 0, |row: &ChannelTimeline| Cell::Share(row.share)),
        column(of, "plateau_bytes_per_second", 0, |row: &ChannelTimeline| {
            rate(row.plateau_bytes_per_second)
        }),
        column(of, "outstanding_mean", 2, |row: &ChannelTimeline| {
            Cell::Number(row.outstanding_mean)
        }),
        column(of, "in_flight_max_bytes", 2, |row: &ChannelTimeline| {
            Cell::bytes(row.in_flight_max_bytes)
        }),
        column(of, "round_trip_p50_ns", 2, |row: &ChannelTimeline| {
            Cell::duration(row.round_trip_p50_ns)
        }),
        column(of, "retransmissions", 1, |row: &ChannelTimeline| Cell::count(row.retransmissions)),
        column(of, "lost_ns", 1, move |row: &ChannelTimeline| after(row.lost_ns)),
        column(of, "lost_reason", 1, |row: &ChannelTimeline| Cell::text(&row.lost_reason)),
        column(of, "repeated", 1, |row: &ChannelTimeline| Cell::count(row.repeated)),
        column(of, "bind_status", 1, |row: &ChannelTimeline| Cell::text(&row.bind_status)),
    ];
    Table::new(
        "Channels of the session",
        "Times count from the beginning of the session.",
        &one.channels,
        columns,
    )
    .cut(16, 64, "select * from channels order by interval_start, connection")
}

fn costs(one: &SessionTimeline) -> Table {
    let of = "cpu_cost";
    let seconds = |value: Option<f64>| match value {
        Some(value) => Cell::duration(Some((value * 1e9) as i64)),
        None => Cell::Empty,
    };
    let columns = vec![
        column(of, "source", 0, |row: &CpuCost| Cell::Text(row.source.clone())),
        column(of, "process", 0, |row: &CpuCost| {
            Cell::Text(row.process.clone().unwrap_or_else(|| "whole machine".to_owned()))
        }),
        column(of, "seconds_per_gb", 0, move |row: &CpuCost| seconds(Some(row.seconds_per_gb))),
        column(of, "user_seconds_per_gb", 1, move |row: &CpuCost| seconds(row.user_seconds_per_gb)),
        column(of, "system_seconds_per_gb", 1, move |row: &CpuCost| {
            seconds(row.system_seconds_per_gb)
        }),
        column(of, "softirq_seconds_per_gb", 1, move |row: &CpuCost| {
            seconds(row.softirq_seconds_per_gb)
        }),
    ];
    Table::new("CPU time for each GB", field("session_timeline", "cpu").help, &one.cpu, columns)
}

fn interfaces(channels: &Channels) -> Table {
    let of = "offered_interface";
    let columns = vec![
        column(of, "server", 1, |row: &OfferedInterface| Cell::Text(row.server.clone())),
        column(of, "client", 1, |row: &OfferedInterface| Cell::Text(row.client.clone())),
        column(of, "index", 2, |row: &OfferedInterface| Cell::Count(row.index)),
        column(of, "address", 0, |row: &OfferedInterface| Cell::Text(row.address.clone())),
        column(of, "link_bits_per_second", 0, |row: &OfferedInterface| {
            let bits = row.link_bits_per_second as f64;
            Cell::Measure(bits, format!("{} Gbit/s", format::number(bits / 1e9)))
        }),
        column(of, "rss_capable", 1, |row: &OfferedInterface| yes(row.rss_capable)),
        column(of, "rdma_capable", 1, |row: &OfferedInterface| yes(row.rdma_capable)),
        column(of, "reason", 0, |row: &OfferedInterface| Cell::Code(row.reason.clone())),
        column(of, "status", 0, |row: &OfferedInterface| Cell::text(&row.status)),
    ];
    Table::new(
        "Interfaces that servers offered",
        field("channels", "interfaces").help,
        &channels.interfaces,
        columns,
    )
    .cut(16, 64, "select * from interfaces")
}

fn yes(value: bool) -> Cell {
    if value { Cell::Text("yes".to_owned()) } else { Cell::Empty }
}
