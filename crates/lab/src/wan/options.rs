//! The properties of a link: round trip, distance, jitter, rate, queue, loss, each separately for the
//! two directions where they may differ, from options or from one text (`rtt=20ms,rate=45mbit`).
//!
//! Owns: the words, their defaults, contradictions, and the two resulting [`Path`]s. It does not own
//! how units are read (`units`).

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

use super::line::Path;
use smbscope_tables::quantity::{
    UnitError, duration_text, parse_distance, parse_duration, parse_rate, parse_share, parse_size,
    rate_text, size_text,
};

/// Speed of light in fibre: 200,000 km/s (refractive index 1.5), 5 ns per metre.
pub const FIBRE_NS_PER_M: u64 = 5;
/// Default queue, as time at the rate.
const QUEUE_DEFAULT_NS: u64 = 100_000_000;
/// The smallest default queue: TCP sends bursts of ten segments, some of them at once.
const QUEUE_DEFAULT_MIN_BYTES: u64 = 64 << 10;
/// How an unlimited rate is written if the other direction is limited.
const UNLIMITED: &str = "unlimited";
/// How the default queue is written if the other direction has its own.
const DEFAULT: &str = "default";
/// Memory for each direction: 80 ms of 25 Gb/s.
const MEMORY_BYTES: u64 = 256 << 20;

/// A value for each direction: from the first end to the second (client to server), and back. Written
/// `20mbit/100mbit`, or once for both.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Both<T> {
    /// From the first end to the second: from the client to the server.
    pub there: T,
    /// From the second end to the first: from the server to the client.
    pub back: T,
}

impl<T: Copy> Both<T> {
    /// The same value in both directions.
    pub fn same(value: T) -> Both<T> {
        Both { there: value, back: value }
    }

    /// Reads `VALUE` or `THERE/BACK`.
    pub fn parse<E>(text: &str, read: impl Fn(&str) -> Result<T, E>) -> Result<Both<T>, E> {
        // The slash of `10MB/s` separates nothing.
        let mut slashes = text.match_indices('/').map(|(place, _)| place);
        let slash = slashes.find(|&place| !text[place + 1..].trim_start().starts_with('s'));
        match slash {
            None => read(text).map(Both::same),
            Some(place) => {
                Ok(Both { there: read(&text[..place])?, back: read(&text[place + 1..])? })
            }
        }
    }
}

/// The limit of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Queue {
    /// Bytes of frames.
    Bytes(u64),
    /// Bytes that the link sends in this time (ns).
    Time(u64),
}

impl FromStr for Queue {
    type Err = UnitError;

    /// `256KiB` or `100ms`.
    fn from_str(text: &str) -> Result<Queue, UnitError> {
        match (parse_size(text), parse_duration(text)) {
            (Ok(bytes), _) => Ok(Queue::Bytes(bytes)),
            (_, Ok(ns)) => Ok(Queue::Time(ns)),
            (Err(error), _) => Err(UnitError {
                kind: "queue",
                why: format!("{}; or as the time that it lasts at the rate, 100ms", error.why),
                ..error
            }),
        }
    }
}

/// The properties of a link.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// Round trip without serialisation and queueing (ns); half of it each way.
    pub rtt_ns: u64,
    /// Length of fibre (m), which adds 10 ns to the round trip for each metre.
    pub distance_m: u64,
    /// Largest deviation of the delay in each direction (ns).
    pub jitter_ns: Both<u64>,
    /// Bits per second of whole Ethernet frames without their check sequence; `None` is as fast as this
    /// machine.
    pub rate_bits: Both<Option<u64>>,
    /// Limit of the queue; `None` is 100 ms at the rate, at least 64 KiB.
    pub queue: Both<Option<Queue>>,
    /// Share of lost frames, 0 to 1.
    pub loss: Both<f64>,
    /// Mean number of frames lost in a row; `None` for independent losses.
    pub loss_burst: Option<f64>,
    /// Bytes added to each frame when its transmission time is computed.
    pub overhead_bytes: i32,
    /// Seed of loss and jitter.
    pub seed: u64,
}

impl Default for Options {
    /// A link without delay, limit or loss.
    fn default() -> Options {
        Options {
            rtt_ns: 0,
            distance_m: 0,
            jitter_ns: Both::same(0),
            rate_bits: Both::same(None),
            queue: Both::same(None),
            loss: Both::same(0.0),
            loss_burst: None,
            overhead_bytes: 0,
            seed: 1,
        }
    }
}

/// What is wrong with a link's description.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum OptionsError {
    /// A quantity cannot be read.
    #[error("{key}: {error}")]
    Unit {
        /// The quantity.
        key: String,
        /// The reason.
        error: UnitError,
    },
    /// A word that is not a property of a link.
    #[error(
        "unknown link property `{0}`: use rtt, distance, jitter, rate, queue, loss, loss-burst, overhead, seed, for example rtt=20ms,rate=45mbit"
    )]
    Word(String),
    /// A word has no value, is given twice, or has an invalid number.
    #[error("{key}: {why}")]
    Value {
        /// The word.
        key: String,
        /// What is wrong with it.
        why: String,
    },
}

impl Options {
    /// The round trip of an idle link, distance included (ns).
    pub fn round_trip_ns(&self) -> u64 {
        self.rtt_ns.saturating_add(self.distance_m.saturating_mul(2 * FIBRE_NS_PER_M))
    }

    /// Checks for contradictions.
    pub fn check(&self) -> Result<(), OptionsError> {
        let wrong = |key: &str, why: String| Err(OptionsError::Value { key: key.to_owned(), why });
        for loss in [self.loss.there, self.loss.back] {
            if let Some(mean) = self.loss_burst {
                if !(mean >= 1.0 && mean.is_finite()) {
                    return wrong("loss-burst", format!("{mean} frames in a row: at least 1"));
                }
                if loss > mean / (mean + 1.0) {
                    let most = mean / (mean + 1.0) * 100.0;
                    let why =
                        format!("with bursts of {mean} frames at most {most:.1}% can be lost");
                    return wrong("loss", why);
                }
            }
        }
        let queued = self.queue.there.is_some() || self.queue.back.is_some();
        if queued && self.rate_bits == Both::same(None) {
            let why = "a queue needs a rate: add `rate=`, or omit this option";
            return wrong("queue", why.to_owned());
        }
        Ok(())
    }

    /// The properties of each direction. An odd nanosecond of the round trip belongs to the first direction.
    pub fn paths(&self) -> Both<Path> {
        let rtt_ns = self.round_trip_ns();
        let path = |delay_ns, jitter_ns, rate_bits, queue, loss| Path {
            delay_ns,
            jitter_ns,
            rate_bits,
            queue_bytes: queue_bytes(queue, rate_bits),
            loss,
            loss_burst: self.loss_burst,
            overhead_bytes: self.overhead_bytes,
            memory_bytes: MEMORY_BYTES,
        };
        let (jitter, rate, queue, loss) = (self.jitter_ns, self.rate_bits, self.queue, self.loss);
        Both {
            there: path(rtt_ns.div_ceil(2), jitter.there, rate.there, queue.there, loss.there),
            back: path(rtt_ns / 2, jitter.back, rate.back, queue.back, loss.back),
        }
    }

    /// Sets one property from its word.
    pub fn set(&mut self, key: &str, value: &str) -> Result<(), OptionsError> {
        let unit = |error| OptionsError::Unit { key: key.to_owned(), error };
        let number = |example: &str| OptionsError::Value {
            key: key.to_owned(),
            why: format!("`{}` is not a number like {example}", value.escape_debug()),
        };
        match key {
            "rtt" => self.rtt_ns = parse_duration(value).map_err(unit)?,
            "distance" => self.distance_m = parse_distance(value).map_err(unit)?,
            "jitter" => self.jitter_ns = Both::parse(value, parse_duration).map_err(unit)?,
            "rate" => {
                let read = |text: &str| match text.trim() {
                    UNLIMITED => Ok(None),
                    text => parse_rate(text).map(Some),
                };
                self.rate_bits = Both::parse(value, read).map_err(unit)?;
            }
            "queue" => {
                let read = |text: &str| match text.trim() {
                    DEFAULT => Ok(None),
                    text => text.parse().map(Some),
                };
                self.queue = Both::parse(value, read).map_err(unit)?;
            }
            "loss" => self.loss = Both::parse(value, parse_share).map_err(unit)?,
            "loss-burst" => self.loss_burst = Some(value.parse().map_err(|_| number("5"))?),
            "overhead" => self.overhead_bytes = value.parse().map_err(|_| number("24"))?,
            "seed" => self.seed = value.parse().map_err(|_| number("42"))?,
            _ => return Err(OptionsError::Word(key.escape_debug().take(40).collect())),
        }
        Ok(())
    }
}

impl FromStr for Options {
    type Err = OptionsError;

    /// `rtt=20ms,rate=20mbit/100mbit,loss=0.1%`: the options' names without their dashes.
    fn from_str(text: &str) -> Result<Options, OptionsError> {
        let mut options = Options::default();
        let mut keys: Vec<&str> = Vec::new();
        for word in text.split(',').map(str::trim).filter(|word| !word.is_empty()) {
            let (key, value) = word.split_once('=').unwrap_or((word, ""));
            let (key, value) = (key.trim(), value.trim());
            if keys.contains(&key) {
                return Err(OptionsError::Value { key: key.into(), why: "is given twice".into() });
            }
            options.set(key, value)?;
            keys.push(key);
        }
        options.check()?;
        Ok(options)
    }
}

impl fmt::Display for Options {
    /// In the form that [`FromStr`] reads; defaults are left out, except for the round trip.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "rtt={}", duration_text(self.rtt_ns))?;
        if self.distance_m > 0 {
            write!(f, ",distance={}m", self.distance_m)?;
        }
        let default = Options::default();
        both(f, "jitter", self.jitter_ns, default.jitter_ns, duration_text)?;
        both(f, "rate", self.rate_bits, default.rate_bits, |rate| {
            rate.map_or_else(|| UNLIMITED.to_owned(), rate_text)
        })?;
        both(f, "queue", self.queue, default.queue, |queue| match queue {
            Some(Queue::Bytes(bytes)) => size_text(bytes),
            Some(Queue::Time(ns)) => duration_text(ns),
            None => DEFAULT.to_owned(),
        })?;
        both(f, "loss", self.loss, default.loss, |share| format!("{}%", round(share * 100.0)))?;
        if let Some(mean) = self.loss_burst {
            write!(f, ",loss-burst={mean}")?;
        }
        if self.overhead_bytes != 0 {
            write!(f, ",overhead={}", self.overhead_bytes)?;
        }
        if self.seed != default.seed {
            write!(f, ",seed={}", self.seed)?;
        }
        Ok(())
    }
}

fn both<T: Copy + PartialEq>(
    f: &mut fmt::Formatter<'_>,
    key: &str,
    value: Both<T>,
    default: Both<T>,
    text: impl Fn(T) -> String,
) -> fmt::Result {
    if value == default {
        return Ok(());
    }
    write!(f, ",{key}={}", text(value.there))?;
    if value.there == value.back { Ok(()) } else { write!(f, "/{}", text(value.back)) }
}

/// Rounded to billionths, as shares are read.
fn round(percent: f64) -> f64 {
    (percent * 1e7).round() / 1e7
}

fn queue_bytes(queue: Option<Queue>, rate_bits: Option<u64>) -> u64 {
    let Some(rate) = rate_bits else { return 0 };
    let in_time = |ns: u64| {
        let bytes = u128::from(rate) * u128::from(ns) / 8_000_000_000;
        u64::try_from(bytes).unwrap_or(u64::MAX)
    };
    match queue {
        Some(Queue::Bytes(bytes)) => bytes,
        Some(Queue::Time(ns)) => in_time(ns),
        None => in_time(QUEUE_DEFAULT_NS).max(QUEUE_DEFAULT_MIN_BYTES),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(text: &str) -> Options {
        text.parse().unwrap()
    }

    fn wrong(text: &str) -> String {
        text.parse::<Options>().unwrap_err().to_string()
    }

    #[test]
    fn a_text_gives_both_directions() {
        let line = options("rtt=20ms,rate=20mbit/100mbit,loss=0.1%,queue=100ms/256KiB,seed=7");
        assert_eq!(line.rate_bits, Both { there: Some(20_000_000), back: Some(100_000_000) });
        assert_eq!(line.seed, 7);
        let Both { there, back } = line.paths();
        assert_eq!((there.delay_ns, back.delay_ns), (10_000_000, 10_000_000));
        assert_eq!((there.queue_bytes, back.queue_bytes), (250_000, 262_144));
        assert_eq!((there.loss, back.loss), (0.001, 0.001));
        assert_eq!(options("rate=10MB/s").rate_bits, Both::same(Some(80_000_000)));
        assert_eq!(
            options("rate=1MB/s/10MB/s").rate_bits,
            Both { there: Some(8_000_000), back: Some(80_000_000) }
        );
        assert_eq!(options(""), Options::default());
    }

    #[test]
    fn distance_adds_to_the_round_trip() {
        // Chicago to Seattle: 14 ms one way at best.
        let line = options("rtt=1ms,distance=2795km");
        assert_eq!(line.round_trip_ns(), 28_950_000);
        assert_eq!(line.paths().there.delay_ns, 14_475_000);
    }

    #[test]
    fn the_default_queue_lasts_100_ms() {
        assert_eq!(options("rate=45mbit").paths().there.queue_bytes, 562_500);
        assert_eq!(options("rate=56kbit").paths().there.queue_bytes, 65_536);
    }

    #[test]
    fn displayed_options_are_read_back() {
        for text in [
            "rtt=20ms",
            "rtt=0s,distance=2795000m,jitter=1ms,rate=45mbit,queue=256KiB,loss=0.1%,loss-burst=3,overhead=24,seed=9",
            "rtt=1ms,rate=unlimited/1gbit,queue=default/1MiB",
            "rtt=10.5ms,jitter=0s/2ms,rate=20mbit/100mbit,queue=50ms/1MiB,loss=0%/0.025%",
        ] {
            assert_eq!(options(text).to_string(), text);
        }
    }

    #[test]
    fn errors_name_the_word() {
        assert!(wrong("rtt=20").starts_with("rtt: `20` is not a time: its unit is missing"));
        assert!(wrong("latency=20ms").starts_with("unknown link property `latency`"));
        assert_eq!(wrong("rtt=1ms,rtt=2ms"), "rtt: is given twice");
        assert!(wrong("queue=64k,rate=1mbit").contains("or as the time that it lasts"));
        assert!(wrong("queue=64KiB").contains("a queue needs a rate"));
        assert!(wrong("seed=x").contains("`x` is not a number like 42"));
        assert!(wrong("loss=90%,loss-burst=2").contains("at most 66.7% can be lost"));
        assert!(wrong("loss-burst=0.5").contains("at least 1"));
        assert!(wrong("rate=5mbit/").starts_with("rate: "));
    }
}
