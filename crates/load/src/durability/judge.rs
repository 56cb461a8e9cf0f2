//! Compares what is in a block with the Writes that were acknowledged for it. Pure: no server, no journal.
//!
//! A Write survived if each sector of its block is from that Write or a later one. What a later Write that was in
//! flight replaced is not lost.

use super::block::SECTOR_BYTES;
use super::ledger::Write;

/// What a sector of a file has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spot {
    /// The file ends before it, or does not exist.
    Beyond,
    /// Zeros.
    Zeros,
    /// Neither zeros nor what a Write to this place made.
    Damaged,
    /// From the Write with this number.
    Write(u64),
}

impl Spot {
    /// The number of the Write, 0 if there is none.
    fn sequence(self) -> u64 {
        match self {
            Spot::Write(sequence) => sequence,
            Spot::Beyond | Spot::Zeros | Spot::Damaged => 0,
        }
    }
}

/// What is there instead of a Write that was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum How {
    /// The file is shorter, or does not exist.
    Missing,
    /// Zeros in the middle of a file.
    Hole,
    /// An older generation of the block.
    Stale,
    /// Parts of different Writes, or of a Write and zeros; the granularity is 512 or 4096 bytes.
    Torn(u32),
    /// Bytes that no Write made.
    Damaged,
}

impl How {
    /// Kinds in the order of reports; torn blocks of both granularities.
    pub const ALL: [How; 6] =
        [How::Missing, How::Hole, How::Stale, How::Torn(4096), How::Torn(512), How::Damaged];

    /// For people and JSON.
    pub fn name(self) -> &'static str {
        match self {
            How::Missing => "missing",
            How::Hole => "hole",
            How::Stale => "stale",
            How::Torn(512) => "torn-512",
            How::Torn(_) => "torn-4096",
            How::Damaged => "damaged",
        }
    }
}

/// What became of the Writes of a block.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Number of the newest Write that is there completely, acknowledged or not; 0 if there is none.
    pub found: u64,
    /// Acknowledged Writes that are not there: places in the list of Writes.
    pub lost: Vec<usize>,
    /// What is there instead, if something is lost.
    pub how: Option<How>,
    /// The newest Write that was promised durable: its place.
    pub promised: Option<usize>,
    /// Whether a Write that was in flight is there in part. It was never acknowledged: nothing is lost.
    pub torn_in_flight: bool,
}

impl Outcome {
    /// Whether a promise was broken.
    pub fn is_broken(&self) -> bool {
        self.promised.is_some_and(|promised| self.lost.contains(&promised))
    }
}

/// Judges a block: its acknowledged Writes in the order in which they were sent, and its sectors.
pub fn judge(writes: &[Write], spots: &[Spot]) -> Outcome {
    let least = spots.iter().map(|spot| spot.sequence()).min().unwrap_or(0);
    let is_lost = |write: &Write| write.sequence > least;
    let lost: Vec<usize> =
        writes.iter().enumerate().filter(|(_, write)| is_lost(write)).map(|(at, _)| at).collect();
    let promised = writes.iter().rposition(|write| write.promised_ns.is_some());
    let is_mixed = spots.windows(2).any(|two| two.first() != two.last());
    let how = if lost.is_empty() { None } else { Some(how(spots, is_mixed)) };
    let torn_in_flight = lost.is_empty() && is_mixed;
    Outcome { found: least, lost, how, promised, torn_in_flight }
}

fn how(spots: &[Spot], is_mixed: bool) -> How {
    if spots.contains(&Spot::Damaged) {
        return How::Damaged;
    }
    if is_mixed {
        let per_page = 4096 / SECTOR_BYTES;
        let borders = spots.windows(2).enumerate().filter(|(_, two)| two.first() != two.last());
        let is_paged =
            borders.fold(true, |paged, (at, _)| paged && (at + 1).is_multiple_of(per_page));
        return How::Torn(if is_paged { 4096 } else { 512 });
    }
    match spots.first() {
        None | Some(Spot::Beyond) => How::Missing,
        Some(Spot::Zeros) => How::Hole,
        Some(Spot::Write(_)) => How::Stale,
        Some(Spot::Damaged) => How::Damaged,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Writes by number; those with a minus sign were not promised.
    fn writes(numbers: &[i64]) -> Vec<Write> {
        let write = |number: &i64| Write {
            block: 0,
            generation: 1,
            sequence: number.unsigned_abs(),
            sent_ns: 0,
            acked_ns: 0,
            promised_ns: (*number > 0).then_some(0),
        };
        numbers.iter().map(write).collect()
    }

    fn judged(numbers: &[i64], spots: &[Spot]) -> (Vec<usize>, Option<How>, bool) {
        let outcome = judge(&writes(numbers), spots);
        let is_broken = outcome.is_broken();
        (outcome.lost, outcome.how, is_broken)
    }

    #[test]
    fn what_is_there_is_not_lost() {
        let there = [Spot::Write(5); 16];
        assert_eq!(judged(&[3, 5], &there), (vec![], None, false));
        // A later Write that was in flight replaced it, in whole or in part.
        assert_eq!(judged(&[3], &there), (vec![], None, false));
        let mut partly = [Spot::Write(5); 16];
        partly[3] = Spot::Write(9);
        assert_eq!(judged(&[5], &partly), (vec![], None, false));
        assert!(judge(&writes(&[5]), &partly).torn_in_flight);
        assert!(!judge(&writes(&[5]), &there).torn_in_flight);
    }

    #[test]
    fn each_kind_of_loss_is_named() {
        let stale = [Spot::Write(3); 16];
        assert_eq!(judged(&[3, 5], &stale), (vec![1], Some(How::Stale), true));
        assert_eq!(judged(&[3, -5], &stale), (vec![1], Some(How::Stale), false));
        assert_eq!(judged(&[3], &[Spot::Zeros; 16]), (vec![0], Some(How::Hole), true));
        assert_eq!(judged(&[-3], &[Spot::Beyond; 16]), (vec![0], Some(How::Missing), false));
        let damaged = [Spot::Write(3), Spot::Damaged];
        assert_eq!(judged(&[3], &damaged), (vec![0], Some(How::Damaged), true));
        // Both generations are lost; the promise of the second one counts.
        assert_eq!(judged(&[3, 5], &[Spot::Zeros; 8]), (vec![0, 1], Some(How::Hole), true));
    }

    #[test]
    fn a_torn_block_has_a_granularity() {
        let mut spots = [Spot::Write(5); 32];
        spots[8..16].fill(Spot::Write(3));
        assert_eq!(judged(&[3, 5], &spots), (vec![1], Some(How::Torn(4096)), true));
        spots[8] = Spot::Write(5);
        assert_eq!(judged(&[3, 5], &spots), (vec![1], Some(How::Torn(512)), true));
        // The file ends in the middle of the block.
        spots[8..].fill(Spot::Beyond);
        assert_eq!(judged(&[5], &spots), (vec![0], Some(How::Torn(4096)), true));
    }
}
