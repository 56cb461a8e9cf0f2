//! Packet loss on the network.

use std::fmt;

use smbscope_tables::quantity::parse_share;
use smbscope_tables::readable;

use super::bandwidth::NEEDS_SIZES;
use super::{Definition, Spec, shared};
use crate::predict::plan::Plan;

/// TCP does not get through a network that loses this share.
const LOSS_LIMIT: f64 = 0.5;

/// As a share, 0 to 1.
pub(super) struct Loss;

impl Definition for Loss {
    type Value = f64;

    const SPEC: Spec = Spec {
        name: "loss",
        example: "loss=0.1%",
        meaning: "the network loses this share of the packets, each independently of the others",
        needs: NEEDS_SIZES,
    };

    fn parse(text: &str) -> Result<f64, String> {
        let share = parse_share(text).map_err(|error| error.to_string())?;
        if share < LOSS_LIMIT { Ok(share) } else { Err(Self::invalid("loss must be below 50 %")) }
    }

    fn print(share: f64, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        shared::print_share(share, to)
    }

    fn sentence(share: f64) -> String {
        format!("the network loses {} % of the packets", readable::decimal(100.0 * share))
    }

    fn assumption(_: f64) -> &'static str {
        "No packet was lost in the recording. TCP's window is the average that losses at this rate leave of it."
    }

    fn plan(share: f64, plan: &mut Plan) {
        plan.loss = share;
    }
}
