//! Another share of reads that the server answers from memory.

use std::fmt;

use smbscope_tables::quantity::parse_share;
use smbscope_tables::readable;

use super::{Definition, Spec, shared};
use crate::predict::plan::Plan;
use crate::predict::replay::Prediction;

/// As a share, 0 to 1.
pub(super) struct CacheHit;

impl Definition for CacheHit {
    type Value = f64;

    const SPEC: Spec = Spec {
        name: "cache-hit",
        example: "cache-hit=90%",
        meaning: "the server has this share of what is read in memory",
        needs: "the slices filesystem and io of reads (smbscope record), with at least ten reads from memory and ten from \
                storage, which take at least four times as long",
    };
    const CHANGES_DEMAND: bool = true;

    fn parse(text: &str) -> Result<f64, String> {
        parse_share(text).map_err(|error| error.to_string())
    }

    fn print(share: f64, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        shared::print_share(share, to)
    }

    fn sentence(share: f64) -> String {
        format!("{} % of the reads are in the server's memory", readable::decimal(100.0 * share))
    }

    fn assumption(_: f64) -> &'static str {
        "Reads with a short file-system time were answered from memory. A read that becomes a hit or a miss takes the \
         median of its new kind."
    }

    fn plan(share: f64, plan: &mut Plan) {
        plan.cache_hit = Some(share);
    }

    fn is_answerable(_: f64, prediction: &Prediction) -> bool {
        prediction.baseline.hits.is_some()
    }

    fn note(plan: &Plan, prediction: &Prediction) -> Option<String> {
        plan.cache_hit?;
        let hits = prediction.baseline.hits?;
        let (hit, miss) = hits.medians_ns;
        Some(format!(
            "{:.1} % of the recorded reads were in the server's memory; they took {}, the others {} (medians).",
            100.0 * hits.share,
            readable::duration(hit as i64),
            readable::duration(miss as i64)
        ))
    }
}
