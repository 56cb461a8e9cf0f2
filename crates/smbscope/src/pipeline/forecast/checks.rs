//! Whether a recording can answer what changes would bring, and what must be known of the answer.

use smbscope_analysis::predict::changes::{self, Change, MissingInput};
use smbscope_analysis::predict::plan::Plan;
use smbscope_analysis::predict::replay::{self, Prediction};
use smbscope_analysis::predict::requirements::unanswered;
use smbscope_tables::readable;

use crate::exit::Failure;

/// How many times as long as any recorded round trip a new one may be without a warning.
const FAR_RTT: f64 = 10.0;

/// Whether the recording has what the changes need.
pub(super) fn check(
    changes: &[Change],
    plan: &Plan,
    prediction: &Prediction,
) -> anyhow::Result<()> {
    if prediction.timed == 0 && prediction.left_out > 0 {
        return Err(Failure::usage(format!(
            "none of the {} operations of the inputs belongs to a measured scenario, so nothing can be predicted from \
             them; let the load run continue to the end of a measured window",
            readable::count(prediction.left_out)
        )));
    }
    if prediction.timed == 0 {
        return Err(Failure::usage(
            "the inputs contain no operation with a time of its own, so nothing can be predicted from them",
        ));
    }
    if let Some(missing) = unanswered(changes, prediction) {
        return Err(Failure::usage(format!(
            "--change {}: the inputs lack what this change needs: {}",
            missing.change, missing.what
        )));
    }
    if plan.is_other_network() && prediction.without_rtt == prediction.timed {
        return Err(Failure::usage(
            "no connection of the inputs has a known round trip on both sides of the capture point, so the network \
             cannot be replaced by another one: record the TCP handshakes, or data in both directions (load runs and \
             recordings with --interface have them, those from inside a server alone do not)",
        ));
    }
    Ok(())
}

/// Whether the replay without changes could learn what other block sizes cost.
pub(super) fn check_sizes(missing: Option<MissingInput>) -> anyhow::Result<()> {
    let Some(missing) = missing else { return Ok(()) };
    Err(Failure::usage(format!(
        "--change {}: the inputs lack what this change needs: {}; record with a second block size (load --block) and \
         give both recordings",
        missing.change, missing.what
    )))
}

/// Other effects of the changes, one sentence each.
pub(super) fn notes(plan: &Plan, prediction: &Prediction) -> Vec<String> {
    let mut notes = changes::notes(plan, prediction);
    let is_other = |row: &replay::Row| row.count != row.count_after;
    if prediction.commands.iter().any(is_other) {
        notes.push(
            "Times are per recorded operation: one that is no longer sent counts as zero, and one that becomes several \
             requests counts with their total."
                .to_owned(),
        );
    }
    notes
}

/// Where the prediction leaves what was measured.
pub(super) fn warnings(plan: &Plan, prediction: &Prediction) -> Vec<String> {
    let mut warnings = Vec::new();
    if let Some([_, _, largest]) = prediction.rtt_ns
        && largest.1 as f64 > FAR_RTT * largest.0 as f64
        && largest.0 != largest.1
    {
        warnings.push(format!(
            "The longest recorded round trip is {}; {} is far outside of what was measured.",
            readable::duration(largest.0),
            readable::duration(largest.1)
        ));
    }
    let is_other_rtt = prediction.rtt_ns.is_some_and(|[_, one, _]| one.0 != one.1);
    let depends_on_rtt = plan.window_bytes.is_some() || plan.loss > 0.0;
    if prediction.without_rtt > 0 && (is_other_rtt || depends_on_rtt) {
        warnings.push(format!(
            "{} of {} operations belong to connections whose round trip is not known: {}.",
            readable::count(prediction.without_rtt),
            readable::count(prediction.timed),
            if is_other_rtt {
                "they keep their recorded round trip"
            } else {
                "their time does not include additional round trips"
            }
        ));
    }
    let (before, after) = prediction.late;
    if after > before {
        let n = prediction.all_scenarios.as_ref().map_or(0, |row| row.count);
        warnings.push(format!(
            "{} of {} scenarios start more than a second late ({} in the recording): users cannot keep their \
             schedule, and response times grow with the length of the run.",
            readable::count(after),
            readable::count(n),
            readable::count(before)
        ));
    }
    if prediction.executions_left_out > 0 {
        warnings.push(format!(
            "{} executions of scenarios were not followed because there are too many.",
            readable::count(prediction.executions_left_out)
        ));
    }
    warnings
}
