//! Writes that are stable before their reply, or not.

use std::fmt;

use smbscope_tables::readable;

use super::{Definition, Spec, shared};
use crate::predict::plan::Plan;
use crate::predict::replay::Prediction;

/// Stable operations below which their cost would be a guess.
const STABLE_MIN: u64 = 10;

/// On or off.
pub(super) struct WriteThrough;

impl Definition for WriteThrough {
    type Value = bool;

    const SPEC: Spec = Spec {
        name: "write-through",
        example: "write-through=on",
        meaning: "every write is on stable storage before its reply (off: only what a Flush requests)",
        needs: "at least ten Flush requests after writes, or the slice flush of at least ten write-through writes (they \
                show what it costs to make data stable)",
    };
    const CHANGES_DEMAND: bool = true;

    fn parse(text: &str) -> Result<bool, String> {
        shared::parse_switch(text).map_err(Self::invalid)
    }

    fn print(is_on: bool, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        shared::print_switch(is_on, to)
    }

    fn sentence(is_on: bool) -> String {
        let text = if is_on {
            "every write is stable before its reply"
        } else {
            "only what a Flush requests is stable"
        };
        text.to_owned()
    }

    fn assumption(_: bool) -> &'static str {
        "Making data stable costs each write what it cost in the recording; storage does not slow down because it is \
         used more often."
    }

    fn plan(is_on: bool, plan: &mut Plan) {
        plan.write_through = Some(is_on);
    }

    fn is_answerable(_: bool, prediction: &Prediction) -> bool {
        prediction.baseline.stable.n >= STABLE_MIN
    }

    /// Replication depends on the same costs.
    fn note(plan: &Plan, prediction: &Prediction) -> Option<String> {
        let learnt = prediction.baseline.stable;
        (plan.is_other_durability() && learnt.n > 0).then(|| {
            format!(
                "{} operations had to be stable before their reply; the server took {} for that (median).",
                readable::count(prediction.stable),
                readable::duration(learnt.median_ns as i64)
            )
        })
    }
}
