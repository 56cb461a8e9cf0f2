//! Shorter or longer waits in the server's queue.

use std::fmt;

use smbscope_tables::profile::Profile;
use smbscope_tables::quantity::parse_share;
use smbscope_tables::readable;
use smbscope_tables::slice::Kind;

use super::{Definition, Spec, shared};
use crate::predict::plan::Plan;

/// As a share of the recorded time, 0 to 1.
pub(super) struct Queue;

impl Definition for Queue {
    type Value = f64;

    const SPEC: Spec = Spec {
        name: "queue",
        example: "queue=0%",
        meaning: "requests wait in the server's queue for this share of the recorded time",
        needs: "the slice queue of the server (smbscope record)",
    };

    fn parse(text: &str) -> Result<f64, String> {
        parse_share(text).map_err(|error| error.to_string())
    }

    fn print(share: f64, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        shared::print_share(share, to)
    }

    fn sentence(share: f64) -> String {
        let percent = readable::decimal(100.0 * share);
        format!("requests wait in the server's queue for {percent} % of the recorded time")
    }

    fn assumption(_: f64) -> &'static str {
        "Everything else takes as long as in the recording."
    }

    fn plan(share: f64, plan: &mut Plan) {
        shared::plan_slices(plan, Self::slices(share));
    }

    fn apply(share: f64, profile: &mut Profile) -> bool {
        shared::scale_slices(profile, Self::slices(share))
    }

    fn slices(share: f64) -> Option<(&'static [Kind], f64)> {
        Some((&[Kind::Queue], share))
    }
}
