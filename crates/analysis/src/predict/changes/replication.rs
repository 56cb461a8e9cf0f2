//! A second server that holds the same data.

use std::fmt;

use smbscope_tables::quantity::{parse_duration, parse_rate};
use smbscope_tables::readable;

use super::{Definition, Spec};
use crate::predict::plan::{self, Plan};
use crate::predict::replay::{AtRisk, Prediction};

pub(super) struct Replication;

impl Definition for Replication {
    type Value = plan::Replication;

    const SPEC: Spec = Spec {
        name: "replication",
        example: "replication=sync,rtt=5ms,bandwidth=1gbit",
        meaning: "a second server holds the same data: what must be stable waits for it (sync) or for its receipt \
                  (received), or it follows later (async: how much data would be lost)",
        needs: "writes; for sync also Flush requests or write-through writes",
    };

    /// `sync,rtt=5ms,bandwidth=1gbit`, in any order.
    fn parse(text: &str) -> Result<plan::Replication, String> {
        let (mut is_sync, mut rtt_ns, mut bandwidth_bits) = (None, None, None);
        let mut is_on_arrival = false;
        let unit = |error: smbscope_tables::quantity::UnitError| Self::invalid(error);
        for word in text.split(',').map(str::trim) {
            match word.split_once('=') {
                None if word == "sync" => is_sync = Some(true),
                None if word == "received" => (is_sync, is_on_arrival) = (Some(true), true),
                None if word == "async" => is_sync = Some(false),
                Some(("rtt", value)) => rtt_ns = Some(parse_duration(value.trim()).map_err(unit)?),
                Some(("bandwidth", value)) => {
                    bandwidth_bits = Some(parse_rate(value.trim()).map_err(unit)? as f64);
                }
                _ => return Err(Self::invalid(format!("unknown word `{word}`"))),
            }
        }
        let is_sync =
            is_sync.ok_or_else(|| Self::invalid("none of sync, received and async is given"))?;
        let rtt_ns =
            rtt_ns.ok_or_else(|| Self::invalid("the round trip between the servers is missing"))?;
        let rtt_ns =
            i64::try_from(rtt_ns).map_err(|_| Self::invalid("the round trip is too long"))?;
        Ok(plan::Replication { is_sync, is_on_arrival, rtt_ns, bandwidth_bits })
    }

    fn print(value: plan::Replication, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match (value.is_sync, value.is_on_arrival) {
            (true, true) => "received",
            (true, false) => "sync",
            (false, _) => "async",
        };
        write!(to, "{kind},rtt={}ns", value.rtt_ns)?;
        match value.bandwidth_bits {
            Some(bits) => write!(to, ",bandwidth={bits:.0}bit"),
            None => Ok(()),
        }
    }

    fn sentence(value: plan::Replication) -> String {
        let rate = value
            .bandwidth_bits
            .map(|bits| format!(" and {} Mbit/s", readable::decimal(bits / 1e6)));
        format!(
            "a second server, with a round trip of {}{}, holds the same data: {}",
            readable::duration(value.rtt_ns),
            rate.unwrap_or_default(),
            match (value.is_sync, value.is_on_arrival) {
                (true, true) => "replies wait until it has received the data",
                (true, false) => "replies wait for it",
                (false, _) => "it follows",
            }
        )
    }

    fn assumption(value: plan::Replication) -> &'static str {
        match value.is_sync {
            true if value.is_on_arrival => {
                "The second server answers before its log has the data, and the local log is written meanwhile. Data that \
                 need not be stable uses the same link."
            }
            true => {
                "The second server's log takes as long as the local one, both begin at once, and data that need not be \
                 stable uses the same link."
            }
            false => "No reply waits for the second server.",
        }
    }

    fn plan(value: plan::Replication, plan: &mut Plan) {
        plan.replication = Some(value);
    }

    fn is_answerable(value: plan::Replication, prediction: &Prediction) -> bool {
        if value.is_sync {
            // Where nothing must be stable nothing waits, which is an answer about writes only.
            prediction.stable > 0
        } else {
            prediction.at_risk.is_some()
        }
    }

    fn note(plan: &Plan, prediction: &Prediction) -> Option<String> {
        plan.replication.and(prediction.at_risk).map(lag)
    }
}

/// How far the second server is behind.
fn lag(risk: AtRisk) -> String {
    // While data is written, not until it has arrived: a slow link does not make clients write less.
    let seconds = risk.writing_ns as f64 / 1e9;
    let rate = if seconds > 0.0 {
        format!(" ({} per second)", readable::bytes((risk.written as f64 / seconds) as u64))
    } else {
        String::new()
    };
    format!(
        "{} are written{rate}. The second server lacks {} on average and {} at most, and is up to {} behind; this much \
         data is lost if the first server is lost.",
        readable::bytes(risk.written),
        readable::bytes(risk.mean as u64),
        readable::bytes(risk.most),
        readable::duration(risk.longest_ns)
    )
}
