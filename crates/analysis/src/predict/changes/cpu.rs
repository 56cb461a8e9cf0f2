//! Faster or slower CPUs of the server.

use std::fmt;

use smbscope_tables::profile::Profile;
use smbscope_tables::readable;
use smbscope_tables::slice::Kind;

use super::{Definition, Spec, shared};
use crate::predict::plan::Plan;

/// Slices that faster CPUs shorten.
const COMPUTED: &[Kind] = &[
    Kind::CryptoIn,
    Kind::Parse,
    Kind::Processing,
    Kind::CryptoOut,
    Kind::Send,
    Kind::Security,
    Kind::Transport,
];

pub(super) const ASSUMPTION: &str = "Queues stay as long as in the recording. A faster server has shorter ones, so the gain \
                                     is a lower bound.";

/// As a factor of speed.
pub(super) struct Cpu;

impl Definition for Cpu {
    type Value = f64;

    const SPEC: Spec = Spec {
        name: "cpu",
        example: "cpu=2x",
        meaning: "the server's CPUs are this many times as fast, and carry that many more users",
        needs: "the slice processing of the server (smbscope record)",
    };

    fn parse(text: &str) -> Result<f64, String> {
        shared::parse_factor(text).map_err(Self::invalid)
    }

    fn print(factor: f64, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "{factor}x")
    }

    fn sentence(factor: f64) -> String {
        format!("the server's CPUs are {} times as fast", readable::decimal(factor))
    }

    fn assumption(_: f64) -> &'static str {
        ASSUMPTION
    }

    fn plan(factor: f64, plan: &mut Plan) {
        shared::plan_slices(plan, Self::slices(factor));
        plan.processors *= 1.0 / factor;
    }

    fn apply(factor: f64, profile: &mut Profile) -> bool {
        shared::scale_slices(profile, Self::slices(factor))
    }

    fn slices(factor: f64) -> Option<(&'static [Kind], f64)> {
        Some((COMPUTED, 1.0 / factor))
    }
}
