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
        let text = match is_on {
            true => "requests that follow each other are sent as one compound",
            false => "each request is a message of its own",
        };
        text.to_owned()
    }

    fn assumption(is_on: bool) -> &'static str {
        match is_on {
            true => {
                "A request that was sent within a millisecond after a reply on the same open did not depend on that \
                 reply, only on the open."
            }
            false => "A member costs the server what it costs in a compound.",
        }
    }

    fn plan(is_on: bool, plan: &mut Plan) {
        plan.compound = Some(is_on);
    }

    fn note(plan: &Plan, prediction: &Prediction) -> Option<String> {
        let n = readable::count(prediction.chained);
        Some(match plan.compound? {
            true => format!("{n} requests join the compound of the request before."),
            false => format!("{n} members of compounds become messages of their own."),
        })
    }
}
