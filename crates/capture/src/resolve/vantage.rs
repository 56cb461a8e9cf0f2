//! Where a capture was taken, according to its connections.

use smbscope_tables::tables::{Connection, Coverage};

use super::Map;

/// Different answers that are counted separately.
const ANSWERS: usize = 64;

/// Vantages and their reasons, with the operations of the connections that say so.
#[derive(Clone, Default)]
pub struct Vantages(Map<(Option<String>, String), u64>);

impl Vantages {
    /// Takes what a connection says.
    pub fn add(&mut self, connection: &Connection) {
        let answer = (connection.vantage.clone(), connection.vantage_reason.clone());
        if self.0.len() < ANSWERS || self.0.contains_key(&answer) {
            *self.0.entry(answer).or_default() += connection.operations.max(1);
        }
    }

    /// Where the capture was taken: what most operations' connections say.
    pub fn judge(self, coverage: &mut Coverage) {
        let mut judged: Vec<_> = self.0.into_iter().collect();
        judged.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        let known: Vec<_> = judged.iter().filter(|((vantage, _), _)| vantage.is_some()).collect();
        match known.as_slice() {
            [] => {
                coverage.vantage = None;
                coverage.vantage_reason = "no round trip was seen on both sides".to_owned();
            }
            [((first, reason), operations), rest @ ..] => {
                let same = rest.iter().filter(|((vantage, _), _)| vantage == first);
                let agree = operations + same.map(|(_, operations)| operations).sum::<u64>();
                let all: u64 = known.iter().map(|(_, operations)| operations).sum();
                // One odd connection in a hundred does not make a capture mixed.
                if agree * 100 >= all * 99 {
                    coverage.vantage.clone_from(first);
                    coverage.vantage_reason.clone_from(reason);
                } else {
                    coverage.vantage = Some("mixed".to_owned());
                    let word = first.as_deref().unwrap_or_default();
                    coverage.vantage_reason = format!(
                        "{} % of the operations were seen from: {word} ({reason})",
                        agree * 100 / all.max(1)
                    );
                }
            }
        }
    }
}
