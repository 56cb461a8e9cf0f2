//! What the connections, sessions, trees and handles add: the transport, credits, leases.

use hashbrown::HashMap;
use smbscope_tables::tables::{Connection, Handle, Session, Tree};

use super::data::{
    self, ConnectionRow, Connections, Count, Distribution, Handles, Sessions, Trees,
};
use super::series::SeriesTally;
use super::tally::{Facts, Whole};
use super::{share_of, tally::Dimension};
use crate::net::bound::path_bound;
use crate::stats::latency::{Grain, Latency, Sample};

/// Words counted in lists of words (states, dialects, mechanisms).
const WORDS_MAX: usize = 64;

/// A bounded list of words with how often each occurs.
#[derive(Clone, Debug, Default)]
pub(crate) struct Words(Vec<Count>);

impl Words {
    pub(crate) fn add(&mut self, word: &str) {
        if let Some(found) = self.0.iter_mut().find(|found| found.name == word) {
            found.count += 1;
        } else if self.0.len() < WORDS_MAX {
            self.0.push(Count { name: word.to_owned(), count: 1 });
        } else if word != "(others)" {
            match self.0.last_mut() {
                Some(last) if last.name == "(others)" => last.count += 1,
                _ => {
                    self.0.push(Count { name: "(others)".to_owned(), count: 1 });
                }
            }
        }
    }

    pub(crate) fn finish(&self) -> Vec<Count> {
        let mut words = self.0.clone();
        words.sort_by(|a, b| b.count.cmp(&a.count).then_with(|| a.name.cmp(&b.name)));
        words
    }
}

/// What operations add to their connection.
#[derive(Clone, Debug)]
pub(crate) struct Link {
    pub(crate) operations: u64,
    pub(crate) busy_ns: i64,
    pub(crate) credit_charge: u64,
    pub(crate) credits_requested: u64,
    pub(crate) credits_granted: u64,
    pub(crate) read_bytes: u64,
    pub(crate) written_bytes: u64,
    /// None past the limit: it takes kilobytes.
    pub(crate) elapsed: Option<Box<Latency>>,
    pub(crate) oplocks: Words,
    pub(crate) leases: Words,
    /// Place of its share, client and user in the cells.
    pub(crate) cell: u32,
}

impl Link {
    #[inline]
    pub(crate) fn add(&mut self, facts: &Facts, credits: [Option<u16>; 3]) {
        let [charge, requested, granted] = credits.map(|value| u64::from(value.unwrap_or(0)));
        self.operations += 1;
        self.busy_ns = self.busy_ns.saturating_add(facts.busy_ns);
        self.credit_charge += charge;
        self.credits_requested += requested;
        self.credits_granted += granted;
        self.read_bytes = self.read_bytes.saturating_add(facts.read_bytes);
        self.written_bytes = self.written_bytes.saturating_add(facts.written_bytes);
        if let (Some(sum), Some(elapsed)) = (&mut self.elapsed, &facts.elapsed) {
            sum.record(elapsed);
        }
    }
}

/// A connection's key: its recording (a name's number) and its number there.
type Key = (u32, u64);

/// Connections that are found without a hash.
const RECENT: usize = 64;
/// Connections past the limit of which sums are kept, for each below it.
const SUMMED: usize = 64;

/// Connections by their numbers, up to a limit.
pub(crate) struct LinkTally {
    links: Vec<Link>,
    index: HashMap<Key, u32, foldhash::fast::RandomState>,
    /// The connections that were used last, by their numbers' low bits.
    recent: [Option<(Key, u32)>; RECENT],
    limit: usize,
    grain: Grain,
    rows: Vec<Connection>,
    sums: Connections,
}

impl LinkTally {
    pub(crate) fn new(limit: usize, grain: Grain) -> LinkTally {
        LinkTally {
            links: Vec::new(),
            index: HashMap::default(),
            recent: [None; RECENT],
            limit: limit.max(1),
            grain,
            rows: Vec::new(),
            sums: Connections::default(),
        }
    }

    /// The sums of a connection's operations; none past the limit.
    #[inline]
    pub(crate) fn link(&mut self, key: Key) -> Option<&mut Link> {
        let number = match self.recent[key.1 as usize % RECENT] {
            Some((recent, number)) if recent == key => number,
            _ => self.find(key)?,
        };
        self.links.get_mut(number as usize)
    }

    fn find(&mut self, key: Key) -> Option<u32> {
        let number = match self.index.get(&key) {
            Some(&number) => number,
            None if self.links.len() < self.limit.saturating_mul(SUMMED) => {
                let is_timed = self.links.len() < self.limit;
                let number = self.links.len() as u32;
                self.links.push(Link {
                    operations: 0,
                    busy_ns: 0,
                    credit_charge: 0,
                    credits_requested: 0,
                    credits_granted: 0,
                    read_bytes: 0,
                    written_bytes: 0,
                    elapsed: is_timed.then(|| Box::new(Latency::new(self.grain))),
                    oplocks: Words::default(),
                    leases: Words::default(),
                    cell: 0,
                });
                self.index.insert(key, number);
                number
            }
            None => return None,
        };
        self.recent[key.1 as usize % RECENT] = Some((key, number));
        Some(number)
    }

    /// Adds finished connections; those with the most operations are kept.
    pub(crate) fn connections(&mut self, rows: &[Connection]) {
        for row in rows {
            let sums = &mut self.sums;
            sums.connections += 1;
            for (sum, values) in [
                (&mut sums.packets, [row.packets_to_server, row.packets_to_client]),
                (&mut sums.bytes_to_server, [row.bytes_to_server, 0]),
                (&mut sums.bytes_to_client, [row.bytes_to_client, 0]),
                (
                    &mut sums.retransmissions,
                    [row.retransmissions_to_server, row.retransmissions_to_client],
                ),
                (&mut sums.out_of_order, [row.out_of_order_to_server, row.out_of_order_to_client]),
                (&mut sums.gaps, [row.gaps_to_server, row.gaps_to_client]),
                (&mut sums.gap_bytes, [row.gap_bytes_to_server, row.gap_bytes_to_client]),
                (&mut sums.zero_windows, [row.zero_windows_to_server, row.zero_windows_to_client]),
                (&mut sums.resets, [row.resets, 0]),
            ] {
                *sum = values.into_iter().fold(*sum, u64::saturating_add);
            }
            self.rows.push(row.clone());
            if self.rows.len() >= self.limit * 2 {
                self.prune();
            }
        }
    }

    fn prune(&mut self) {
        self.rows.sort_by(|a, b| {
            (b.operations.cmp(&a.operations))
                .then_with(|| (&a.recording, a.connection).cmp(&(&b.recording, b.connection)))
        });
        self.rows.truncate(self.limit);
    }

    pub(crate) fn finish(mut self, total: &Whole, recordings: &mut Dimension) -> Connections {
        self.prune();
        let mut connections = std::mem::take(&mut self.sums);
        connections.others = self.links.len().saturating_sub(self.limit) as u64;
        for connection in std::mem::take(&mut self.rows) {
            let key = (recordings.resolve(Some(&connection.recording)), connection.connection);
            let unnamed = (Dimension::NONE, connection.connection);
            let number = self.index.get(&key).or_else(|| self.index.get(&unnamed));
            let link = number.and_then(|&number| self.links.get(number as usize));
            let bound = path_bound(&connection);
            connections.rows.push(match link {
                Some(link) => ConnectionRow {
                    connection,
                    bound,
                    busy_ns: link.busy_ns,
                    busy_share: share_of(link.busy_ns, total.busy_ns),
                    credit_charge: link.credit_charge,
                    credits_requested: link.credits_requested,
                    credits_granted: link.credits_granted,
                    read_bytes: link.read_bytes,
                    written_bytes: link.written_bytes,
                    elapsed: (link.elapsed.as_ref())
                        .map_or_else(Distribution::default, |elapsed| elapsed.distribution(false)),
                    oplocks: link.oplocks.finish(),
                    leases: link.leases.finish(),
                },
                None => ConnectionRow { connection, bound, ..ConnectionRow::default() },
            });
        }
        connections
    }
}

/// Adds sessions.
pub(crate) fn sessions(sums: &mut Sessions, words: &mut Words, rows: &[Session]) {
    for row in rows {
        sums.sessions += 1;
        sums.guests += u64::from(row.guest == Some(true));
        sums.encrypted += u64::from(row.encrypt_data == Some(true));
        sums.multichannel += u64::from(row.channels > 1);
        sums.channels_max = sums.channels_max.max(row.channels);
        if let Some(mechanism) = &row.mechanism {
            words.add(mechanism);
        }
    }
}

/// Adds trees.
pub(crate) fn trees(sums: &mut Trees, rows: &[Tree]) {
    for row in rows {
        sums.trees += 1;
        sums.continuously_available += u64::from(row.continuous_availability == Some(true));
        sums.encrypted += u64::from(row.encrypt_data == Some(true));
    }
}

/// The opens so far.
pub(crate) struct HandleTally {
    sums: data::Handles,
    open: Latency,
    oplocks: Words,
    leases: Words,
}

impl HandleTally {
    pub(crate) fn new(grain: Grain) -> HandleTally {
        HandleTally {
            sums: Handles::default(),
            open: Latency::new(grain),
            oplocks: Words::default(),
            leases: Words::default(),
        }
    }

    pub(crate) fn handles(&mut self, series: &mut SeriesTally, rows: &[Handle]) {
        for row in rows {
            let sums = &mut self.sums;
            sums.handles += 1;
            sums.opened_before += u64::from(row.opened_at.is_none());
            sums.still_open += u64::from(row.closed_at.is_none());
            sums.directories += u64::from(row.directory == Some(true));
            sums.durable += u64::from(row.durable == Some(true));
            sums.persistent += u64::from(row.persistent == Some(true));
            sums.write_through += u64::from(row.write_through == Some(true));
            // One that ended with its connection has no Close among its operations.
            let ends = 1 + u64::from(row.close_operation.is_some());
            let is_over = row.opened_at.is_some() && row.closed_at.is_some();
            let is_used = row.operations > ends || row.reads > 0 || row.writes > 0;
            sums.never_used += u64::from(is_over && !is_used);
            series.handle(row.opened_at, row.closed_at);
            if let (Some(opened), Some(closed)) = (row.opened_at, row.closed_at) {
                self.open.record(&Sample::new(closed.saturating_sub(opened)));
            }
            if let Some(oplock) = &row.oplock {
                self.oplocks.add(oplock);
            }
            if let Some(lease) = &row.lease {
                self.leases.add(lease);
            }
        }
    }

    pub(crate) fn finish(&self) -> Handles {
        Handles {
            open: self.open.distribution(false),
            oplocks: self.oplocks.finish(),
            leases: self.leases.finish(),
            ..self.sums.clone()
        }
    }
}
