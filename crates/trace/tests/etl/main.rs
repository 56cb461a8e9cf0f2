//! The reader of Windows' event trace logs: logs that a builder makes (`smbscope_testing::etl`), the same ones
//! damaged, and real ones of other people, which are read in place and skipped where they are not.

// Only tests call these helpers, and a test may panic.
#![allow(clippy::unwrap_used)]

mod built;
mod damaged;
mod fixture;
mod real;

use smbscope_trace::etl::{self, Error, Log};
use smbscope_trace::event::{Event, Interrupt, Sample};
use std::io::Cursor;

/// All events of a log, and what the reader says about it.
fn read(bytes: &[u8]) -> Result<(Vec<Event>, Log), Error> {
    let mut events = Vec::new();
    let log = etl::read(Cursor::new(bytes), |event| events.push(event))?;
    Ok((events, log))
}

fn interrupts(events: &[Event]) -> impl Iterator<Item = &Interrupt> {
    events.iter().filter_map(|event| match event {
        Event::Interrupt(interrupt) => Some(interrupt),
        _ => None,
    })
}

fn samples(events: &[Event]) -> impl Iterator<Item = &Sample> {
    events.iter().filter_map(|event| match event {
        Event::Sample(sample) => Some(sample),
        _ => None,
    })
}

/// Duration of an interrupt.
fn duration_ns(interrupt: &Interrupt) -> i64 {
    interrupt.end_ns - interrupt.start_ns.unwrap()
}
