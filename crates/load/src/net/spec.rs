//! What a test does: direction, streams, write size, length and pace. The sender chooses it; the
//! listener checks it before it does anything.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::NetError;

/// Most streams in one direction (iperf3 has the same limit).
pub const STREAMS_MAX: u32 = 128;
/// Longest write.
pub const WRITE_MAX: u32 = 16 << 20;
/// Longest phase.
pub const DURATION_MAX: Duration = Duration::from_secs(24 * 3600);
/// Shortest interval between two samples.
pub const INTERVAL_MIN: Duration = Duration::from_millis(100);
/// Round trips of each size.
pub const ROUND_TRIPS_MAX: u32 = 100_000;

/// The direction of data, seen from the machine that runs `net send`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// From `net send` to `net listen`.
    #[default]
    Send,
    /// From `net listen` to `net send`.
    Receive,
}

impl Direction {
    /// Its name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Direction::Send => "send",
            Direction::Receive => "receive",
        }
    }
}

/// When a phase ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Length {
    /// After this time (ns).
    DurationNs(u64),
    /// After this number of bytes in each direction, all streams together.
    Bytes(u64),
}

/// One test.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spec {
    /// Directions, in the order in which they run.
    pub directions: Vec<Direction>,
    /// Whether they run at the same time.
    pub together: bool,
    /// Connections in each direction.
    pub streams: u32,
    /// Bytes of one write that `net send` does.
    pub send_write_bytes: u32,
    /// Bytes of one write that `net listen` does.
    pub receive_write_bytes: u32,
    /// Length of each phase.
    pub length: Length,
    /// Bits per second of all streams of a direction.
    pub pace_bits_per_second: Option<u64>,
    /// Time between two samples of each stream, ns.
    pub interval_ns: u64,
    /// Round trips of each size; 0 leaves them out.
    pub round_trips: u32,
}

impl Default for Spec {
    fn default() -> Spec {
        Spec {
            directions: vec![Direction::Send, Direction::Receive],
            together: false,
            streams: 1,
            send_write_bytes: 128 << 10,
            receive_write_bytes: 128 << 10,
            length: Length::DurationNs(10_000_000_000),
            pace_bits_per_second: None,
            interval_ns: 1_000_000_000,
            round_trips: 200,
        }
    }
}

impl Spec {
    /// Refuses what is out of range. The error names the option.
    pub fn check(&self) -> Result<(), NetError> {
        let wrong = |message: String| Err(NetError::Spec(message));
        if self.directions.is_empty() || self.directions.len() > 2 {
            return wrong("--direction: one or two directions are possible".to_owned());
        }
        if self.together && self.directions.len() < 2 {
            return wrong("--together needs both directions (--direction both)".to_owned());
        }
        if !(1..=STREAMS_MAX).contains(&self.streams) {
            return wrong(format!("--streams {}: 1 to {STREAMS_MAX} are possible", self.streams));
        }
        for bytes in [self.send_write_bytes, self.receive_write_bytes] {
            if !(1..=WRITE_MAX).contains(&bytes) {
                return wrong(format!(
                    "--write-size {bytes}B: 1B to {}MiB are possible",
                    WRITE_MAX >> 20
                ));
            }
        }
        match self.length {
            Length::DurationNs(ns) if ns < self.interval_ns => {
                return wrong("--duration: it must not be shorter than --interval".to_owned());
            }
            Length::DurationNs(ns) if Duration::from_nanos(ns) > DURATION_MAX => {
                return wrong("--duration: at most 24h is possible".to_owned());
            }
            Length::Bytes(bytes) if bytes < u64::from(self.streams) || bytes > 1 << 50 => {
                return wrong(
                    "--bytes: one byte for each stream to 1024TiB is possible".to_owned(),
                );
            }
            _ => {}
        }
        if self.pace_bits_per_second.is_some_and(|pace| !(1000..=1 << 43).contains(&pace)) {
            return wrong("--pace: 1kbit to 8796gbit is possible".to_owned());
        }
        let interval = Duration::from_nanos(self.interval_ns);
        if interval < INTERVAL_MIN || interval > Duration::from_secs(3600) {
            return wrong("--interval: 100ms to 1h is possible".to_owned());
        }
        if self.round_trips > ROUND_TRIPS_MAX {
            return wrong(format!(
                "--round-trips: at most {ROUND_TRIPS_MAX} of each size is possible"
            ));
        }
        Ok(())
    }

    /// Directions of each phase.
    pub fn phases(&self) -> Vec<Vec<Direction>> {
        if self.together {
            vec![self.directions.clone()]
        } else {
            self.directions.iter().map(|direction| vec![*direction]).collect()
        }
    }

    /// Bytes of one write in a direction.
    pub fn write_bytes(&self, direction: Direction) -> u32 {
        match direction {
            Direction::Send => self.send_write_bytes,
            Direction::Receive => self.receive_write_bytes,
        }
    }

    /// Bytes that a stream sends before it ends; `None` where time ends it.
    pub(super) fn stream_bytes(&self, stream: u32) -> Option<u64> {
        let Length::Bytes(bytes) = self.length else { return None };
        let streams = u64::from(self.streams.max(1));
        Some(bytes / streams + u64::from(u64::from(stream) < bytes % streams))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_out_of_range_is_refused_with_its_option() {
        assert!(Spec::default().check().is_ok());
        type Change = fn(&mut Spec);
        let wrong: [(&str, Change); 9] = [
            ("--direction", |spec| spec.directions.clear()),
            ("--together", |spec| (spec.together, spec.directions) = (true, vec![Direction::Send])),
            ("--streams", |spec| spec.streams = 129),
            ("--write-size", |spec| spec.send_write_bytes = 0),
            ("--duration", |spec| spec.length = Length::DurationNs(u64::MAX)),
            ("--bytes", |spec| spec.length = Length::Bytes(0)),
            ("--pace", |spec| spec.pace_bits_per_second = Some(1)),
            ("--interval", |spec| spec.interval_ns = 1),
            ("--round-trips", |spec| spec.round_trips = u32::MAX),
        ];
        for (option, change) in wrong {
            let mut spec = Spec::default();
            change(&mut spec);
            let error = spec.check().unwrap_err().to_string();
            assert!(error.starts_with(option), "{option}: {error}");
        }
    }

    #[test]
    fn bytes_are_divided_among_streams_without_a_rest() {
        let spec = Spec { streams: 3, length: Length::Bytes(10), ..Spec::default() };
        let each: Vec<_> = (0..3).map(|stream| spec.stream_bytes(stream).unwrap()).collect();
        assert_eq!(each, [4, 3, 3]);
        assert_eq!(Spec::default().stream_bytes(0), None);
    }

    #[test]
    fn directions_are_phases_unless_they_run_together() {
        let spec = Spec::default();
        assert_eq!(spec.phases(), [vec![Direction::Send], vec![Direction::Receive]]);
        let spec = Spec { together: true, ..spec };
        assert_eq!(spec.phases().len(), 1);
    }
}
