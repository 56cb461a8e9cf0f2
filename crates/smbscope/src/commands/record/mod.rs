//! `smbscope record`: what happens on a server now, to a dataset that is valid whenever it ends.
//!
//! Owns the loop from a [`Source`] to the dataset.

pub mod args;
mod display;

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use smbscope_report::format;
use smbscope_store::dataset::may_write;
use smbscope_tables::manifest::Manifest;

use super::dataset::{cannot, hint, written};
use super::live::folder::{Folder, keep_private};
use super::live::memory::Limit;
use super::live::source::{Seen, Source};
use super::live::{self, Kept, Opened};
use crate::interrupt;
use crate::options::Talk;
use args::Record;
use display::Display;

/// How often rows go to the dataset, which completes its parts every ten seconds.
const PARTS_EVERY: Duration = Duration::from_secs(1);

/// Records.
pub fn run(args: &Record, talk: Talk) -> anyhow::Result<()> {
    keep_private();
    // Before anything is attached to the server.
    may_write(&args.out, args.force).with_context(|| cannot(&args.out))?;
    let tokenizer = args.anonymize.tokenizer()?;
    let created_at = live::now();
    args.listen.keep_back()?;
    let kept = args.pcap.clone().map(|path| Kept { path, overwrite: args.force });
    let Opened { mut source, from, what, mut memory } = args.listen.open(created_at, kept, talk)?;
    let inputs = live::inputs(&from, created_at);
    Folder::make(&args.out, args.force)?;
    // The folder's thread has the rights that there are now.
    live::give_up_rights(&args.out, talk);
    let mut folder = Folder::create(&args.out, inputs, created_at, args.force, tokenizer)?;
    talk.say(&beginning(args, &what));
    let begin = Instant::now();
    let display = Display::begin(talk);
    let recorded = record(&mut *source, &mut folder, args, &mut memory, &display);
    display.end();
    let took = begin.elapsed();
    let ended = end(source, &mut folder);
    let manifest = folder.finish(recorded.is_ok() && ended.is_ok());
    recorded?;
    let seen = ended?;
    talk.say(&summary(&args.out, &manifest?, &seen, took));
    live::lost(&seen, &memory).iter().for_each(|line| talk.say(line));
    talk.say(&hint(&args.out));
    Ok(())
}

/// Until the time is over or the user asks to end.
fn record(
    source: &mut dyn Source,
    folder: &mut Folder,
    args: &Record,
    memory: &mut Limit,
    display: &Display,
) -> anyhow::Result<()> {
    let begin = Instant::now();
    let mut taken = begin;
    loop {
        let is_full = source.receive()?;
        let is_much = memory.watch(source);
        let is_over = args.duration.is_some_and(|duration| begin.elapsed() >= duration);
        if is_over || interrupt::asked() {
            return Ok(());
        }
        if is_full || is_much || taken.elapsed() >= PARTS_EVERY {
            taken = Instant::now();
            for part in source.parts()? {
                folder.part(part)?;
            }
            if is_much {
                folder.complete_parts()?;
            }
            display.tell(&source.seen());
        }
    }
}

/// The rest, also after an error: what was seen until then stays.
fn end(source: Box<dyn Source>, folder: &mut Folder) -> anyhow::Result<Seen> {
    let (parts, seen) = source.end()?;
    for part in parts {
        folder.part(part)?;
    }
    Ok(seen)
}

fn beginning(args: &Record, what: &str) -> String {
    let until = match args.duration {
        Some(duration) => {
            format::duration(i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX)) + " long"
        }
        None => "until Ctrl-C".to_owned(),
    };
    format!("recording {what} to {}, {until}", args.out.display())
}

fn summary(out: &Path, manifest: &Manifest, seen: &Seen, took: Duration) -> String {
    format!(
        "{} from {} in {:.1} s, {} dropped",
        written(out, manifest),
        seen.text(),
        took.as_secs_f64(),
        format::count(seen.dropped()),
    )
}
