//! Whether a recording has what changes need, which is known after it was replayed.

use super::changes::{Change, MissingInput};
use super::replay::{Prediction, SizeCosts};

/// Share of blocks in flight together with the one before above which other sizes are not predicted.
const CONCURRENT_SHARE_MAX: f64 = 0.1;
/// What such a recording lacks.
const ONE_AT_A_TIME: &str = "reads and writes that follow each other: most of these are in flight together, and how \
                             blocks of another size would overlap is not known. Record one request at a time, or \
                             measure with the other block (smbscope load --workload bulk-copy --block 256KiB)";

/// The first change to other block sizes whose costs a replay without changes could not learn, or whose requests
/// overlap.
pub fn unlearnt_sizes(changes: &[Change], [read, write]: [SizeCosts; 2]) -> Option<MissingInput> {
    changes.iter().find_map(|change| {
        let sizes = change.block_sizes();
        // Requests that stay as they are need no costs.
        let mut resized = [(sizes.read, read), (sizes.write, write)]
            .into_iter()
            .filter_map(|(block, learnt)| Some((block?, learnt)))
            .filter(|(block, learnt)| {
                let merges = learnt.continued > 0 && learnt.least_bytes.saturating_mul(2) <= *block;
                merges || learnt.most_bytes > *block
            });
        resized.find_map(|(_, learnt)| {
            let concurrent = learnt.concurrent as f64;
            if concurrent > CONCURRENT_SHARE_MAX * learnt.continued as f64 {
                return Some(MissingInput { what: ONE_AT_A_TIME, ..change.missing() });
            }
            learnt.cost.is_none().then(|| change.missing())
        })
    })
}

/// The first change that a prediction with these changes could not answer.
pub fn unanswered(changes: &[Change], prediction: &Prediction) -> Option<MissingInput> {
    changes.iter().find(|change| !change.is_answerable(prediction)).map(Change::missing)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_in_flight_together_are_not_predicted_one_by_one() {
        let change: Change = "block=256KiB".parse().unwrap();
        let learnt = |concurrent, least_bytes, most_bytes| SizeCosts {
            continued: 100,
            concurrent,
            least_bytes,
            most_bytes,
            cost: Some((500.0, 2.0)),
            piece_ns: None,
        };
        let lacks = |one: SizeCosts| {
            unlearnt_sizes(&[change], [one, SizeCosts::default()]).map(|missing| missing.what)
        };
        let (small, same, large) = (64 << 10, 256 << 10, 1 << 20);
        assert_eq!(lacks(learnt(0, small, large)), None);
        assert_eq!(lacks(learnt(90, small, small)), Some(ONE_AT_A_TIME));
        assert_eq!(lacks(learnt(90, same, large)), Some(ONE_AT_A_TIME));
        // Nothing changes: the recorded requests are the prediction.
        assert_eq!(lacks(learnt(90, same, same)), None);
    }
}
