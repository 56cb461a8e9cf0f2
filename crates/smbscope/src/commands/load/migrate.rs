//! `smbscope load --workload migrate`: arguments to a plan, the live line, and the result.

use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde_json::{Value, json};
use smbscope_load::migrate::{
    ChannelOutcome, MigrationObserver, MigrationOutcome, MigrationProgress,
};
use smbscope_load::workload::{Direction, Migration};
use smbscope_report::format;
use smbscope_report::table::{Column, lines};

use super::args::Run;
use super::args::migrate::check;
use super::target::Destination;
use crate::exit::{Code, Failure};
use crate::format::TextFormat;
use crate::interrupt;
use crate::options::Verbosity;
use crate::output::Output;
use crate::pipeline::measure::migrate::{self as pipeline, BulkPlan};
use crate::terminal;

/// Time between two lines if there is no terminal.
const LINE_EVERY: Duration = Duration::from_secs(10);
/// Credits for each request of 64 KiB in flight, so that credits do not limit a channel.
const CREDITS_MAX: u32 = 8192;

/// Moves the data and prints the result.
pub fn run(
    args: &Run,
    migration: Migration,
    workload_text: String,
    verbosity: Verbosity,
) -> anyhow::Result<()> {
    check(args)?;
    let mut place = args.place.resolve()?;
    let mut config = args.client.config_of_one(place.kerberos.clone())?;
    place.follow_links(&config, args.client.timeout, verbosity)?;
    let Destination { target, credentials, line, smbd, .. } = place;
    let needed = u32::from(migration.depth) * migration.block_bytes.div_ceil(65_536) + 8;
    config.credits = config.credits.max(needed.min(CREDITS_MAX) as u16);
    config.path_timeout = Some(args.bulk.path_timeout);
    config.leases = false;
    let plan = BulkPlan {
        credential: credentials.of_user(1),
        config,
        migration: migration.clone(),
        workload_text,
        seed: args.what.seed,
        paths: args.bulk.paths(args.client.channels.as_ref(), target.port),
        choice: args.bulk.choice(),
        verify: args.bulk.verify,
        keep: args.bulk.keep,
        timeout: args.client.timeout,
        threads: args.course.threads,
        line,
        smbd,
        metrics: args.record.metrics.clone(),
        out: args.record.out.clone(),
        force: args.record.force,
        target,
    };
    let mut screen = Screen::new(verbosity);
    let (outcome, written) = pipeline::run(plan, &mut screen)?;
    screen.end();
    let mut output = Output::stdout();
    match args.record.format {
        TextFormat::Text => output.text(&text(&outcome, &migration))?,
        TextFormat::Json => {
            output.text(&smbscope_report::json_text(&value(&outcome, &migration)))?
        }
    }
    output.finish()?;
    written?;
    if let Some(out) = &args.record.out {
        let out = out.display();
        verbosity.say(&format!("recorded in {out}: smbscope report {out} --html report.html"));
    }
    if interrupt::asked() {
        let message = "interrupted; the results so far are shown and recorded";
        return Err(Failure::new(Code::Interrupted, message).into());
    }
    if let Some(trouble) = &outcome.trouble {
        return Err(Failure::new(Code::Runtime, trouble.clone()).into());
    }
    match outcome.verified.as_ref().map(|verified| verified.different_blocks) {
        None | Some(0) => Ok(()),
        Some(_) => Err(Failure::new(
            Code::Runtime,
            "the data on the share is not what was written: see the list of blocks that differ",
        )
        .into()),
    }
}

/// Shows a run on standard error: a live line on a terminal, otherwise one every ten seconds.
struct Screen {
    verbosity: Verbosity,
    bar: Option<ProgressBar>,
    line: Instant,
    /// Bytes of each channel at the last report, and when that was.
    before: (Instant, Vec<(u32, u64)>),
}

impl Screen {
    fn new(verbosity: Verbosity) -> Screen {
        let live = !verbosity.quiet && !verbosity.no_progress && terminal::stderr_is_terminal();
        let bar = live.then(|| {
            let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
            match ProgressStyle::with_template("{msg}") {
                Ok(style) => bar.with_style(style),
                Err(_) => bar,
            }
        });
        let now = Instant::now();
        Screen { verbosity, bar, line: now, before: (now, Vec::new()) }
    }

    fn end(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }

    /// What is done, and the rate of each channel since the last report.
    fn text(&mut self, progress: &MigrationProgress, separator: &str) -> String {
        let now = Instant::now();
        let seconds = (now - self.before.0).as_secs_f64().max(1e-3);
        let mut channels = Vec::new();
        for state in &progress.channels {
            let known = self.before.1.iter().find(|(channel, _)| *channel == state.channel);
            let moved = state.bytes - known.map_or(0, |(_, bytes)| *bytes).min(state.bytes);
            let rate = rate(moved, Duration::from_secs_f64(seconds));
            let lost = if state.lost_at.is_some() { " (lost)" } else { "" };
            channels.push(format!("{} {} {rate}{lost}", state.channel, state.server.0));
        }
        let bytes = progress.channels.iter().map(|state| (state.channel, state.bytes)).collect();
        self.before = (now, bytes);
        format!(
            "{} {:.0} s: {} of {}{separator}{}",
            progress.phase.name(),
            progress.elapsed.as_secs_f64(),
            format::bytes(progress.bytes),
            format::bytes(progress.total),
            channels.join(separator),
        )
    }
}

impl MigrationObserver for Screen {
    fn say(&mut self, text: &str) {
        match &self.bar {
            Some(bar) => bar.suspend(|| self.verbosity.say(text)),
            None => self.verbosity.say(text),
        }
    }

    fn progress(&mut self, progress: &MigrationProgress) {
        if self.bar.is_some() {
            let text = self.text(progress, "\n  ");
            if let Some(bar) = &self.bar {
                bar.set_message(text);
            }
        } else if self.line.elapsed() >= LINE_EVERY {
            self.line = Instant::now();
            let text = self.text(progress, "; ");
            self.verbosity.say(&text);
        }
    }
}

/// `1.25 GB/s`: decimal units, as links have them.
fn rate(bytes: u64, took: Duration) -> String {
    let per_second = bytes as f64 / took.as_secs_f64().max(1e-9);
    match per_second {
        rate if rate >= 1e9 => format!("{:.2} GB/s", rate / 1e9),
        rate => format!("{:.1} MB/s", rate / 1e6),
    }
}

fn milliseconds(ns: i64) -> String {
    format::duration(ns)
}

fn direction(migration: &Migration) -> &'static str {
    match migration.direction {
        Direction::Out => "to the share",
        Direction::In => "from the share",
        Direction::Both => "to and from the share",
    }
}

/// The result for people.
fn text(outcome: &MigrationOutcome, migration: &Migration) -> String {
    let mut out = String::new();
    let took = outcome.took.as_secs_f64();
    if outcome.bytes == 0 {
        out += "Nothing was moved.\n";
    } else {
        let gigabits = outcome.bytes as f64 * 8.0 / took.max(1e-9) / 1e9;
        out += &format!(
            "{} {} in {took:.2} s: {}, {gigabits:.2} Gbit/s\n",
            format::bytes(outcome.bytes),
            direction(migration),
            rate(outcome.bytes, outcome.took),
        );
    }
    let protection = &outcome.protection;
    let protected = match (&protection.signing, &protection.cipher) {
        (_, Some(cipher)) => format!("encrypted with {cipher}"),
        (Some(algorithm), None) => format!("signed with {algorithm}"),
        (None, None) => "neither signed nor encrypted".to_owned(),
    };
    out += &format!("SMB {}, {protected}", protection.dialect.as_deref().unwrap_or("?"));
    if let (Some((user, kernel)), true) = (outcome.cpu, outcome.bytes > 0) {
        let per_gigabyte = |time: Duration| time.as_secs_f64() / (outcome.bytes as f64 / 1e9);
        out += &format!(
            "; CPU time of this client {:.2} s per GB ({:.2} user, {:.2} kernel)",
            per_gigabyte(user + kernel),
            per_gigabyte(user),
            per_gigabyte(kernel)
        );
    }
    out += "\n";
    if migration.direction != Direction::In && outcome.bytes > 0 {
        let flush = i64::try_from(outcome.flush.as_nanos()).unwrap_or(i64::MAX);
        out += &format!("Flushed to the server's disk in {}\n", milliseconds(flush));
    }
    out += "\n";
    out += &channel_table(outcome);
    if outcome.repeated > 0 {
        out += &format!(
            "\n{} requests were repeated because their channel was lost.\n",
            format::count(outcome.repeated)
        );
    }
    out += &unused(outcome);
    if let Some(verified) = &outcome.verified {
        out += &match verified.different_blocks {
            0 => format!("\nVerified: {} are what was written.\n", format::bytes(verified.bytes)),
            different => {
                let list: Vec<String> = verified
                    .different
                    .iter()
                    .map(|(path, offset)| format!("  {path} at offset {offset}\n"))
                    .collect();
                let different = format::count(different);
                format!("\nVERIFICATION FAILED: {different} blocks differ:\n{}", list.concat())
            }
        };
        for (path, hash) in &verified.sha256 {
            out += &format!("  SHA-256 {hash}  {path}\n");
        }
    }
    out
}

fn channel_table(outcome: &MigrationOutcome) -> String {
    let (begin, _) = outcome.window;
    let columns = [
        Column::right("channel"),
        Column::left("from"),
        Column::left("to"),
        Column::right("opened"),
        Column::right("usable"),
        Column::right("carried"),
        Column::right("share"),
        Column::right("mean rate"),
        Column::right("round trip"),
        Column::right("retransmitted"),
        Column::left("state"),
    ];
    let since = |time: i64| match time - begin {
        // Nothing was moved.
        _ if begin == 0 => "-".to_owned(),
        before if before <= 0 => "before".to_owned(),
        after => milliseconds(after),
    };
    let row = |one: &ChannelOutcome| {
        let share = one.moved_bytes as f64 / outcome.bytes.max(1) as f64;
        let state = &one.state;
        vec![
            state.channel.to_string(),
            format::sanitized(&state.client.0),
            format::sanitized(&state.server.0),
            since(state.opened_at),
            since(state.bound_at),
            format::bytes(one.moved_bytes),
            format::share(share),
            rate(one.moved_bytes, outcome.took),
            one.round_trip_ns.map_or("-".to_owned(), milliseconds),
            one.retransmissions.map_or("-".to_owned(), format::count),
            if one.lost.is_some() { "lost" } else { "" }.to_owned(),
        ]
    };
    let rows: Vec<Vec<String>> = outcome.channels.iter().map(row).collect();
    lines(&columns, &rows, ("", ""), None)
}

/// Interfaces that were offered and not used, and why.
fn unused(outcome: &MigrationOutcome) -> String {
    let mut out = String::new();
    if let Some(reason) = &outcome.not_listed {
        out += &format!("  other interfaces: {reason}\n");
    }
    let unused = outcome.interfaces.iter().filter(|one| one.channels == 0);
    for one in unused {
        let address = one.judged.offered.address.map_or("?".to_owned(), |it| it.to_string());
        out += &format!("  {address}: {}\n", one.sentence());
    }
    // Addresses that are in no list, and more channels to one that is used.
    for (to, reason) in &outcome.refused {
        let is_said = outcome
            .interfaces
            .iter()
            .any(|one| one.channels == 0 && one.judged.offered.address == Some(to.ip()));
        if !is_said {
            out += &format!("  {to}: {reason}\n");
        }
    }
    if out.is_empty() { out } else { format!("\nNot used:\n{out}") }
}

/// The result for programs.
fn value(outcome: &MigrationOutcome, migration: &Migration) -> Value {
    let seconds = |time: Duration| time.as_secs_f64();
    let nanoseconds = |time: Duration| i64::try_from(time.as_nanos()).unwrap_or(i64::MAX);
    let channels = outcome.channels.iter().map(|one| {
        let state = &one.state;
        json!({
            "channel": state.channel,
            "connection": state.connection,
            "client": state.client.0,
            "client_port": state.client.1,
            "server": state.server.0,
            "server_port": state.server.1,
            "opened_at": state.opened_at,
            "bound_at": state.bound_at,
            "lost_at": state.lost_at,
            "lost_reason": one.lost,
            "moved_bytes": one.moved_bytes,
            "round_trip_ns": one.round_trip_ns,
            "retransmissions": one.retransmissions,
        })
    });
    let interfaces = outcome.interfaces.iter().map(|one| {
        let offered = &one.judged.offered;
        json!({
            "address": offered.address.map(|address| address.to_string()),
            "index": offered.index,
            "link_bits_per_second": offered.link_speed,
            "channels": one.channels,
            "reason": one.word(),
            "explanation": one.sentence(),
        })
    });
    let verified = outcome.verified.as_ref().map(|verified| {
        json!({
            "bytes": verified.bytes,
            "different_blocks": verified.different_blocks,
            "sha256": verified.sha256.iter().map(|(path, hash)| json!({"path": path, "sha256": hash})).collect::<Vec<_>>(),
        })
    });
    json!({
        "workload": migration.name,
        "direction": migration.direction.name(),
        "block_bytes": migration.block_bytes,
        "depth": migration.depth,
        "streams": migration.streams,
        "bytes": outcome.bytes,
        "duration_ns": nanoseconds(outcome.took),
        "flush_ns": nanoseconds(outcome.flush),
        "bytes_per_second": outcome.bytes as f64 / seconds(outcome.took).max(1e-9),
        "started_at": outcome.window.0,
        "ended_at": outcome.window.1,
        "client_cpu_user_ns": outcome.cpu.map(|cpu| nanoseconds(cpu.0)),
        "client_cpu_kernel_ns": outcome.cpu.map(|cpu| nanoseconds(cpu.1)),
        "dialect": outcome.protection.dialect,
        "signing": outcome.protection.signing,
        "cipher": outcome.protection.cipher,
        "repeated_requests": outcome.repeated,
        "channels": channels.collect::<Vec<_>>(),
        "interfaces": interfaces.collect::<Vec<_>>(),
        "interfaces_unknown_because": outcome.not_listed,
        "refused": outcome.refused.iter().map(|(to, reason)| json!({"address": to.to_string(), "reason": reason})).collect::<Vec<_>>(),
        "verified": verified,
        "trouble": outcome.trouble,
    })
}
