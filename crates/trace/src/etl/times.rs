//! Which times of events can be: a damaged byte in a time would otherwise stretch the whole trace.
//!
//! The header of a log says when it began and ended. In the logs that were compared no event is before that, and the
//! last ones are up to 1.5 s after it. The events of a buffer are in the order of their times.

use super::log_header::LogHeader;
use crate::order::{Order, TOLERANCE_NS};

/// How far an event may be before the begin and after the end that the header says.
const BEGIN_TOLERANCE_NS: i64 = 1_000_000_000;
const END_TOLERANCE_NS: i64 = 10_000_000_000;
/// How far buffers can be outside of what the header says, and from each other there.
const EXTENSION_MAX_NS: i64 = 3_600_000_000_000;
/// That many buffers with one or two events outside of the header's times are not damaged.
const OUTSIDE_MIN: usize = 3;
/// Where the header does not say when the log ended: the longest time without a buffer.
const GAP_MAX_NS: i64 = 24 * 3_600 * 1_000_000_000;

/// The earliest and latest time that an event can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    pub first: i64,
    pub last: i64,
}

impl Bounds {
    /// Everything.
    pub const ALL: Bounds = Bounds { first: i64::MIN, last: i64::MAX };

    pub fn contain(&self, ticks: i64) -> bool {
        (self.first..=self.last).contains(&ticks)
    }

    /// Bounds of a log whose buffers have these times. The header is believed if at least half of them are within
    /// what it says.
    fn from_header(header: &LogHeader, spans: &[Span]) -> Bounds {
        let ticks = |ns| header.clock.ticks(ns);
        if let Some((start, end)) = header.ticks {
            // The frequency of cycles is known in MHz.
            let inexact = end.saturating_sub(start) / 64;
            let widened = |bounds: Bounds| Bounds {
                first: bounds.first.saturating_sub(ticks(BEGIN_TOLERANCE_NS)),
                last: bounds.last.saturating_add(ticks(END_TOLERANCE_NS)).saturating_add(inexact),
            };
            let said = widened(Bounds { first: start, last: end });
            let agree = spans.iter().filter(|span| said.contain(span.inner)).count();
            if 2 * agree >= spans.len() {
                let extended = Bounds { first: start, last: end };
                return widened(extended.extended(ticks(EXTENSION_MAX_NS), spans));
            }
        }
        let mut inner: Vec<i64> = spans.iter().map(|span| span.inner).collect();
        inner.sort_unstable();
        let gap = ticks(GAP_MAX_NS);
        let middle = inner.len() / 2;
        let (before, after) = inner.split_at(middle);
        let Some(&median) = after.first() else { return Bounds::ALL };
        let reach = |from: i64, one: &i64| {
            (one.saturating_sub(from).saturating_abs() <= gap).then_some(*one)
        };
        let first = before.iter().rev().try_fold(median, |from, one| reach(from, one).ok_or(from));
        let last = after.iter().try_fold(median, |from, one| reach(from, one).ok_or(from));
        let value = |found| match found {
            Ok(ticks) | Err(ticks) => ticks,
        };
        Bounds { first: value(first).saturating_sub(gap), last: value(last).saturating_add(gap) }
    }
}

impl Bounds {
    /// With the buffers that are not further from the bounds than `reach`: the header of a log that still grew, or was
    /// merged, is older than its last events. A buffer counts if it has an event between two others, or if there are
    /// some such buffers: damage is single.
    fn extended(mut self, reach: i64, spans: &[Span]) -> Bounds {
        let beyond = |one: i64| one.saturating_sub(self.last).max(self.first.saturating_sub(one));
        let unsure = spans.iter().filter(|span| span.count <= 2);
        let outside = unsure.filter(|span| (1..=reach).contains(&beyond(span.inner))).count();
        let mut inner: Vec<i64> = Vec::new();
        for span in spans {
            if span.count > 2 {
                // These have neighbours.
                inner.extend([span.second, span.before_last]);
            } else if outside >= OUTSIDE_MIN {
                inner.push(span.inner);
            }
        }
        inner.sort_unstable();
        for &one in &inner {
            if one.saturating_sub(self.last) <= reach {
                self.last = self.last.max(one);
            }
        }
        for &one in inner.iter().rev() {
            if self.first.saturating_sub(one) <= reach {
                self.first = self.first.min(one);
            }
        }
        self
    }
}

/// Times of the events of one buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    pub first: i64,
    second: i64,
    /// Time of an event that is neither the first nor the last one, if there are three.
    inner: i64,
    before_last: i64,
    pub last: i64,
    count: u64,
}

impl Span {
    fn new(ticks: i64) -> Span {
        Span {
            first: ticks,
            second: ticks,
            inner: ticks,
            before_last: ticks,
            last: ticks,
            count: 1,
        }
    }

    /// Takes the next event of the buffer.
    pub fn add(span: &mut Option<Span>, ticks: i64) {
        let Some(span) = span else {
            *span = Some(Span::new(ticks));
            return;
        };
        if span.count == 1 {
            span.second = ticks;
        }
        if span.count > 1 && span.count.is_power_of_two() {
            span.inner = span.last;
        }
        span.count += 1;
        span.before_last = span.last;
        span.last = ticks;
    }

    /// The times within `bounds`; `None` if the inner ones are outside.
    fn within(mut self, bounds: &Bounds) -> Option<Span> {
        if !bounds.contain(self.first) {
            self.first = self.second;
        }
        if !bounds.contain(self.last) {
            self.last = self.before_last;
        }
        (bounds.contain(self.first) && bounds.contain(self.last)).then_some(self)
    }
}

/// Bounds of a log, and first and last event within them.
pub fn bounds(header: &LogHeader, spans: &[Span]) -> (Bounds, Option<(i64, i64)>) {
    let bounds = Bounds::from_header(header, spans);
    let within = spans.iter().filter_map(|span| span.within(&bounds));
    let range = within.fold(None, |range: Option<(i64, i64)>, span| {
        let (first, last) = range.unwrap_or((span.first, span.last));
        Some((first.min(span.first), last.max(span.last)))
    });
    (bounds, range)
}

/// The order of the events of a buffer. A log can have no event for days.
pub fn order(header: &LogHeader) -> Order {
    Order::new(header.clock.ticks(TOLERANCE_NS), i64::MAX)
}

/// What runs one after the other on each CPU.
///
/// A DPC ends before the next one begins, and no handler that it interrupts is left when it ends.
#[derive(Debug)]
pub struct Deferred {
    tolerance: i64,
    bounds: Bounds,
    /// End of the last DPC of each CPU.
    ended: Vec<i64>,
}

impl Deferred {
    pub fn new(header: &LogHeader, bounds: Bounds, cpus: usize) -> Deferred {
        let tolerance = header.clock.ticks(TOLERANCE_NS);
        Deferred { tolerance, bounds, ended: vec![i64::MIN; cpus] }
    }

    /// Whether a handler or a DPC of a CPU can have run from `start` to `end`. `is_threaded` DPCs can be
    /// interrupted by others; `is_dpc` says whether it is another DPC.
    pub fn check(
        &mut self,
        cpu: u32,
        start: i64,
        end: i64,
        is_threaded: bool,
        is_dpc: bool,
    ) -> bool {
        if start > end || start < self.bounds.first {
            return false;
        }
        let Some(ended) = self.ended.get_mut(cpu as usize) else { return true };
        if is_threaded {
            return true;
        }
        if start.saturating_add(self.tolerance) < *ended {
            return false;
        }
        if is_dpc {
            *ended = end.max(*ended);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::super::clock::{Clock, ClockKind};
    use super::*;

    const SECOND: i64 = 10_000_000;

    fn header(ticks: Option<(i64, i64)>) -> LogHeader {
        let clock = Clock::new(ClockKind::PerformanceCounter, 0, 0, SECOND);
        LogHeader { ticks, ..LogHeader::for_tests(clock) }
    }

    fn spans(buffers: &[&[i64]]) -> Vec<Span> {
        let spans = buffers.iter().filter_map(|times| {
            let mut span = None;
            times.iter().for_each(|time| Span::add(&mut span, time * SECOND));
            span
        });
        spans.collect()
    }

    #[test]
    fn times_outside_of_the_log_are_not_its_bounds() {
        let spans = spans(&[&[-900, 1, 2, 3], &[1, 2, 3, 99_999], &[5], &[400], &[6, 7]]);
        let (bounds, range) = super::bounds(&header(Some((0, 10 * SECOND))), &spans);
        assert_eq!(bounds, Bounds { first: -SECOND, last: 20 * SECOND + 10 * SECOND / 64 });
        assert_eq!(range, Some((SECOND, 7 * SECOND)));
    }

    #[test]
    fn a_log_can_be_longer_than_its_header_says() {
        let spans = spans(&[&[1, 2, 3], &[8, 9, 10], &[5], &[300, 301, 302], &[999_999]]);
        let (bounds, range) = super::bounds(&header(Some((0, 10 * SECOND))), &spans);
        let last = 311 * SECOND + 10 * SECOND / 64;
        assert_eq!(bounds, Bounds { first: -SECOND, last });
        assert_eq!(range, Some((SECOND, 302 * SECOND)));
    }

    #[test]
    fn a_damaged_header_is_not_believed() {
        let day = 24 * 3_600;
        let spans = spans(&[&[100, 101, 102], &[103, 104, 105], &[5 * day, 5 * day, 5 * day]]);
        for said in [Some((9 * SECOND, 10 * SECOND)), None] {
            let (bounds, range) = super::bounds(&header(said), &spans);
            assert!(bounds.contain(0) && !bounds.contain(3 * day * SECOND), "{bounds:?}");
            assert_eq!(range, Some((100 * SECOND, 105 * SECOND)));
        }
        assert_eq!(super::bounds(&header(None), &[]), (Bounds::ALL, None));
    }

    #[test]
    fn a_dpc_does_not_begin_before_the_one_before_it_ended() {
        let bounds = Bounds { first: 0, last: 100 * SECOND };
        let mut deferred = Deferred::new(&header(None), bounds, 2);
        assert!(deferred.check(0, SECOND, 2 * SECOND, false, true));
        assert!(!deferred.check(0, SECOND / 2, 3 * SECOND, false, true));
        assert!(!deferred.check(0, SECOND / 2, 3 * SECOND, false, false));
        assert!(deferred.check(0, SECOND / 2, 3 * SECOND, true, true));
        assert!(deferred.check(1, SECOND / 2, 3 * SECOND, false, true));
        assert!(!deferred.check(1, -1, 3 * SECOND, false, true));
        assert!(!deferred.check(1, 4 * SECOND, 3 * SECOND, false, true));
        assert!(deferred.check(9, 4 * SECOND, 5 * SECOND, false, true));
    }
}
