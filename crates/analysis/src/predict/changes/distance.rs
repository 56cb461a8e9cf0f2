//! More fibre between clients and server.

use std::fmt;

use smbscope_tables::profile::Profile;
use smbscope_tables::quantity::parse_distance;
use smbscope_tables::readable;

use super::{Definition, Spec, rtt};
use crate::predict::plan::Plan;

/// Speed of light in fibre, km/s.
const FIBRE_KM_S: f64 = 200_000.0;

/// In kilometres.
pub(super) struct Distance;

/// How much longer the round trip takes, s.
fn farther_s(km: f64) -> f64 {
    2.0 * km / FIBRE_KM_S
}

impl Definition for Distance {
    type Value = f64;

    const SPEC: Spec = Spec {
        name: "distance",
        example: "distance=2795km",
        meaning: "this much more fibre lies between clients and server (200,000 km/s, both directions)",
        needs: rtt::NEEDS,
    };
    const NEEDS_RTT: bool = true;

    fn parse(text: &str) -> Result<f64, String> {
        let metres = parse_distance(text).map_err(|error| error.to_string())?;
        Ok(metres as f64 / 1e3)
    }

    fn print(km: f64, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "{km}km")
    }

    fn sentence(km: f64) -> String {
        format!("{} km more fibre lie between clients and server", readable::decimal(km))
    }

    fn assumption(_: f64) -> &'static str {
        rtt::ASSUMPTION
    }

    fn plan(km: f64, plan: &mut Plan) {
        plan.farther_s += farther_s(km);
    }

    fn apply(km: f64, profile: &mut Profile) -> bool {
        profile.rtt_s += farther_s(km);
        true
    }
}
