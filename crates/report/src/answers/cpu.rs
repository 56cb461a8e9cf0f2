//! The report of a CPU trace: each CPU's time, durations by name, devices, coverage.

mod calls;
mod causes;
mod comparison;
mod coverage;
mod explain;
pub(crate) mod fields;
mod inside;
mod over_time;
mod ranks;
mod sampled;
mod strip;
mod symbols;
mod tasks;
mod totals;
mod verdict;
mod waiting;

pub use comparison::CpuComparison;
pub use explain::CpuExplanation;
use serde_json::{Value, json};
use smbscope_analysis::processors::{
    Device, IdleState, InterruptGroup, PowerReport, Processor, Report, SampledShares,
};
pub(crate) use waiting::cpu_appendix;

use crate::answers::cpu::fields::{column, distribution};
use crate::answers::recording::meta::Meta;
use crate::document::{Block, Cell, Document, Section, Table};
use crate::render::Answer;
use crate::value::format;

/// Rows of tables in a text and on a page.
const IN_TEXT: usize = 12;
const IN_PAGE: usize = 200;

/// What a CPU trace shows.
#[derive(Clone, Copy, Debug)]
pub struct CpuAnswer<'a> {
    pub report: &'a Report,
    pub meta: &'a Meta,
}

impl Answer for CpuAnswer<'_> {
    fn document(&self) -> Option<Document> {
        Some(document(self.report, self.meta))
    }

    fn json(&self) -> serde_json::Result<Value> {
        let mut value = serde_json::to_value(self.report)?;
        if let Some(object) = value.as_object_mut() {
            object.insert("version".to_owned(), json!(self.meta.version));
            object.insert("inputs".to_owned(), json!(self.meta.inputs));
            object
                .extend(self.meta.period.iter().map(|period| ("period".to_owned(), json!(period))));
        }
        Ok(value)
    }
}

fn document(report: &Report, meta: &Meta) -> Document {
    let totals = report.totals.as_ref().filter(|_| report.interrupts.is_empty());
    let mut sections = Vec::new();
    if !report.findings.is_empty() {
        sections.push(causes::section(report));
    }
    match totals {
        Some(totals) => sections.extend(totals::sections(totals)),
        None => {
            if !report.processors.is_empty() {
                sections.push(processors(report));
            }
            if !report.interrupts.is_empty() {
                sections.push(interrupts(report));
            }
            sections.extend(report.totals.as_ref().and_then(totals::modules));
        }
    }
    sections.extend(inside::section(report));
    sections.extend(tasks::section(report));
    if !report.devices.is_empty() {
        sections.push(devices(report));
    }
    // The lightest state alone says nothing.
    let says = |power: &&PowerReport| {
        power.lowest_khz.is_some() || power.states.iter().any(|state| state.state > 0)
    };
    sections.extend(report.power.as_ref().filter(says).map(idle));
    sections.push(coverage::section(report));
    Document {
        brand: "smbscope report",
        title: meta.inputs.join(", "),
        span: span(report, meta),
        verdict: verdict::verdict(report),
        tiles: match totals {
            Some(totals) => totals::tiles(totals),
            None => verdict::tiles(report),
        },
        notices: coverage::notices(report),
        sections,
        clock: meta.clock.clone(),
        inputs: meta.inputs.clone(),
        version: meta.version.clone(),
        ..Document::default()
    }
}

/// How much the report covers.
fn span(report: &Report, meta: &Meta) -> String {
    format!(
        "{} of {}{}",
        format::duration(report.length_ns),
        verdict::cpus(report.processors.len() as u64),
        meta.period.as_ref().map_or_else(String::new, |period| format!(" ({period})"))
    )
}

fn share(share: Option<f64>) -> Cell {
    share.map_or(Cell::Empty, Cell::Share)
}

fn processors(report: &Report) -> Section {
    let of = "processor";
    let rows = &report.processors;
    let mut columns = vec![column(of, "cpu", 0, |row: &Processor| Cell::Text(row.cpu.to_string()))];
    type Number = fn(&Processor) -> Option<u64>;
    let places: [(&str, Number); 4] = [
        ("node", |row| row.node),
        ("socket", |row| row.socket),
        ("core", |row| row.core),
        ("thread", |row| row.thread),
    ];
    for (name, value) in places {
        if rows.iter().any(|row| value(row).is_some()) {
            columns.push(column(of, name, 2, move |row: &Processor| Cell::count(value(row))));
        }
    }
    columns.push(column(of, "deferred_share", 0, |row: &Processor| share(row.deferred_share)));
    columns.push(column(of, "interrupt_share", 0, |row: &Processor| share(row.interrupt_share)));
    if rows.iter().any(|row| row.idle_ns.is_some()) {
        columns.push(column(of, "thread_share", 0, |row: &Processor| share(row.thread_share)));
        columns.push(column(of, "idle_share", 0, |row: &Processor| share(row.idle_share)));
    }
    if rows.iter().any(|row| row.sampled.is_some()) {
        type Share = fn(&SampledShares) -> Option<f64>;
        // What events do not say is more important.
        let rank = |is_known: bool| if is_known { 2 } else { 0 };
        let events = rank(report.recorded.any());
        let kinds: [(&str, u8, Share); 6] = [
            ("user", 1, |shares| Some(shares.user)),
            ("kernel", 1, |shares| Some(shares.kernel)),
            ("deferred", events, |shares| shares.deferred),
            ("interrupt", events, |shares| shares.interrupt),
            ("idle", rank(rows.iter().any(|row| row.idle_ns.is_some())), |shares| {
                Some(shares.idle)
            }),
            ("unknown", 2, |shares| Some(shares.unknown)),
        ];
        let is_shown = |value: Share| {
            rows.iter().any(|row| row.sampled.as_ref().and_then(value).unwrap_or(0.0) > 0.0)
        };
        for (name, rank, value) in kinds {
            if name == "unknown" && !is_shown(value) {
                continue;
            }
            let by_samples = move |row: &Processor| share(row.sampled.as_ref().and_then(value));
            columns.push(column("sampled_shares", name, rank, by_samples).grouped("By samples"));
        }
    }
    if report.recorded.any() {
        columns
            .push(column(of, "deferred_ns", 1, |row: &Processor| Cell::duration(row.deferred_ns)));
        columns.push(column(of, "interrupt_ns", 1, |row: &Processor| {
            Cell::duration(row.interrupt_ns)
        }));
        columns.push(column(of, "interrupts", 2, |row: &Processor| Cell::count(row.interrupts)));
    }
    let times = Table::new("The time of each CPU", "", rows, columns);
    let times = times.cut(2 * IN_TEXT, IN_PAGE, "SELECT * FROM cpus");
    let mut blocks: Vec<_> = over_time::strip(report).map(Block::drawing).into_iter().collect();
    blocks.push(Block::Table(times));
    if rows.iter().any(|row| row.samples.all > 0) {
        blocks.extend(coverage::sampled(report).map(Block::Note));
        blocks.push(Block::fold("What samples hit on each CPU", vec![Block::Table(samples(rows))]));
    }
    Section {
        id: "processors",
        title: "CPUs",
        help: "What each CPU did. Deferred work (DPCs, softirqs) and handlers of interrupts run before any thread; each is counted without what interrupted it.",
        blocks,
    }
}

fn samples(rows: &[Processor]) -> Table {
    type Number = fn(&Processor) -> u64;
    let kinds: [(&str, Number); 6] = [
        ("all", |row| row.samples.all),
        ("user", |row| row.samples.user),
        ("kernel", |row| row.samples.kernel),
        ("deferred", |row| row.samples.deferred),
        ("interrupt", |row| row.samples.interrupt),
        ("idle", |row| row.samples.idle),
    ];
    let cpu = column("processor", "cpu", 0, |row: &Processor| Cell::Text(row.cpu.to_string()));
    let kinds = kinds.map(|(name, value)| {
        column("sample_counts", name, 1, move |row: &Processor| Cell::some(value(row)))
    });
    let columns = std::iter::once(cpu).chain(kinds).collect();
    Table::new("What samples hit", "", rows, columns).cut(
        2 * IN_TEXT,
        IN_PAGE,
        "SELECT cpu, during, count(*) FROM samples GROUP BY cpu, during",
    )
}

fn interrupts(report: &Report) -> Section {
    let of = "interrupt_group";
    let rows = &report.interrupts;
    let mut columns = vec![
        column(of, "kind", 0, |row: &InterruptGroup| Cell::Code(row.kind.clone())),
        column(of, "name", 0, |row: &InterruptGroup| Cell::text(&row.name)),
        column(of, "exclusive_ns", 0, |row: &InterruptGroup| Cell::Duration(row.exclusive_ns)),
        column(of, "share", 2, |row: &InterruptGroup| share(row.share)),
        column(of, "count", 0, |row: &InterruptGroup| Cell::Count(row.count)),
    ];
    let mean = column("distribution", "mean_ns", 0, |row: &InterruptGroup| {
        Cell::duration(row.duration.mean_ns)
    });
    columns.push(mean.grouped("Duration"));
    // Their number is that of the runs.
    columns.extend(
        distribution(of, "duration", [3, 1, 2, 0, 0], |row: &InterruptGroup| &row.duration)
            .into_iter()
            .skip(1),
    );
    columns.push(column(of, "over_limit", 0, |row: &InterruptGroup| Cell::some(row.over_limit)));
    columns.push(column(of, "over_limit_ns", 1, |row: &InterruptGroup| match row.over_limit {
        0 => Cell::Empty,
        _ => Cell::Duration(row.over_limit_ns),
    }));
    if rows.iter().any(|row| row.work.is_some()) {
        columns.push(column(of, "work", 1, |row: &InterruptGroup| Cell::count(row.work)));
    }
    columns.push(column(of, "cpus", 0, |row: &InterruptGroup| Cell::Text(cpus_of(row))));
    let table = Table::new("Durations by name", "", rows, columns);
    let table = table.cut(IN_TEXT, IN_PAGE, "SELECT * FROM interrupts ORDER BY duration_ns DESC");
    let mut blocks = vec![Block::Table(table)];
    let delayed: Vec<_> = rows.iter().filter(|row| row.delay.n > 0).cloned().collect();
    if !delayed.is_empty() {
        let mut columns = vec![
            column(of, "kind", 0, |row: &InterruptGroup| Cell::Code(row.kind.clone())),
            column(of, "name", 0, |row: &InterruptGroup| Cell::text(&row.name)),
        ];
        columns
            .extend(distribution(of, "delay", [0, 0, 0, 0, 0], |row: &InterruptGroup| &row.delay));
        let table = Table::new("From the request to the beginning", "", &delayed, columns);
        let sql = "SELECT * FROM interrupts ORDER BY delay_ns DESC NULLS LAST";
        blocks.push(Block::Table(table.cut(IN_TEXT, IN_PAGE, sql)));
    }
    blocks.extend(over_time::durations(report));
    let limits = report.limits;
    blocks.push(Block::Note(format!(
        "Of {} possible. The limit is {} for deferred work and {} for handlers of interrupts.",
        format::duration(report.possible_ns),
        format::duration(limits.deferred_ns),
        format::duration(limits.interrupt_ns)
    )));
    Section {
        id: "interrupts",
        title: "Interrupts and deferred work",
        help: "Time excludes what ran within; durations are from the beginning to the end.",
        blocks,
    }
}

fn devices(report: &Report) -> Section {
    let of = "device";
    let columns = vec![
        column(of, "device", 0, |row: &Device| Cell::Code(row.device.clone())),
        column(of, "count", 0, |row: &Device| Cell::Count(row.count)),
        column(of, "exclusive_ns", 1, |row: &Device| Cell::Duration(row.exclusive_ns)),
        column(of, "work", 1, |row: &Device| Cell::count(row.work)),
        column(of, "queues", 1, |row: &Device| Cell::some(row.queues)),
        column(of, "busiest_share", 0, |row: &Device| Cell::Share(row.busiest_share)),
        column(of, "nodes", 1, |row: &Device| match row.nodes.as_slice() {
            [] => Cell::Empty,
            nodes => Cell::Text(cpu_list(nodes)),
        }),
        column(of, "own_node", 2, |row: &Device| Cell::count(row.own_node)),
        column(of, "remote_ns", 2, |row: &Device| {
            Cell::duration(Some(row.remote_ns).filter(|ns| *ns > 0))
        }),
        column(of, "cpus", 0, |row: &Device| {
            let cpus: Vec<_> = row.cpus.iter().map(|one| one.cpu).collect();
            Cell::Text(cpu_list(&cpus))
        }),
    ];
    let table = Table::new("The work for each device", "", &report.devices, columns);
    let sql = "SELECT device, cpu, count(*) FROM interrupts GROUP BY device, cpu";
    Section {
        id: "devices",
        title: "Devices",
        help: "On which CPUs the handlers and polls of each device ran: one CPU does the receive work of a device without several queues.",
        blocks: vec![Block::Table(table.cut(IN_TEXT, IN_PAGE, sql))],
    }
}

fn idle(power: &PowerReport) -> Section {
    let of = "idle_state";
    let columns = vec![
        column(of, "state", 0, |row: &IdleState| Cell::Text(row.state.to_string())),
        column(of, "count", 0, |row: &IdleState| Cell::Count(row.count)),
        column(of, "duration_ns", 0, |row: &IdleState| Cell::Duration(row.duration_ns)),
        column(of, "longest_ns", 1, |row: &IdleState| Cell::Duration(row.longest_ns)),
        column(of, "cpus", 1, |row: &IdleState| Cell::Count(row.cpus)),
    ];
    let table = Table::new("Idle states of all CPUs", "", &power.states, columns);
    let sql = "SELECT cpu, value, sum(duration_ns) FROM power WHERE kind = 'c_state' GROUP BY 1, 2";
    let mut blocks = vec![Block::Table(table.cut(IN_TEXT, IN_PAGE, sql))];
    if let (Some(low), Some(high)) = (power.lowest_khz, power.highest_khz) {
        let mhz = |khz: u64| format!("{} MHz", format::count(khz / 1_000));
        blocks.push(Block::Note(format!("Frequencies from {} to {}.", mhz(low), mhz(high))));
    }
    if let (Some(idle), Some(busy)) = (power.delay_when_idle.p95_ns, power.delay_when_busy.p95_ns) {
        blocks.push(Block::Note(format!(
            "From the request to the beginning, p95: {} on CPUs that were idle, {} on others.",
            format::duration(idle),
            format::duration(busy)
        )));
    }
    Section {
        id: "power",
        title: "Power saving",
        help: "A CPU needs the longer to begin work, the deeper the idle state that it has to leave.",
        blocks,
    }
}

/// The CPUs of a name.
fn cpus_of(group: &InterruptGroup) -> String {
    cpu_list(&group.cpus.iter().map(|one| one.cpu).collect::<Vec<_>>())
}

/// Numbers of CPUs as ranges: `0–3, 8`.
fn cpu_list(cpus: &[u64]) -> String {
    /// Most ranges that are written.
    const RANGES: usize = 8;
    let mut sorted = cpus.to_vec();
    sorted.sort_unstable();
    let mut ranges: Vec<(u64, u64)> = Vec::new();
    for cpu in sorted {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == cpu => *last = cpu,
            _ => ranges.push((cpu, cpu)),
        }
    }
    let words = ranges.iter().take(RANGES).map(|&(first, last)| match last - first {
        0 => first.to_string(),
        1 => format!("{first}, {last}"),
        _ => format!("{first}–{last}"),
    });
    let mut text = words.collect::<Vec<_>>().join(", ");
    if ranges.len() > RANGES {
        text.push_str(" ...");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processors_are_listed_as_ranges() {
        assert_eq!(cpu_list(&[6, 2, 0, 4]), "0, 2, 4, 6");
        assert_eq!(cpu_list(&[3, 2, 1, 8, 9]), "1–3, 8, 9");
        let scattered: Vec<_> = (0..20).map(|cpu| cpu * 2).collect();
        assert!(cpu_list(&scattered).ends_with("14 ..."));
    }
}
