//! `smbscope top`: what happens on a server now, on a screen or as printed tables.
//!
//! Owns what is shown and what keys do. The numbers are `model::live`'s, what is looked at
//! [`commands::live`](crate::commands::live)'s, which `record` shares.

pub mod args;
mod batch;
mod collect;
mod draw;
mod numbers;
mod parts;
mod screen;
mod state;

use std::path::Path;
use std::time::{Duration, Instant};

use smbscope_analysis::live::{Live, Options};

use super::live::folder::keep_private;
use super::live::{self, Opened};
use crate::format::TextFormat;
use crate::options::Talk;
use crate::terminal;
use args::Top;
use collect::{Collector, Recordings};
use state::State;

/// When to end without being asked to.
pub struct Limits {
    /// When it began.
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

/// Shows it.
pub fn run(args: &Top, talk: Talk) -> anyhow::Result<()> {
    keep_private();
    let tokenizer = args.anonymize.tokenizer()?;
    args.listen.keep_back()?;
    let Opened { source, from, what, memory } = args.listen.open(live::now(), None, talk)?;
    // Recordings are made later.
    let out = args.out.as_deref().and_then(Path::parent);
    let out = out.filter(|out| !out.as_os_str().is_empty()).unwrap_or(Path::new("."));
    live::give_up_rights(out, talk);
    let recordings = Recordings { from, out: args.out.clone(), made: 0 };
    let mut collector = Collector::new(source, memory, recordings, tokenizer);
    let slot_ns = i64::try_from(args.interval.as_nanos()).unwrap_or(i64::MAX);
    let moment = Live::new(Options { slot_ns, ..Options::default() }, live::now());
    let limits = Limits { begin: Instant::now(), duration: args.duration, count: args.count };
    let state = State {
        key: args.key(),
        sort: args.order(),
        reverse: args.reverse,
        span: args.span(),
        filter: args.filter.clone(),
        ..State::default()
    };
    if is_screen(args) {
        let said = screen::run(&mut collector, moment, &what, state, &limits)?;
        said.iter().for_each(|line| talk.say(line));
    } else {
        talk.say(&format!("looking at {what}"));
        batch::run(&mut collector, moment, &state, &limits, (args.format, args.rows))?;
    }
    collector.lost().iter().for_each(|line| talk.say(line));
    Ok(())
}

/// Whether there is a terminal that can be drawn on, and that is wanted.
fn is_screen(args: &Top) -> bool {
    let is_dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
    !args.batch && args.format == TextFormat::Text && terminal::stdout_is_terminal() && !is_dumb
}
