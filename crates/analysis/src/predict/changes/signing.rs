//! Another algorithm that signs messages.

use std::fmt;

use smbscope_tables::protection::Protection;

use super::{Definition, Spec, shared};
use crate::predict::plan::Plan;
use crate::predict::replay::Prediction;

pub(super) struct Signing;

impl Definition for Signing {
    type Value = Protection;

    const SPEC: Spec = Spec {
        name: "signing",
        example: "signing=aes-gmac",
        meaning: "all messages are signed with this algorithm (hmac-sha256, aes-cmac, aes-gmac), or none is (off)",
        needs: shared::PROTECTION_NEEDS,
    };

    fn parse(text: &str) -> Result<Protection, String> {
        match Protection::of_name(text) {
            Some(algorithm) if !algorithm.is_encryption() => Ok(algorithm),
            _ => Err(Self::invalid(format!("`{text}` is neither a signing algorithm nor off"))),
        }
    }

    fn print(algorithm: Protection, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(algorithm.name())
    }

    fn sentence(algorithm: Protection) -> String {
        match algorithm {
            Protection::None => "no message is signed".to_owned(),
            algorithm => format!("all messages are signed with {}", algorithm.name()),
        }
    }

    fn assumption(_: Protection) -> &'static str {
        shared::PROTECTION_ASSUMPTION
    }

    fn plan(algorithm: Protection, plan: &mut Plan) {
        plan.signing = Some(algorithm);
    }

    fn is_answerable(_: Protection, prediction: &Prediction) -> bool {
        prediction.protected.unknown == 0
    }

    fn note(plan: &Plan, prediction: &Prediction) -> Option<String> {
        shared::protection_note(plan, prediction)
    }

    fn superseded(_: Protection, plan: &Plan) -> Option<&'static str> {
        let is_set = |way: Option<Protection>| way.is_some_and(|way| way != Protection::None);
        (is_set(plan.signing) && is_set(plan.encryption)).then_some(
            "--change signing has no effect next to --change encryption: encrypted messages are not signed.",
        )
    }
}
