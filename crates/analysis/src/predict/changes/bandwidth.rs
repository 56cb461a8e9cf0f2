//! Another rate of each client's link.

use std::fmt;

use smbscope_tables::quantity::parse_rate;
use smbscope_tables::readable;

use super::{Definition, Spec};
use crate::predict::plan::Plan;

pub(super) const NEEDS_SIZES: &str = "message sizes, which every recording has";

/// In bits per second, each way.
pub(super) struct Bandwidth;

impl Definition for Bandwidth {
    type Value = f64;

    const SPEC: Spec = Spec {
        name: "bandwidth",
        example: "bandwidth=45mbit",
        meaning: "each client's link carries this much in each direction, shared by its connections",
        needs: NEEDS_SIZES,
    };

    fn parse(text: &str) -> Result<f64, String> {
        let bits = parse_rate(text).map_err(|error| error.to_string())?;
        Ok(bits as f64)
    }

    fn print(bits: f64, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "{bits:.0}bit")
    }

    fn sentence(bits: f64) -> String {
        let rate = readable::decimal(bits / 1e6);
        format!("each client's link carries {rate} Mbit/s in each direction")
    }

    fn assumption(_: f64) -> &'static str {
        "All connections from one client address share one link that carries no other traffic. The recorded time from \
         the first to the last byte of a message was spent on that link. Time spent waiting behind other messages' bytes \
         stays as recorded, so the gain of a faster link is a lower bound."
    }

    fn plan(bits: f64, plan: &mut Plan) {
        plan.bandwidth_bits = Some(bits);
    }
}
