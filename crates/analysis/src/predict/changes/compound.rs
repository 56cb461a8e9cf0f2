//! Requests on one open as one compound, or each as a message of its own.

use std::fmt;

use smbscope_tables::readable;

use super::{Definition, Spec, shared};
use crate::predict::plan::Plan;
use crate::predict::replay::Prediction;

/// On or off.
pub(super) struct Compound;

impl Definition for Compound {
    type Value = bool;

    const SPEC: Spec = Spec {
        name: "compound",
        example: "compound=on",
        meaning: "requests that directly follow each other on one open are sent as one compound (off: each member is a \
                  message of its own)",
        needs: "requests with opens",
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
            "requests that follow each other are sent as one compound"
        } else {
            "each request is a message of its own"
        };
        text.to_owned()
    }

    fn assumption(is_on: bool) -> &'static str {
        if is_on {
            "A request that was sent within a millisecond after a reply on the same open did not depend on that \
                 reply, only on the open."
        } else {
            "A member costs the server what it costs in a compound."
        }
    }

    fn plan(is_on: bool, plan: &mut Plan) {
        plan.compound = Some(is_on);
    }

    fn note(plan: &Plan, prediction: &Prediction) -> Option<String> {
        let n = readable::count(prediction.chained);
        Some(if plan.compound? {
            format!("{n} requests join the compound of the request before.")
        } else {
            format!("{n} members of compounds become messages of their own.")
        })
    }
}
