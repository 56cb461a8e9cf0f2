//! A period of a recording: points in time as people write them, and the times that they mean.
//!
//! Owns the notation and its meaning in a recording that starts and ends at known times ([`Extent`]).
//! A clock time without a zone is local time, in the zone of this machine (`TZ`). Every form in which
//! answers show a time is understood.

use std::str::FromStr;

use chrono::{
    DateTime, FixedOffset, Local, NaiveDate, NaiveDateTime, NaiveTime, Offset as _, TimeDelta,
    TimeZone, Utc,
};
use smbscope_store::source::Source;
use smbscope_store::{Part, Table};
use smbscope_tables::filter::Filter;
use smbscope_tables::named_columns::Numbers;
use smbscope_tables::quantity::parse_duration;

use super::pass::{Analysis, Monitor, pass};
use crate::exit::Failure;

/// A point in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// A time with a zone, ns since 1970.
    Absolute(i64),
    /// A local date and time.
    Local(NaiveDateTime),
    /// A time of the day, in a zone or local.
    Clock(NaiveTime, Option<FixedOffset>),
    /// Behind the start of the recording, ns.
    AfterStart(i64),
    /// Before the end of the recording, ns.
    BeforeEnd(i64),
}

/// From when to when.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Period {
    pub from: Option<Moment>,
    pub to: Option<Moment>,
}

/// First and last time of a recording, ns since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    pub start: i64,
    /// `None` for what is not over yet.
    pub end: Option<i64>,
}

const FORMS: &str = "expected a clock time (14:05, 14:05:30), a date and time (2026-11-26T14:05:30), both \
                     with Z, UTC or +01:00 for a zone other than the local one, the time since the start of the recording \
                     (90s, +5m), or `last 5m`";

impl FromStr for Moment {
    type Err = String;

    fn from_str(text: &str) -> Result<Moment, String> {
        let text = text.trim();
        if let Some(before) = text.strip_prefix("last") {
            return duration(before.trim()).map(Moment::BeforeEnd).ok_or_else(|| FORMS.to_owned());
        }
        if let Some(after) = duration(text.strip_prefix('+').unwrap_or(text)) {
            return Ok(Moment::AfterStart(after));
        }
        if let Some(ns) = since_1970(text) {
            return Ok(Moment::Absolute(ns));
        }
        let (text, zone) = zoned(text);
        let of_date = |time: NaiveDateTime| match zone {
            Some(zone) => to_utc(time, &zone).map(Moment::Absolute),
            None => Ok(Moment::Local(time)),
        };
        let text = text.replacen(' ', "T", 1);
        let local = ["%Y-%m-%dT%H:%M:%S%.f", "%Y-%m-%dT%H:%M"];
        if let Some(time) =
            local.iter().find_map(|form| NaiveDateTime::parse_from_str(&text, form).ok())
        {
            return of_date(time);
        }
        if let Ok(day) = NaiveDate::parse_from_str(&text, "%Y-%m-%d") {
            return of_date(day.and_time(NaiveTime::MIN));
        }
        let clock = ["%H:%M:%S%.f", "%H:%M"];
        let clock = clock.iter().find_map(|form| NaiveTime::parse_from_str(&text, form).ok());
        clock.map(|clock| Moment::Clock(clock, zone)).ok_or_else(|| FORMS.to_owned())
    }
}

fn duration(text: &str) -> Option<i64> {
    i64::try_from(parse_duration(text).ok()?).ok()
}

/// Seconds since 1970 with a fraction, as `ops --time epoch` shows them, in ns.
fn since_1970(text: &str) -> Option<i64> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let are_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.len() < 9 || fraction.len() > 9 || !are_digits(whole) || !are_digits(fraction) {
        return None;
    }
    format!("{whole}{fraction:0<9}").parse().ok()
}

/// A text without the zone at its end: `Z`, `UTC`, `+02:00`, also in parentheses.
fn zoned(text: &str) -> (&str, Option<FixedOffset>) {
    let bare = text.strip_suffix(')').unwrap_or(text);
    let (time, zone) = match bare.strip_suffix("UTC").or(bare.strip_suffix(['Z', 'z'])) {
        Some(time) => (time, Some(Utc.fix())),
        None => match bare.rfind(['+', '-']).and_then(|at| bare.split_at_checked(at)) {
            Some((time, zone)) if zone.contains(':') => (time, zone.parse().ok()),
            _ => (text, None),
        },
    };
    match zone {
        Some(_) => (time.trim_end_matches(['(', ' ']), zone),
        None => (text, None),
    }
}

impl Moment {
    /// The same moment, read in this zone where none is given.
    pub fn in_zone(self, zone: FixedOffset) -> Moment {
        match self {
            Moment::Local(time) => to_utc(time, &zone).map_or(self, Moment::Absolute),
            Moment::Clock(clock, None) => Moment::Clock(clock, Some(zone)),
            _ => self,
        }
    }

    /// Whether its meaning depends on the recording.
    fn is_relative(self) -> bool {
        !matches!(self, Moment::Absolute(_) | Moment::Local(_))
    }

    /// The time that it means in a recording, ns since 1970.
    ///
    /// A clock time is that of the day on which the recording starts, or of a later day if only
    /// there it lies within the recording.
    fn resolve(self, extent: Extent) -> Result<i64, String> {
        match self {
            Moment::Absolute(time) => Ok(time),
            Moment::Local(time) => to_utc(time, &Local),
            Moment::AfterStart(ns) => Ok(extent.start.saturating_add(ns)),
            Moment::BeforeEnd(ns) => match extent.end {
                Some(end) => Ok(end.saturating_sub(ns)),
                None => Err("`last` needs a recording that has ended".to_owned()),
            },
            Moment::Clock(clock, Some(zone)) => time_of_day(clock, &zone, extent),
            Moment::Clock(clock, None) => time_of_day(clock, &Local, extent),
        }
    }
}

fn time_of_day<Z: TimeZone>(clock: NaiveTime, zone: &Z, extent: Extent) -> Result<i64, String> {
    let day = DateTime::from_timestamp_nanos(extent.start).with_timezone(zone).date_naive();
    let first = to_utc(day.and_time(clock), zone)?;
    if first >= extent.start {
        return Ok(first);
    }
    let next = day.succ_opt().map(|day| to_utc(day.and_time(clock), zone));
    match (next, extent.end) {
        (Some(Ok(next)), Some(end)) if next <= end => Ok(next),
        _ => Ok(first),
    }
}

/// A time that occurs twice when clocks are set back is the first; one that does not occur is an hour later.
fn to_utc<Z: TimeZone>(local: NaiveDateTime, zone: &Z) -> Result<i64, String> {
    let time = zone.from_local_datetime(&local).earliest();
    let time = time.or_else(|| {
        zone.from_local_datetime(&local.checked_add_signed(TimeDelta::hours(1))?).earliest()
    });
    time.and_then(|time| time.timestamp_nanos_opt()).ok_or_else(|| format!("{local}: out of range"))
}

impl Period {
    /// Whether its meaning depends on the recording.
    pub fn is_relative(self) -> bool {
        [self.from, self.to].into_iter().flatten().any(Moment::is_relative)
    }

    /// Writes the times that the period means in a recording to a filter.
    ///
    /// # Errors
    ///
    /// A usage error for a period that ends before it begins, or that the recording cannot have.
    pub fn resolve(self, extent: Extent, filter: &mut Filter) -> anyhow::Result<()> {
        let resolve = |option: &str, moment: Option<Moment>| {
            let time = moment.map(|moment| moment.resolve(extent)).transpose();
            time.map_err(|error| Failure::usage(format!("{option}: {error}")))
        };
        filter.from = resolve("--from", self.from)?;
        filter.to = resolve("--to", self.to)?;
        match (filter.from, filter.to) {
            (Some(from), Some(to)) if from >= to => {
                Err(Failure::usage("--to: the period ends before it begins (--from)"))
            }
            _ => Ok(()),
        }
    }
}

/// Makes passes over the source yield only what meets the filter and lies in the period. Reads the
/// source once more if the period depends on its start or end.
pub fn select(
    source: &mut Source,
    mut filter: Filter,
    period: Period,
    monitor: &dyn Monitor,
) -> anyhow::Result<()> {
    let extent = if period.is_relative() {
        {
            source.spool()?;
            let mut ends = Ends { of_trace: source.is_trace(), ..Ends::default() };
            pass(source, &mut [&mut ends], monitor)?;
            Extent {
                start: ends.ends.map_or(0, |ends| ends.0),
                end: ends.ends.map(|ends| ends.1).or(Some(0)),
            }
        }
    } else {
        Extent { start: 0, end: Some(0) }
    };
    period.resolve(extent, &mut filter)?;
    source.set_filter(filter);
    Ok(())
}

/// First and last time of the inputs.
#[derive(Default)]
struct Ends {
    of_trace: bool,
    ends: Option<(i64, i64)>,
}

impl Ends {
    fn add(&mut self, time: i64) {
        let (first, last) = self.ends.unwrap_or((time, time));
        self.ends = Some((first.min(time), last.max(time)));
    }
}

impl Analysis for Ends {
    fn tables(&self) -> Vec<Table> {
        if self.of_trace { vec![Table::Traces] } else { vec![Table::Operations, Table::Coverage] }
    }

    fn columns(&self) -> Vec<&'static str> {
        if self.of_trace { Vec::new() } else { vec!["request_start", "response_end"] }
    }

    fn part(&mut self, part: &Part) -> anyhow::Result<()> {
        match part {
            Part::Traces(rows) => {
                let times = rows.iter().flat_map(|row| [row.started_at, row.ended_at]);
                times.flatten().for_each(|time| self.add(time));
            }
            Part::Coverage(row) => {
                row.start.into_iter().chain(row.end).for_each(|time| self.add(time))
            }
            Part::Operations(batch) => {
                for name in ["request_start", "response_end"] {
                    let times = Numbers::<arrow::datatypes::Int64Type>::from_batch(batch, name)?;
                    (0..batch.num_rows())
                        .filter_map(|row| times.get(row))
                        .for_each(|time| self.add(time));
                }
            }
            _ => {}
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use smbscope_report::Clock;

    use super::*;

    const S: i64 = 1_000_000_000;

    fn local(text: &str) -> i64 {
        let time = NaiveDateTime::parse_from_str(text, "%Y-%m-%dT%H:%M:%S").unwrap();
        to_utc(time, &Local).unwrap()
    }

    fn moment(text: &str) -> Moment {
        text.parse().unwrap()
    }

    #[test]
    fn all_forms_are_understood_and_others_are_explained() {
        assert_eq!(moment("90s"), Moment::AfterStart(90 * S));
        assert_eq!(moment("+5m"), Moment::AfterStart(300 * S));
        assert_eq!(moment("last 5m"), Moment::BeforeEnd(300 * S));
        assert_eq!(moment("2024-02-29T13:34:56+01:00"), Moment::Absolute(1_709_210_096 * S));
        assert_eq!(moment("2024-02-29 12:34:56Z"), Moment::Absolute(1_709_210_096 * S));
        let clock = NaiveTime::from_hms_opt(14, 5, 0).unwrap();
        assert_eq!(moment("14:05"), Moment::Clock(clock, None));
        assert_eq!(moment("14:05:00"), Moment::Clock(clock, None));
        let day = NaiveDate::from_ymd_opt(2026, 11, 26).unwrap();
        assert_eq!(moment("2026-11-26T14:05"), Moment::Local(day.and_time(clock)));
        assert_eq!(moment("2026-11-26"), Moment::Local(day.and_time(NaiveTime::MIN)));
        for text in
            ["", "noon", "25:00", "last", "5 apples", "2026-13-01", "14:05 +99:00", "UTC", "1.5"]
        {
            assert!(text.parse::<Moment>().unwrap_err().contains("14:05:30"), "{text}");
        }
    }

    #[test]
    fn every_time_that_answers_show_is_understood() {
        let at = 1_709_210_096 * S + 123_456_000;
        let whole = at.div_euclid(S) * S;
        let extent = Extent { start: at - 600 * S, end: Some(at + 600 * S) };
        let understood = |text: &str| moment(text).resolve(extent).unwrap();
        for clock in [Clock::default(), Clock::ahead(7_200), Clock::ahead(-34_200)] {
            assert_eq!(understood(&clock.exact(at)), at);
            assert_eq!(understood(&clock.time(at)), at.div_euclid(1_000_000) * 1_000_000);
            assert_eq!(understood(&clock.second(at)), whole);
            assert_eq!(understood(&clock.of_day_and_zone(at)), whole);
            // A period says its zone once; without it, its times are those of --utc or of this machine.
            let period = clock.period(at, at);
            let zone = period.rsplit_once(' ').unwrap().1;
            let (from, to) = period.split_once(" to ").unwrap();
            let (from, to) = (understood(&format!("{from} {zone}")), understood(to));
            assert!(from <= at && at < to, "{period}");
        }
        assert_eq!(moment("1709210096.123456"), Moment::Absolute(at));
        let words = Filter { from: Some(at), ..Filter::default() }.words(false, 7_200);
        assert_eq!(understood(words.trim_start_matches("from ")), at);
        let utc = |text: &str| moment(text).in_zone(Utc.fix()).resolve(extent).unwrap();
        assert_eq!(utc("12:34:56"), whole);
        assert_eq!(utc("2024-02-29 12:34:56"), whole);
        assert_eq!(utc("14:34:56 +02:00"), whole, "a zone that is given holds");
    }

    #[test]
    fn a_moment_depends_on_the_start_and_the_end_of_the_recording() {
        let start = local("2026-11-26T23:50:00");
        let extent = Extent { start, end: Some(start + 1200 * S) };
        let at = |text: &str| moment(text).resolve(extent).unwrap();
        assert_eq!(at("90s"), start + 90 * S);
        assert_eq!(at("last 5m"), start + 900 * S);
        assert_eq!(at("23:55"), start + 300 * S);
        assert_eq!(at("00:05"), start + 900 * S, "on the next day, where the recording has it");
        assert_eq!(at("12:00"), local("2026-11-26T12:00:00"), "on the first day otherwise");
        assert_eq!(at("2026-11-27T00:00:00"), start + 600 * S);
        let running = Extent { start, end: None };
        assert!(moment("last 5m").resolve(running).unwrap_err().contains("has ended"));
        assert_eq!(moment("+1m").resolve(running), Ok(start + 60 * S));
    }

    #[test]
    fn a_period_that_ends_before_it_begins_is_an_error() {
        let extent = Extent { start: 0, end: Some(100 * S) };
        let period =
            |from: &str, to: &str| Period { from: Some(moment(from)), to: Some(moment(to)) };
        let mut filter = Filter::default();
        assert!(period("20s", "10s").resolve(extent, &mut filter).is_err());
        period("10s", "last 20s").resolve(extent, &mut filter).unwrap();
        assert_eq!((filter.from, filter.to), (Some(10 * S), Some(80 * S)));
    }
}
