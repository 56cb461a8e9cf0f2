//! Waiting that no finding explains, by command and path: what a reader must judge on their own. Round
//! trips in the network are not part of it: the note about distance says what they cost.

use arrow::error::ArrowError;
use hashbrown::HashMap;

use super::data::{Unexplained, UnexplainedKind};
use super::savings::Savings;
use super::what_if::ReplaySample;
use crate::rows::columns::Text;

/// Kinds of operations that are listed.
const KINDS: usize = 5;
/// Most paths for which times are kept.
const PATHS_MAX: usize = 4_096;
/// Less is not mentioned: share of the busy time, and ns.
const SHARE_MIN: f64 = 0.05;
const MIN_NS: i64 = 50_000_000;

type Map<K, V> = HashMap<K, V, foldhash::fast::RandomState>;

/// Operations of one command and detail.
#[derive(Default)]
struct Kind {
    operations: u64,
    ns: i64,
    paths: Map<String, i64>,
}

/// What the findings with these savings leave of the kept operations' busy time.
pub(super) fn unexplained<'a>(
    sample: &ReplaySample,
    findings: impl Iterator<Item = &'a Savings>,
) -> Result<Option<Unexplained>, ArrowError> {
    let sampled = sample.sampled();
    let mut explained_ns = vec![0_i64; sampled.len()];
    for savings in findings {
        let each = savings.by_operation(sampled);
        explained_ns.iter_mut().zip(each).for_each(|(most, ns)| *most = ns.max(*most));
    }
    let mut rest = explained_ns.iter().zip(sampled).map(|(ns, op)| op.busy_without(*ns));
    let (mut kinds, mut paths) = (Map::<(String, Option<String>), Kind>::default(), 0);
    for batch in sample.batches() {
        let [command, detail, path] = [
            Text::from_batch(batch, "command")?,
            Text::from_batch(batch, "detail")?,
            Text::from_batch(batch, "path")?,
        ];
        for (row, ns) in (0..batch.num_rows()).zip(&mut rest) {
            if ns <= 0 {
                continue;
            }
            let text = |column: &Text| column.get(row).map(str::to_owned);
            let name = text(&command).unwrap_or_else(|| "(unknown)".to_owned());
            let kind = kinds.entry((name, text(&detail))).or_default();
            kind.operations += 1;
            kind.ns = kind.ns.saturating_add(ns);
            if let Some(path) = path.get(row) {
                match kind.paths.get_mut(path) {
                    Some(sum) => *sum = sum.saturating_add(ns),
                    None if paths < PATHS_MAX => {
                        paths += 1;
                        kind.paths.insert(path.to_owned(), ns);
                    }
                    None => {}
                }
            }
        }
    }
    let busy_ns: i64 = sampled.iter().fold(0, |sum, op| op.busy_ns.saturating_add(sum));
    let ns = kinds.values().fold(0_i64, |sum, kind| kind.ns.saturating_add(sum));
    let share = ns as f64 / busy_ns.max(1) as f64;
    if ns < MIN_NS || share < SHARE_MIN {
        return Ok(None);
    }
    let kinds = kinds.into_iter().map(|((command, detail), kind)| UnexplainedKind {
        command,
        detail,
        path: {
            let most = kind
                .paths
                .into_iter()
                .max_by(|one, other| (one.1, &other.0).cmp(&(other.1, &one.0)));
            most.map(|(path, _)| path)
        },
        operations: kind.operations,
        ns: kind.ns,
    });
    let mut kinds: Vec<_> = kinds.collect();
    kinds.sort_by(|one, other| {
        (other.ns, &one.command, &one.detail).cmp(&(one.ns, &other.command, &other.detail))
    });
    kinds.truncate(KINDS);
    Ok(Some(Unexplained { ns, share, kinds }))
}
