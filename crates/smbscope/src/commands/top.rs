//! `smbscope top`: what happens on a server now, on a screen or as printed tables.
//!
//! Owns what is shown and what keys do. The numbers are computed by `analysis::live`; the source is opened by
//! [`commands::live`](crate::commands::live), which `record` uses, too.

pub mod args;
mod batch;
#[cfg(feature = "probe")]
mod cpu;
mod draw;
mod numbers;
mod parts;
mod screen;
mod state;

use std::path::Path;
use std::time::{Duration, Instant};

use smbscope_analysis::live::{Live, Options};
use smbscope_report::format;

use super::dataset::{hint, written};
use super::live::{self, Opened};
use crate::exit::Failure;
use crate::format::TextFormat;
use crate::options::Verbosity;
use crate::pipeline::record::collector::{Collector, Finished, Recordings};
use crate::pipeline::record::folder::keep_private;
use crate::pipeline::record::now;
use crate::terminal;
use args::Top;
use state::State;

/// When to end without a request of the user.
pub struct Limits {
    /// The start time.
    begin: Instant,
    duration: Option<Duration>,
    count: Option<u64>,
}

impl Limits {
    fn are_over(&self, intervals: u64) -> bool {
        self.duration.is_some_and(|duration| self.begin.elapsed() >= duration)
            || self.count.is_some_and(|count| intervals >= count)
    }
}

/// Shows what happens now.
pub fn run(args: &Top, verbosity: Verbosity) -> anyhow::Result<()> {
    if args.cpu {
        #[cfg(feature = "probe")]
        return cpu::run(args, verbosity);
        #[cfg(not(feature = "probe"))]
        return Err(Failure::usage(
            "--cpu: this smbscope was built without eBPF (it needs Linux, clang, libelf and cargo's --features probe)",
        ));
    }
    keep_private();
    let tokenizer = args.anonymize.tokenizer()?;
    if args.listen.no_probe && args.listen.interface.is_none() {
        return Err(Failure::usage("--no-probe: there is nothing to show without --interface"));
    }
    args.listen.schedule(false, verbosity)?;
    let opened = args.listen.open(now(), None, verbosity)?;
    let Opened { source, from, what, filter, memory } =
        args.listen.metered(opened, tokenizer.as_ref(), verbosity)?;
    let filter = filter.map(|filter| filter.words(tokenizer.is_some(), 0));
    // Recordings are made later, after capabilities were dropped.
    let out = args.out.as_deref().and_then(Path::parent);
    let out = out.filter(|out| !out.as_os_str().is_empty()).unwrap_or(Path::new("."));
    live::drop_capabilities(out, None, verbosity);
    let recordings = Recordings { from, filter: filter.clone(), out: args.out.clone(), made: 0 };
    let mut collector = Collector::new(source, memory, recordings, tokenizer);
    let slot_ns = i64::try_from(args.interval.as_nanos()).unwrap_or(i64::MAX);
    let moment = Live::new(Options { slot_ns, ..Options::default() }, now());
    let limits = Limits { begin: Instant::now(), duration: args.duration, count: args.count };
    let state = State {
        key: args.by,
        sort: args.sort,
        reverse: args.reverse,
        span: args.span(),
        filter: args.filter.clone(),
        ..State::default()
    };
    if is_screen(args) {
        let said = screen::run(&mut collector, moment, &what, state, &limits)?;
        said.iter().for_each(|line| verbosity.say(line));
    } else {
        verbosity.say(&format!("observing {what}"));
        batch::run(&mut collector, moment, &state, &limits, (args.format, args.rows))?;
    }
    let received = collector.received();
    let kept = live::kept(&received, filter.as_deref());
    let said = kept.into_iter().chain(live::losses(&received, collector.memory()));
    said.for_each(|line| verbosity.say(&line));
    Ok(())
}

/// Whether to draw on the terminal.
fn is_screen(args: &Top) -> bool {
    let is_dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
    !args.batch && args.format == TextFormat::Text && terminal::stdout_is_terminal() && !is_dumb
}

/// What to print about a recording that was completed.
fn finished(recording: &Finished) -> Vec<String> {
    let Finished { path, manifest, took, dropped } = recording;
    let (took, dropped) = (took.as_secs_f64(), format::count(*dropped));
    vec![
        format!("{} in {took:.1} s, {dropped} dropped", written(path, manifest)),
        hint(path, manifest),
    ]
}
