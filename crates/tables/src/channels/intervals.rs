//! The intervals of one channel that are not over yet.

use std::collections::VecDeque;

use super::{Direction, Network, Transfer};

/// Intervals over which one operation is spread at most, its last ones; what it did before is in
/// the first of them.
const SPREAD_MAX: i64 = 1_024;

/// Intervals of a channel that wait to be over. More come only with times that jump.
const INTERVALS_MAX: usize = 4 * SPREAD_MAX as usize;

/// What happened in one interval.
#[derive(Clone, Debug, Default)]
pub struct Interval {
    /// A connection was opened or bound, or a Read or Write was in flight.
    is_needed: bool,
    pub written: u64,
    pub read: u64,
    pub operations: u64,
    /// Sum of the times of Reads and Writes within the interval.
    pub busy_ns: i128,
    /// Likewise for the times in which their payload was on its way.
    pub transferring_ns: i128,
    pub outstanding_max: Option<u64>,
    pub in_flight_max: Option<u64>,
    pub round_trip_ns: Option<i64>,
    pub retransmissions: Option<u64>,
}

/// In the order of time, each with its number: the time of its beginning divided by its length.
#[derive(Clone, Debug, Default)]
pub struct Intervals(VecDeque<(i64, Interval)>);

impl Intervals {
    /// Makes sure that there is a row for a moment.
    pub fn touch(&mut self, length: i64, at: i64) {
        self.at(at.div_euclid(length)).is_needed = true;
    }

    /// Adds a Read or Write whose payload was on the wire between two times.
    pub fn transfer(&mut self, length: i64, transfer: &Transfer, on_wire: (i64, i64)) {
        let end = transfer.response.1;
        let last = self.at(end.div_euclid(length));
        last.operations += 1;
        last.is_needed = true;
        if let Some(others) = transfer.outstanding {
            let interval = self.at(transfer.request.0.div_euclid(length));
            interval.outstanding_max = interval.outstanding_max.max(Some(u64::from(others) + 1));
            interval.is_needed = true;
        }
        self.spread(length, on_wire, transfer.bytes, |interval, bytes| {
            interval.is_needed = true;
            match transfer.direction {
                Direction::Write => interval.written += bytes,
                Direction::Read => interval.read += bytes,
            }
        });
        let transferring = on_wire.1.saturating_sub(on_wire.0).max(0) as u64;
        if transfer.bytes > 0 {
            self.spread(length, on_wire, transferring, |interval, part| {
                interval.transferring_ns += i128::from(part);
            });
        }
        let busy = end.saturating_sub(transfer.request.0).max(0) as u64;
        self.spread(length, (transfer.request.0, end), busy, |interval, part| {
            interval.busy_ns += i128::from(part);
            interval.is_needed = true;
        });
    }

    /// Adds what is known of TCP at a moment.
    pub fn network(&mut self, length: i64, at: i64, state: &Network) {
        let interval = self.at(at.div_euclid(length));
        interval.in_flight_max = interval.in_flight_max.max(state.bytes_in_flight);
        let known = interval.round_trip_ns.into_iter().chain(state.round_trip_ns);
        interval.round_trip_ns = known.min();
        if let Some(more) = state.retransmissions {
            *interval.retransmissions.get_or_insert(0) += more;
        }
    }

    /// Takes the first interval if it ended at `until`, with its beginning.
    pub fn pop(&mut self, length: i64, until: i64) -> Option<(i64, Interval)> {
        loop {
            let start = self.0.front()?.0.saturating_mul(length);
            if start.saturating_add(length) > until {
                return None;
            }
            let (_, interval) = self.0.pop_front()?;
            // Of a connection that moves no data only losses are kept.
            if interval.is_needed || interval.retransmissions > Some(0) {
                return Some((start, interval));
            }
        }
    }

    /// Spreads an amount evenly over a time, without losing anything by rounding.
    fn spread(
        &mut self,
        length: i64,
        (begin, end): (i64, i64),
        amount: u64,
        mut add: impl FnMut(&mut Interval, u64),
    ) {
        if amount == 0 {
            return;
        }
        let last = end.div_euclid(length);
        let first = begin.div_euclid(length).max(last - SPREAD_MAX + 1);
        if first >= last {
            add(self.at(last), amount);
            return;
        }
        let duration = i128::from(end) - i128::from(begin);
        let mut before = 0;
        for number in first..=last {
            let passed = (i128::from(number) + 1) * i128::from(length) - i128::from(begin);
            let until = if number == last {
                amount
            } else {
                // Less than the amount, because the interval ends before the transfer.
                (i128::from(amount) * passed / duration) as u64
            };
            if until > before {
                add(self.at(number), until - before);
            }
            before = until;
        }
    }

    /// The interval of that number; beyond the limit, the one after it or the last one.
    fn at(&mut self, number: i64) -> &mut Interval {
        // Nearly always it is the last one.
        let place = match self.0.back() {
            Some(&(last, _)) if last == number => self.0.len() - 1,
            Some(&(last, _)) if last < number => self.0.len(),
            _ => self.0.partition_point(|one| one.0 < number),
        };
        if self.0.get(place).is_none_or(|one| one.0 != number) && self.0.len() < INTERVALS_MAX {
            self.0.insert(place, (number, Interval::default()));
        }
        let place = place.min(self.0.len() - 1);
        &mut self.0[place].1
    }
}
