//! Compound chains: how many, how long, and of which commands. MS-SMB2 section 3.2.4.1.4.
//!
//! A chain's members come as rows of their own, mostly one after the other. A chain counts when
//! its last member has come.

use hashbrown::HashMap;

use super::data::{Compounds, Count};
use super::share_of;

/// Chains that may wait for members at a time.
const WAITING_MAX: usize = 1024;
/// Most patterns.
const PATTERNS_MAX: usize = 512;
/// Members of a pattern that are named.
const NAMED_MAX: usize = 64;

/// A chain: its recording, its connection and its number there.
pub(crate) type Key = (u32, Option<u64>, u64);

/// When chains began: members other than the lead have no time of their own.
#[derive(Default)]
pub(crate) struct Begins {
    /// The chain that was seen last, and how many of its members are yet to come.
    last: Option<(Key, i64, u16)>,
    /// Earlier ones with members to come: one may be answered long after the others.
    waiting: HashMap<Key, i64, foldhash::fast::RandomState>,
}

impl Begins {
    /// When a chain began.
    #[inline]
    pub(crate) fn get(&self, key: Key) -> Option<i64> {
        match self.last {
            Some((last, at, _)) if last == key => Some(at),
            _ => self.waiting.get(&key).copied(),
        }
    }

    /// Adds a member of a chain of `size`, with its own time if it has one.
    pub(crate) fn see(&mut self, key: Key, own: Option<i64>, size: Option<u16>) {
        match (&mut self.last, own) {
            (Some((last, _, left)), _) if *last == key => *left = left.saturating_sub(1),
            (_, Some(at)) if !self.waiting.contains_key(&key) => {
                if let Some((key, at, 1..)) = self.last {
                    if self.waiting.len() >= WAITING_MAX {
                        self.waiting.clear();
                    }
                    self.waiting.insert(key, at);
                }
                self.last = Some((key, at, size.map_or(u16::MAX, |size| size.saturating_sub(1))));
            }
            _ => {}
        }
    }
}

/// One member's place.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Member {
    /// Recording, connection and number of the chain.
    pub(crate) chain: (u32, u64, u64),
    pub(crate) index: u16,
    /// None where the chain's end was not captured.
    pub(crate) size: Option<u16>,
    pub(crate) related: bool,
    pub(crate) command: u32,
}

#[derive(Debug, Default)]
struct Chain {
    seen: u16,
    commands: Vec<u32>,
}

/// The chains so far.
#[derive(Default)]
pub(crate) struct ChainTally {
    chains: u64,
    members: u64,
    related: u64,
    largest: u64,
    others: u64,
    incomplete: u64,
    waiting: HashMap<(u32, u64, u64), Chain, foldhash::fast::RandomState>,
    patterns: HashMap<Vec<u32>, u64, foldhash::fast::RandomState>,
    spare: Vec<Vec<u32>>,
}

impl ChainTally {
    pub(crate) fn record(&mut self, member: &Member) {
        self.members += 1;
        self.related += u64::from(member.related);
        let size = member.size.unwrap_or(member.index.saturating_add(1));
        self.largest = self.largest.max(size.into());
        if self.waiting.len() >= WAITING_MAX && !self.waiting.contains_key(&member.chain) {
            self.incomplete += self.waiting.len() as u64;
            self.waiting.clear();
        }
        let spare = &mut self.spare;
        let chain = self
            .waiting
            .entry(member.chain)
            .or_insert_with(|| Chain { seen: 0, commands: spare.pop().unwrap_or_default() });
        chain.seen = chain.seen.saturating_add(1);
        let place = usize::from(member.index);
        if place < NAMED_MAX {
            if chain.commands.len() <= place {
                chain.commands.resize(place + 1, u32::MAX);
            }
            if let Some(command) = chain.commands.get_mut(place) {
                *command = member.command;
            }
        }
        if member.size.is_none_or(|size| chain.seen < size) {
            return;
        }
        let Some(mut chain) = self.waiting.remove(&member.chain) else {
            return;
        };
        self.chains += 1;
        let room = self.patterns.len() < PATTERNS_MAX;
        match self.patterns.get_mut(&chain.commands) {
            Some(count) => *count += 1,
            None if room => {
                self.patterns.insert(chain.commands.clone(), 1);
            }
            None => self.others += 1,
        }
        if self.spare.len() < 16 {
            chain.commands.clear();
            self.spare.push(chain.commands);
        }
    }

    /// As data; `command` names a command's number.
    pub(crate) fn finish(&self, operations: u64, command: impl Fn(u32) -> String) -> Compounds {
        let mut patterns: HashMap<String, u64> = HashMap::new();
        for (commands, &count) in &self.patterns {
            *patterns.entry(pattern(commands, &command)).or_default() += count;
        }
        let patterns = patterns.into_iter();
        let mut patterns: Vec<_> = patterns.map(|(name, count)| Count { name, count }).collect();
        patterns.sort_by(|a, b| b.count.cmp(&a.count).then_with(|| a.name.cmp(&b.name)));
        Compounds {
            chains: self.chains,
            members: self.members,
            related: self.related,
            largest: self.largest,
            members_share: share_of(self.members as i64, operations as i64),
            patterns,
            others: self.others,
            incomplete: self.incomplete + self.waiting.len() as u64,
        }
    }
}

/// "Create + QueryInfo ×2 + Close".
fn pattern(commands: &[u32], name: impl Fn(u32) -> String) -> String {
    let mut words: Vec<(u32, usize)> = Vec::new();
    for &command in commands {
        match words.last_mut() {
            Some((last, times)) if *last == command => *times += 1,
            _ => words.push((command, 1)),
        }
    }
    let words: Vec<_> = words
        .into_iter()
        .map(|(command, times)| {
            let word = match command {
                u32::MAX => "?".to_owned(),
                _ => name(command),
            };
            match times {
                1 => word,
                _ => format!("{word} ×{times}"),
            }
        })
        .collect();
    let end = if commands.len() >= NAMED_MAX { " + …" } else { "" };
    words.join(" + ") + end
}

#[cfg(test)]
mod tests {
    use super::*;

    fn member(chain: u64, index: u16, size: u16, command: u32) -> Member {
        Member { chain: (0, 1, chain), index, size: Some(size), related: index > 0, command }
    }

    #[test]
    fn chains_whose_end_was_not_captured_are_incomplete() {
        let mut tally = ChainTally::default();
        for (chain, index) in [(1, 0), (1, 1), (1, 2), (2, 0)] {
            tally.record(&Member { size: None, ..member(chain, index, 0, 5) });
        }
        let found = tally.finish(8, |number| format!("c{number}"));
        assert_eq!((found.chains, found.members, found.incomplete), (0, 4, 2));
        assert_eq!((found.largest, found.members_share), (3, 0.5));
    }

    #[test]
    fn chains_count_when_complete_in_whatever_order_members_come() {
        let mut tally = ChainTally::default();
        for row in [
            member(1, 0, 3, 5),
            member(2, 1, 2, 6),
            member(1, 2, 3, 6),
            member(2, 0, 2, 5),
            member(1, 1, 3, 16),
            member(3, 0, 4, 5),
            member(4, 0, 3, 5),
            member(4, 1, 3, 5),
            member(4, 2, 3, 6),
        ] {
            tally.record(&row);
        }
        let found = tally.finish(18, |number| format!("c{number}"));
        assert_eq!((found.chains, found.members, found.incomplete), (3, 9, 1));
        assert_eq!((found.largest, found.related, found.members_share), (4, 5, 0.5));
        let names: Vec<_> = found.patterns.iter().map(|p| p.name.as_str()).collect();
        assert_eq!(names, ["c5 + c16 + c6", "c5 + c6", "c5 ×2 + c6"]);
    }

    #[test]
    fn what_waits_is_bounded() {
        let mut tally = ChainTally::default();
        for chain in 0..10_000 {
            tally.record(&member(chain, 0, u16::MAX, 5));
        }
        assert!(tally.waiting.len() <= WAITING_MAX);
        assert_eq!(tally.finish(1, |_| String::new()).incomplete, 10_000);
    }
}
