//! Shares of a CPU's time by samples.
//!
//! A clock that does not tick on an idle CPU takes fewer samples there than its rate times the length of the
//! trace. What is missing is idle time if smbscope's own recorder took the samples, or if the context switches of the
//! trace show that much idle time. Otherwise samples may be missing for another reason, and shares are parts of the samples.

use super::data::{SampledShares, Section};

/// Less missing time than this part of the trace does not matter.
const MISSING_SHARE: f64 = 0.05;
/// A clock is not faster than its period says by more than this.
const EXCESS: f64 = 1.1;

/// Time that samples represent, by what they hit.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Weights {
    counts: [u64; SECTIONS],
    times: [i64; SECTIONS],
    /// Samples of which it is not known what time they represent.
    unweighted: u64,
}

const SECTIONS: usize = 6;

/// What else is known of the CPU.
#[derive(Clone, Copy, Debug)]
pub(super) struct Known {
    pub(super) length_ns: i64,
    /// Whether idle time is what samples miss.
    pub(super) is_own: bool,
    /// Whether it is known which samples hit handlers of interrupts, and which deferred work.
    pub(super) during: (bool, bool),
    /// By context switches.
    pub(super) idle_ns: Option<i64>,
}

impl Weights {
    pub(super) fn add(&mut self, section: Section, weight_ns: Option<i64>) {
        let place = match section {
            Section::Interrupt => 0,
            Section::Deferred => 1,
            Section::Kernel => 2,
            Section::User => 3,
            Section::Idle => 4,
            Section::Unknown => 5,
        };
        let weight = weight_ns.filter(|weight| *weight > 0);
        self.unweighted += u64::from(weight.is_none());
        if let (Some(count), Some(time)) = (self.counts.get_mut(place), self.times.get_mut(place)) {
            *count += 1;
            *time = time.saturating_add(weight.unwrap_or(0));
        }
    }

    /// Whether any sample hit handlers of interrupts, and deferred work.
    pub(super) fn during(&self) -> (bool, bool) {
        let has = |place: usize| self.counts.get(place).is_some_and(|count| *count > 0);
        (has(0), has(1))
    }

    /// The shares; `None` without samples.
    pub(super) fn shares(&self, known: Known) -> Option<SampledShares> {
        let all: u64 = self.counts.iter().sum();
        if all == 0 {
            return None;
        }
        let parts = match self.unweighted {
            0 => self.times.map(|time| time as f64),
            _ => self.counts.map(|count| count as f64),
        };
        let sum: f64 = parts.iter().sum();
        let length = known.length_ns as f64;
        let missing = length - sum;
        let slack = MISSING_SHARE * length;
        let is_idle =
            known.is_own || known.idle_ns.is_some_and(|idle| missing <= idle as f64 + slack);
        let of_time = self.unweighted == 0
            && length > 0.0
            && sum <= EXCESS * length
            && (missing <= slack || is_idle);
        let added = if of_time && is_idle {
            known.idle_ns.map_or(missing, |idle| missing.min(idle as f64 + slack)).max(0.0)
        } else {
            0.0
        };
        let whole = sum + added;
        let [interrupt, deferred, kernel, user, idle, unknown] = parts.map(|part| part / whole);
        let idle = idle + added / whole;
        let interrupt = Some(interrupt).filter(|_| known.during.0);
        let deferred = Some(deferred).filter(|_| known.during.1);
        Some(SampledShares { of_time, interrupt, deferred, kernel, user, idle, unknown })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known(is_own: bool, idle_ns: Option<i64>) -> Known {
        Known { length_ns: 1_000, is_own, during: (true, true), idle_ns }
    }

    #[test]
    fn samples_that_an_idle_processor_does_not_take_are_idle_time() {
        let mut weights = Weights::default();
        assert_eq!(weights.shares(known(true, None)), None);
        (0..20).for_each(|_| weights.add(Section::User, Some(10)));
        (0..5).for_each(|_| weights.add(Section::Deferred, Some(10)));
        let own = weights.shares(known(true, None)).unwrap();
        assert!(own.of_time && (own.user - 0.2).abs() < 1e-9 && (own.idle - 0.75).abs() < 1e-9);
        // Of another recorder: by its context switches, or not at all.
        assert_eq!(weights.shares(known(false, Some(740))), Some(own));
        for idle in [None, Some(100)] {
            let of_samples = weights.shares(known(false, idle)).unwrap();
            assert!(!of_samples.of_time && (of_samples.user - 0.8).abs() < 1e-9);
            assert!((of_samples.busy() - 0.2).abs() < 1e-9 && of_samples.idle == 0.0);
        }
    }

    #[test]
    fn samples_without_a_time_are_counted() {
        let mut weights = Weights::default();
        weights.add(Section::User, Some(1_000));
        weights.add(Section::Idle, None);
        weights.add(Section::Unknown, None);
        weights.add(Section::Interrupt, None);
        let shares = weights.shares(known(true, Some(1_000))).unwrap();
        assert!(!shares.of_time);
        assert_eq!((shares.user, shares.idle, shares.unknown), (0.25, 0.25, 0.25));
    }
}
