//! Another round trip between clients and server.

use std::fmt;

use smbscope_tables::profile::Profile;
use smbscope_tables::quantity::parse_duration;
use smbscope_tables::readable;

use super::{Definition, Spec};
use crate::predict::plan::Plan;

pub(super) const NEEDS: &str = "the recorded round trip";

pub(super) const ASSUMPTION: &str = "A client sends its next request because of the last reply that it received, and takes \
                                     as long to do so as in the recording.";

/// In seconds.
pub(super) struct Rtt;

impl Definition for Rtt {
    type Value = f64;

    const SPEC: Spec = Spec {
        name: "rtt",
        example: "rtt=20ms",
        meaning: "the round trip between clients and server takes this long (both directions together)",
        needs: NEEDS,
    };
    const NEEDS_RTT: bool = true;

    fn parse(text: &str) -> Result<f64, String> {
        let ns = parse_duration(text).map_err(|error| error.to_string())?;
        Ok(ns as f64 / 1e9)
    }

    fn print(seconds: f64, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        // To the nanosecond, without the remaining digits of the double.
        write!(to, "{}us", (1e9 * seconds).round() / 1e3)
    }

    fn sentence(seconds: f64) -> String {
        let time = readable::duration((seconds * 1e9).round() as i64);
        format!("the round trip between clients and server is {time}")
    }

    fn assumption(_: f64) -> &'static str {
        ASSUMPTION
    }

    fn plan(seconds: f64, plan: &mut Plan) {
        (plan.rtt_s, plan.farther_s) = (Some(seconds), 0.0);
    }

    fn apply(seconds: f64, profile: &mut Profile) -> bool {
        profile.rtt_s = seconds;
        true
    }
}
