//! When the server answered, and when it did not: outages that ended, and the one that lasts.

use smbscope_tables::description::Outage;

use crate::stats::Failure;

/// Outages that are kept.
const OUTAGES_MAX: usize = 1_000;

/// Attempts to connect that failed since the server answered last.
#[derive(Clone, Copy, Debug)]
pub struct Silence {
    /// Begin of the first attempt that failed, ns since 1970.
    pub since: i64,
    /// How many failed.
    pub failures: u32,
    /// How the last one failed.
    pub failure: Failure,
}

impl Silence {
    /// Failed attempts after which a server is said to have stopped answering: a single one may be a
    /// connection that was in flight when the server closed it.
    const FAILURES: u32 = 3;
    /// The least time that they cover: a server that restarts faster is not gone.
    const DURATION_NS_MIN: i64 = 5_000_000_000;

    fn is_gone(&self, now: i64) -> bool {
        self.failures >= Silence::FAILURES
            && now.saturating_sub(self.since) >= Silence::DURATION_NS_MIN
    }
}

/// The server's answers to all users, as far as outages need them. Times are ns since 1970.
#[derive(Debug, Default)]
pub struct Answers {
    last: Option<i64>,
    silence: Option<Silence>,
    /// Outages that ended.
    pub outages: Vec<Outage>,
}

impl Answers {
    /// An attempt to connect, begun at `began`, failed without an answer.
    pub fn failed(&mut self, began: i64, failure: Failure) {
        let known = self.silence.get_or_insert(Silence { since: began, failures: 0, failure });
        known.failures = known.failures.saturating_add(1);
        known.failure = failure;
    }

    /// The server answered at `time`. Rows are counted when their scenario ends, so that `time` may be older
    /// than failures that are known already.
    pub fn answered(&mut self, time: i64) {
        let last = self.last;
        self.last = Some(last.map_or(time, |last| last.max(time)));
        let Some(silence) = self.silence.filter(|silence| time > silence.since) else { return };
        self.silence = None;
        if silence.failures >= Silence::FAILURES && self.outages.len() < OUTAGES_MAX {
            let start_ns = last.unwrap_or(silence.since).min(silence.since);
            self.outages.push(Outage { start_ns, end_ns: time });
        }
    }

    /// Since when the server does not answer any more; `None` while it answers.
    pub fn gone(&self, now: i64) -> Option<Silence> {
        self.silence.filter(|silence| silence.is_gone(now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::FailureKind;

    const REFUSED: Failure = Failure::Other(FailureKind::Refused);

    #[test]
    fn a_server_is_gone_after_several_failures_over_some_time() {
        let silence = |failures| Silence { since: 1_000, failures, failure: REFUSED };
        assert!(!silence(2).is_gone(i64::MAX));
        assert!(!silence(3).is_gone(5_000_000_999));
        assert!(silence(3).is_gone(5_000_001_000));
    }

    #[test]
    fn an_outage_lasts_from_the_last_answer_to_the_next() {
        let mut answers = Answers::default();
        answers.answered(100);
        answers.failed(300, REFUSED);
        // Counted late.
        answers.answered(200);
        answers.failed(400, REFUSED);
        answers.failed(500, REFUSED);
        assert!(
            answers.outages.is_empty() && answers.gone(400 + Silence::DURATION_NS_MIN).is_some()
        );
        answers.answered(9_000);
        assert_eq!(answers.outages, [Outage { start_ns: 200, end_ns: 9_000 }]);
        assert!(answers.gone(i64::MAX).is_none());
        // A single connection that failed does not count.
        answers.failed(9_500, REFUSED);
        answers.answered(9_600);
        assert_eq!(answers.outages.len(), 1);
    }
}
