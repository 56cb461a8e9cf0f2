//! Whether a recording has what changes need, which is known after it was replayed.

use super::changes::{Change, MissingInput};
use super::replay::{Prediction, SizeCosts};

/// The first change to other block sizes whose costs a replay without changes could not learn.
pub fn unlearnt_sizes(changes: &[Change], [read, write]: [SizeCosts; 2]) -> Option<MissingInput> {
    let is_unlearnt = |change: &&Change| {
        let sizes = change.block_sizes();
        [(sizes.read, read), (sizes.write, write)].into_iter().any(|(block, learnt)| {
            // Requests that stay as they are need no costs.
            let changes = |block| learnt.continued > 0 || learnt.most_bytes > block;
            block.is_some_and(|block| learnt.cost.is_none() && changes(block))
        })
    };
    changes.iter().find(is_unlearnt).map(Change::missing)
}

/// The first change that a prediction with these changes could not answer.
pub fn unanswered(changes: &[Change], prediction: &Prediction) -> Option<MissingInput> {
    changes.iter().find(|change| !change.is_answerable(prediction)).map(Change::missing)
}
