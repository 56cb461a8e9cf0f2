//! Referrals of a recording: which client requested them from which server, when, and the answer.

use std::collections::BTreeMap;

use arrow::array::RecordBatch;
use arrow::datatypes::{Int64Type, TimestampNanosecondType, UInt64Type};
use smbscope_plan::namespace::gate::CapturedReferral;
use smbscope_plan::namespace::referral::ReferralRow;
use smbscope_store::source::Source;
use smbscope_store::{Part, Table};
use smbscope_tables::named_columns::{Numbers, Text};
use smbscope_tables::tables::Referral;

use super::pass::{Analysis, Monitor, pass};

/// Answers that are kept.
const ANSWERS_MAX: usize = 1_000_000;

/// The referrals of a recording, in the order of its operations.
pub fn referrals(source: &Source, monitor: &dyn Monitor) -> anyhow::Result<Vec<ReferralRow>> {
    let mut seen = Referrals::default();
    pass(source, &mut [&mut seen], monitor)?;
    Ok(seen.finish())
}

/// The same for gates.
pub fn captured(rows: &[ReferralRow]) -> Vec<CapturedReferral> {
    let server = |target: &String| {
        target.trim_start_matches('\\').split('\\').next().unwrap_or_default().to_owned()
    };
    let one = |row: &ReferralRow| CapturedReferral {
        client: row.client.clone(),
        answered_by: row.server.clone(),
        at_s: row.at_ns.div_euclid(1_000_000_000),
        path: if row.dfs_path.is_empty() { row.path.clone() } else { row.dfs_path.clone() },
        ttl_s: row.ttl_s,
        servers: row.targets.iter().map(server).collect(),
    };
    rows.iter().map(one).collect()
}

type Key = (String, u64);

#[derive(Default)]
struct Referrals {
    answers: BTreeMap<Key, ReferralRow>,
    /// Client, server, start and time of the request.
    asked: BTreeMap<Key, (String, String, i64, Option<i64>)>,
}

impl Referrals {
    fn add(&mut self, row: &Referral) {
        let key = (row.recording.clone(), row.operation);
        if self.answers.len() >= ANSWERS_MAX && !self.answers.contains_key(&key) {
            return;
        }
        let answer = self.answers.entry(key).or_default();
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        if answer.path.is_empty() {
            answer.path = text(&row.path);
        }
        if answer.dfs_path.is_empty() {
            answer.dfs_path = text(&row.dfs_path);
        }
        answer.targets.extend(row.target.clone());
        let ttl_s = row.time_to_live_s.and_then(|seconds| u32::try_from(seconds).ok());
        answer.ttl_s = answer.ttl_s.into_iter().chain(ttl_s).min();
    }

    fn operations(&mut self, batch: &RecordBatch) -> anyhow::Result<()> {
        let recording = Text::from_batch(batch, "recording")?;
        let operation = Numbers::<UInt64Type>::from_batch(batch, "operation")?;
        let detail = Text::from_batch(batch, "detail")?;
        let command = Text::from_batch(batch, "command")?;
        let (client, server) =
            (Text::from_batch(batch, "client")?, Text::from_batch(batch, "server")?);
        let start = Numbers::<TimestampNanosecondType>::from_batch(batch, "request_start")?;
        let elapsed = Numbers::<Int64Type>::from_batch(batch, "elapsed_ns")?;
        for row in 0..batch.num_rows() {
            // SMB1 asks by Transaction2, whose detail names the subcommand.
            let asks = detail.get(row).is_some_and(|text| {
                text.contains("DFS_GET_REFERRALS") || text == "Trans2GetDfsReferral"
            });
            let is_message = matches!(command.get(row), Some("Ioctl" | "Transaction2"));
            let (true, true, Some(number)) = (asks, is_message, operation.get(row)) else {
                continue;
            };
            if self.asked.len() >= ANSWERS_MAX {
                break;
            }
            let text = |text: Option<&str>| text.unwrap_or_default().to_owned();
            let key = (text(recording.get(row)), number);
            let facts = (
                text(client.get(row)),
                text(server.get(row)),
                start.get(row).unwrap_or(0),
                elapsed.get(row),
            );
            self.asked.insert(key, facts);
        }
        Ok(())
    }

    fn finish(self) -> Vec<ReferralRow> {
        let Referrals { answers, mut asked } = self;
        let with_client = answers.into_iter().map(|(key, mut row)| {
            if let Some((client, server, at_ns, elapsed_ns)) = asked.remove(&key) {
                (row.client, row.server) = (client, server);
                (row.at_ns, row.elapsed_ns) = (at_ns, elapsed_ns);
            }
            row
        });
        with_client.collect()
    }
}

impl Analysis for Referrals {
    fn tables(&self) -> Vec<Table> {
        vec![Table::Operations, Table::Referrals]
    }

    fn columns(&self) -> Vec<&'static str> {
        vec![
            "recording",
            "operation",
            "command",
            "detail",
            "client",
            "server",
            "request_start",
            "elapsed_ns",
        ]
    }

    fn part(&mut self, part: &Part) -> anyhow::Result<()> {
        match part {
            Part::Operations(batch) => self.operations(batch)?,
            Part::Referrals(rows) => rows.iter().for_each(|row| self.add(row)),
            _ => {}
        }
        Ok(())
    }
}
