//! The zone in which reports show times of day: that of this machine (`TZ`, or its settings), unless
//! UTC is requested or smbscope.toml names another.

use chrono::{Local, Offset as _, TimeZone as _};
use smbscope_report::Clock;

use crate::settings;

/// The zone that holds at a time (ns since 1970); UTC without one.
pub fn clock(utc: bool, at_ns: Option<i64>) -> Clock {
    match (settings::get().zone(utc), at_ns) {
        (Some(zone), _) => Clock::ahead(zone.local_minus_utc()),
        (None, Some(ns)) => {
            let seconds = ns.div_euclid(1_000_000_000);
            let local = Local.timestamp_opt(seconds, 0).single();
            Clock::ahead(local.map_or(0, |time| time.offset().fix().local_minus_utc()))
        }
        (None, None) => Clock::default(),
    }
}
