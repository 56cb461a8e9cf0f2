//! Another cipher that encrypts messages.

use std::fmt;

use smbscope_tables::protection::Protection;

use super::{Definition, Spec, shared};
use crate::predict::plan::Plan;
use crate::predict::replay::Prediction;

pub(super) struct Encryption;

impl Definition for Encryption {
    type Value = Protection;

    const SPEC: Spec = Spec {
        name: "encryption",
        example: "encryption=aes-128-gcm",
        meaning: "all messages are encrypted with this cipher (aes-128-ccm, aes-128-gcm, aes-256-ccm, aes-256-gcm), or none is (off)",
        needs: shared::PROTECTION_NEEDS,
    };

    fn parse(text: &str) -> Result<Protection, String> {
        match Protection::of_name(text) {
            Some(algorithm) if !algorithm.is_signing() => Ok(algorithm),
            _ => Err(Self::invalid(format!("`{text}` is neither a cipher nor off"))),
        }
    }

    fn print(algorithm: Protection, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(algorithm.name())
    }

    fn sentence(algorithm: Protection) -> String {
        match algorithm {
            Protection::None => "no message is encrypted".to_owned(),
            algorithm => format!("all messages are encrypted with {}", algorithm.name()),
        }
    }

    fn assumption(_: Protection) -> &'static str {
        shared::PROTECTION_ASSUMPTION
    }

    fn plan(algorithm: Protection, plan: &mut Plan) {
        plan.encryption = Some(algorithm);
    }

    fn is_answerable(_: Protection, prediction: &Prediction) -> bool {
        prediction.protected.unknown == 0
    }

    fn note(plan: &Plan, prediction: &Prediction) -> Option<String> {
        shared::protection_note(plan, prediction)
    }
}
