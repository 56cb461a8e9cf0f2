//! One session: sums of its channels, their rates over time, fairness, gain, and the slowest path.

use std::collections::BTreeMap;

use smbscope_tables::run::{MEASURED, PREPARING};
use smbscope_tables::tables::{Channel, Interface};

use super::data::*;
use super::machine::Machines;
use super::plateau::plateau;
use super::{BINS_MAX, Key, rounded};

/// Connections of a session that are followed.
const CONNECTIONS_MAX: usize = 64;
/// Bins of the rates that are returned.
const BINS_SHOWN: usize = 600;
/// Round trips of a connection that are kept for the median.
const TRIPS_MAX: usize = 16_384;
/// Bytes of a segment, to make bytes of retransmissions.
const SEGMENT_BYTES: f64 = 1_460.0;
/// Losses limit a channel that retransmits more than this share of its bytes.
const LOSS_MIN: f64 = 1e-3;
/// A bound limits a channel that reaches at least this share of it.
const NEAR: f64 = 0.8;
/// A round trip of this many times the least one includes a queue ...
const QUEUED: f64 = 2.0;
/// ... and not only a scheduler, ns.
const QUEUED_MIN_NS: i64 = 1_000_000;
/// The most bytes in flight over the usual round trip exceed what a full path carries by this at most.
const ALWAYS_BUSY: f64 = 0.5;

#[derive(Clone, Copy, Debug, Default)]
struct Bin {
    bytes: u64,
    /// Reads and Writes in flight times the time, ns.
    busy_ns: f64,
    transferring_ns: f64,
}

/// One connection.
#[derive(Default)]
struct ChannelTally {
    facts: ChannelTimeline,
    bins: BTreeMap<i64, Bin>,
    trips: Vec<i64>,
    first_seen: i64,
    /// Whether it carried what is written before a run is measured.
    is_prepared: bool,
    /// When the measured part began, in a run that has one.
    measured_at: Option<i64>,
}

/// One session.
#[derive(Default)]
pub(super) struct SessionTally {
    channels: BTreeMap<u64, ChannelTally>,
    /// Width of the bins; 0 before the first row.
    bin_ns: i64,
    /// Whether it is a run that moves bulk data.
    is_run: bool,
}

impl SessionTally {
    pub(super) fn has_rows(&self) -> bool {
        !self.channels.is_empty()
    }

    /// Whether a load run moved bulk data in it: then its channels are shown in any case.
    pub(super) fn is_run(&self) -> bool {
        self.is_run
    }

    /// Beginning and end of its rows.
    pub(super) fn span(&self) -> Option<(i64, i64)> {
        let first = self.channels.values().map(|one| one.first_seen).min()?;
        let ends = self.channels.values().filter_map(|one| one.bins.last_key_value());
        let last = ends.map(|(place, _)| place.saturating_add(1)).max()?;
        Some((first, last.saturating_mul(self.bin_ns)))
    }

    pub(super) fn connections(&self) -> usize {
        self.channels.len()
    }

    /// Adds a row; a connection has at most `bins` bins, beyond which neighbours are joined. Without
    /// `has_room` there are no new connections.
    pub(super) fn add(&mut self, row: &Channel, bins: usize, has_room: bool) {
        if self.bin_ns == 0 {
            self.bin_ns = (row.interval_ns as i64).max(1);
        }
        let has_room = has_room && self.channels.len() < CONNECTIONS_MAX;
        if !has_room && !self.channels.contains_key(&row.connection) {
            return;
        }
        let one = self.channels.entry(row.connection).or_insert_with(|| ChannelTally {
            first_seen: row.interval_start,
            ..ChannelTally::default()
        });
        one.first_seen = one.first_seen.min(row.interval_start);
        self.is_run |= row.phase.is_some();
        one.identify(row);
        let bytes = row.bytes_written.saturating_add(row.bytes_read);
        let phase = row.phase.as_deref();
        one.is_prepared |= phase == Some(PREPARING) && bytes > 0;
        if phase.is_some_and(|phase| phase != MEASURED) {
            return;
        }
        let begins = row.phase.as_ref().and(row.phase_at);
        one.measured_at = one.measured_at.into_iter().chain(begins).min();
        one.learn(row);
        // Rows of longer intervals than the bins count where they begin.
        let place = row.interval_start.div_euclid(self.bin_ns);
        let bin = one.bins.entry(place).or_default();
        bin.bytes = bin.bytes.saturating_add(bytes);
        bin.busy_ns += row.outstanding_mean * row.interval_ns as f64;
        bin.transferring_ns += row.transferring_mean * row.interval_ns as f64;
        let ends = one.bins.first_key_value().zip(one.bins.last_key_value());
        if ends.is_some_and(|(first, last)| last.0.abs_diff(*first.0) >= bins as u64) {
            self.widen(bins);
        }
    }

    /// Makes bins wider until those of every channel fit.
    fn widen(&mut self, bins: usize) {
        let spans = self.channels.values().filter_map(|one| {
            let (first, last) = (one.bins.first_key_value()?, one.bins.last_key_value()?);
            Some(last.0.abs_diff(*first.0))
        });
        let times = spans.max().unwrap_or(0) / bins as u64 + 1;
        let times = (times.min(1 << 40) as i64).max(2);
        self.bin_ns = self.bin_ns.saturating_mul(times);
        for one in self.channels.values_mut() {
            let mut joined: BTreeMap<i64, Bin> = BTreeMap::new();
            for (place, bin) in std::mem::take(&mut one.bins) {
                let sum = joined.entry(place.div_euclid(times)).or_default();
                sum.bytes = sum.bytes.saturating_add(bin.bytes);
                sum.busy_ns += bin.busy_ns;
                sum.transferring_ns += bin.transferring_ns;
            }
            one.bins = joined;
        }
    }

    pub(super) fn finish(
        &self,
        key: &Key,
        offered: &[Interface],
        machines: &Machines,
    ) -> SessionTimeline {
        let bin_ns = self.bin_ns.max(1);
        let mut tallies: Vec<_> = self.channels.values().collect();
        tallies.sort_by_key(|one| (one.facts.opened_ns.unwrap_or(one.first_seen), one.first_seen));
        let first = tallies.iter().filter_map(|one| one.bins.keys().next()).min().copied();
        let last = tallies.iter().filter_map(|one| one.bins.keys().next_back()).max().copied();
        let (first, last) = (first.unwrap_or(0), last.unwrap_or(0));
        let opened_ns = (tallies.iter())
            .map(|one| {
                let facts = &one.facts;
                let known = [facts.opened_ns, facts.bound_ns, facts.first_byte_ns];
                known.into_iter().flatten().min().unwrap_or(one.first_seen)
            })
            .min()
            .unwrap_or(0);
        // What is prepared before is not part of the transfer.
        let is_prepared = tallies.iter().any(|one| one.is_prepared);
        let measured_at = tallies.iter().filter_map(|one| one.measured_at).min();
        let start_ns = measured_at.filter(|_| is_prepared).unwrap_or(opened_ns);
        let first =
            if is_prepared { first.max(start_ns.div_euclid(bin_ns)).min(last) } else { first };
        // Two channels that are days apart have few bins each.
        let places = last.saturating_sub(first).clamp(0, 2 * BINS_MAX as i64) as usize + 1;
        let mut channels: Vec<_> =
            tallies.iter().map(|one| one.finish(first, places, bin_ns, offered)).collect();
        let all: u64 = channels.iter().map(bytes).fold(0, u64::saturating_add);
        for one in &mut channels {
            one.share = rounded(bytes(one) as f64 / all.max(1) as f64);
        }
        let sum: Vec<f64> = (0..places)
            .map(|at| channels.iter().filter_map(|one| one.bytes_per_second.get(at)).sum())
            .collect();
        let first_byte = channels.iter().filter_map(|one| one.first_byte_ns).min();
        let last_byte = channels.iter().filter_map(|one| one.last_byte_ns).max();
        let bins_start_ns = first.saturating_mul(bin_ns);
        let level = plateau(&sum, bin_ns);
        let after = |at: i64| at.saturating_sub(start_ns).max(0);
        let moving_ns = last_byte.zip(first_byte).map_or(0, |(last, first)| last - first);
        let reached = level.map(|(_, place)| {
            // Not before the first byte, which can be within its interval.
            let at = bins_start_ns.saturating_add((place as i64).saturating_mul(bin_ns));
            at.max(first_byte.unwrap_or(at))
        });
        let (client, server) = channels
            .first()
            .map_or_else(Default::default, |one| (one.client.clone(), one.server.clone()));
        let ends = (start_ns, reached, last_byte);
        let fairness = fairness(&channels);
        let gain = gain(&channels, &sum, bin_ns)
            .or_else(|| gain_after_loss(&channels, &sum, bins_start_ns, bin_ns));
        // A client that goes over to RDMA has no bytes in TCP from then on: the timeline continues.
        let is_offered = offered.iter().any(|one| one.rdma_capable);
        let rdma_end = machines.rdma_end(&key.0).filter(|_| is_offered).max(last_byte);
        let by_rdma = rdma_end.map_or(0, |end| end.saturating_sub(bins_start_ns) / bin_ns);
        let limit = places.max(2 * BINS_MAX);
        let places = usize::try_from(by_rdma).unwrap_or(0).clamp(places, limit);
        let rdma_took_over = machines.rdma_took_over(&key.0, |at| {
            let place = at.saturating_sub(bins_start_ns) / bin_ns;
            usize::try_from(place).ok().and_then(|place| sum.get(place)).copied().unwrap_or(0.0)
        });
        // What is shown has fewer bins than what is computed.
        let times = places.div_ceil(BINS_SHOWN).max(1);
        let shown_ns = bin_ns.saturating_mul(times as i64);
        for one in &mut channels {
            one.bytes_per_second.resize(places, 0.0);
            join(&mut one.bytes_per_second, times);
        }
        SessionTimeline {
            recording: key.0.clone(),
            session_id: key.1,
            client,
            server,
            start_ns,
            first_byte_after_ns: first_byte.map(after),
            plateau_after_ns: reached.map(after),
            lasted_ns: last_byte.map_or(0, after),
            written_bytes: sum_of(&channels, |one| one.written_bytes),
            read_bytes: sum_of(&channels, |one| one.read_bytes),
            plateau_bytes_per_second: level.map(|(level, _)| rounded(level)),
            mean_bytes_per_second: match moving_ns {
                0 => 0.0,
                ns => rounded(all as f64 * 1e9 / ns as f64),
            },
            paths: paths(&channels).len() as u64,
            fairness,
            gain,
            slowest: slowest(&channels),
            versus: None,
            power: machines.power(&key.0, ends),
            rdma_bytes: machines.rdma_bytes(&key.0, (start_ns, rdma_end)),
            rdma_after_ns: rdma_took_over.filter(|_| all > 0).map(after),
            cpu: machines.cost(&key.0, (first_byte.unwrap_or(start_ns), last_byte), all),
            rdma_bytes_per_second: machines.rdma_rates(
                &key.0,
                bins_start_ns,
                shown_ns,
                places.div_ceil(times),
            ),
            bin_ns: shown_ns,
            bins_start_ns,
            channels,
        }
    }
}

impl ChannelTally {
    /// What is true of the connection in every part of a run.
    fn identify(&mut self, row: &Channel) {
        let facts = &mut self.facts;
        if facts.client.is_empty() {
            facts.connection = row.connection;
            facts.client = row.client.to_string();
            facts.client_port = row.client_port;
            facts.server = row.server.to_string();
            facts.server_port = row.server_port;
        }
        let earlier = |known: Option<i64>, new: Option<i64>| known.into_iter().chain(new).min();
        facts.opened_ns = earlier(facts.opened_ns, row.opened_at);
        facts.bound_ns = earlier(facts.bound_ns, row.bound_at);
        facts.lost_ns = earlier(facts.lost_ns, row.lost_at);
        if let Some(reason) = &row.lost_reason {
            facts.lost_reason = Some(reason.to_string());
        }
        facts.repeated = facts.repeated.max(row.repeated);
        facts.channel = row.channel.or(facts.channel);
        if let Some(transport) = &row.transport {
            facts.transport = Some(transport.to_string());
        }
        facts.bind_status = match (&row.bind_status, facts.channel) {
            (Some(status), None) => Some(status.to_string()),
            (_, Some(_)) => None,
            (None, None) => facts.bind_status.take(),
        };
    }

    fn learn(&mut self, row: &Channel) {
        let facts = &mut self.facts;
        let first = facts.first_byte_ns.into_iter().chain(row.first_byte_at).min();
        facts.first_byte_ns = first;
        facts.written_bytes = facts.written_bytes.saturating_add(row.bytes_written);
        facts.read_bytes = facts.read_bytes.saturating_add(row.bytes_read);
        facts.operations = facts.operations.saturating_add(row.operations);
        facts.outstanding_max = facts.outstanding_max.max(row.outstanding_max);
        facts.in_flight_max_bytes = facts.in_flight_max_bytes.max(row.bytes_in_flight_max);
        if let Some(more) = row.retransmissions {
            let sum = facts.retransmissions.unwrap_or(0).saturating_add(more);
            facts.retransmissions = Some(sum);
        }
        if let Some(trip) = row.round_trip_ns
            && self.trips.len() < TRIPS_MAX
        {
            self.trips.push(trip);
        }
    }

    fn finish(
        &self,
        first: i64,
        places: usize,
        bin_ns: i64,
        offered: &[Interface],
    ) -> ChannelTimeline {
        let mut one = self.facts.clone();
        let mut rates = vec![0.0; places];
        for (place, bin) in &self.bins {
            if let Some(rate) = rates.get_mut(place.abs_diff(first) as usize) {
                *rate += rounded(bin.bytes as f64 * 1e9 / bin_ns as f64);
            }
        }
        let time = |place: i64| place.saturating_mul(bin_ns);
        let moving = || self.bins.iter().filter(|(_, bin)| bin.bytes > 0).map(|(place, _)| *place);
        if let (Some(begin), Some(end)) = (moving().next(), moving().next_back()) {
            one.first_byte_ns = one.first_byte_ns.or(Some(time(begin)));
            one.last_byte_ns = Some(time(end.saturating_add(1)));
            let busy: f64 = self.bins.range(begin..=end).map(|(_, bin)| bin.busy_ns).sum();
            let span = end.saturating_sub(begin).saturating_add(1) as f64 * bin_ns as f64;
            one.outstanding_mean = rounded(busy / span);
            let transferring: f64 =
                self.bins.range(begin..=end).map(|(_, bin)| bin.transferring_ns).sum();
            one.transferring_mean = rounded(transferring / span);
        }
        if let Some((level, place)) = plateau(&rates, bin_ns) {
            let at = time(first.saturating_add(place as i64));
            one.plateau_ns = Some(at.max(one.first_byte_ns.unwrap_or(at)));
            one.plateau_bytes_per_second = Some(rounded(level));
        }
        let mut trips = self.trips.clone();
        trips.sort_unstable();
        one.round_trip_min_ns = trips.first().copied();
        one.round_trip_p50_ns = trips.get(trips.len() / 2).copied();
        let interface = offered.iter().find(|row| row.address == one.server);
        one.link_bits_per_second = interface.map(|row| row.link_bits_per_second);
        one.bytes_per_second = rates;
        one
    }
}

/// Joins neighbours by their mean.
fn join(rates: &mut Vec<f64>, times: usize) {
    let joined = rates.chunks(times).map(|part| {
        // A last part that is shorter has the same width.
        rounded(part.iter().sum::<f64>() / times as f64)
    });
    *rates = joined.collect();
}

fn bytes(one: &ChannelTimeline) -> u64 {
    one.written_bytes.saturating_add(one.read_bytes)
}

fn sum_of(channels: &[ChannelTimeline], value: impl Fn(&ChannelTimeline) -> u64) -> u64 {
    channels.iter().map(value).fold(0, u64::saturating_add)
}

/// Paths that carried bytes, in the order of their first byte: addresses, first byte, link speed.
fn paths(channels: &[ChannelTimeline]) -> Vec<(&str, &str, i64, Option<u64>)> {
    let mut paths: Vec<(&str, &str, i64, Option<u64>)> = Vec::new();
    for one in channels {
        let Some(first) = one.first_byte_ns.filter(|_| bytes(one) > 0) else { continue };
        let known = paths.iter_mut().find(|path| path.0 == one.client && path.1 == one.server);
        match known {
            Some(path) => path.2 = path.2.min(first),
            None => paths.push((&one.client, &one.server, first, one.link_bits_per_second)),
        }
    }
    paths.sort_by_key(|path| path.2);
    paths
}

/// The bins in which all channels with bytes carry some: from the last first byte to the first end.
fn fairness(channels: &[ChannelTimeline]) -> Option<f64> {
    let carrying: Vec<_> = channels.iter().filter(|one| bytes(one) > 0).collect();
    if carrying.len() < 2 {
        return None;
    }
    let ends = |one: &&ChannelTimeline| {
        let rates = &one.bytes_per_second;
        let first = rates.iter().position(|&rate| rate > 0.0)?;
        Some((first, rates.iter().rposition(|&rate| rate > 0.0)?))
    };
    let spans: Vec<_> = carrying.iter().filter_map(ends).collect();
    let from = spans.iter().map(|span| span.0).max()?;
    let to = spans.iter().map(|span| span.1).min()?;
    let sums: Vec<f64> = if from <= to {
        (carrying.iter())
            .map(|one| one.bytes_per_second.get(from..=to).unwrap_or_default().iter().sum())
            .collect()
    } else {
        carrying.iter().map(|one| bytes(one) as f64).collect()
    };
    let sum: f64 = sums.iter().sum();
    let squares: f64 = sums.iter().map(|value| value * value).sum();
    (squares > 0.0).then(|| rounded(sum * sum / (sums.len() as f64 * squares)))
}

/// The plateau with one path and with all of them.
fn gain(channels: &[ChannelTimeline], sum: &[f64], bin_ns: i64) -> Option<PathGain> {
    let paths = paths(channels);
    let [(client, server, ..), .., _] = paths[..] else { return None };
    let is_first = |one: &&ChannelTimeline| one.client == client && one.server == server;
    let begin = |one: &ChannelTimeline| one.bytes_per_second.iter().position(|&rate| rate > 0.0);
    let end = |one: &ChannelTimeline| one.bytes_per_second.iter().rposition(|&rate| rate > 0.0);
    let carrying = || channels.iter().filter(|one| bytes(one) > 0);
    let others = || carrying().filter(|one| !is_first(one));
    let second = others().filter_map(begin).min()?;
    let last = others().filter_map(begin).max()?;
    // The bin in which a path begins has a part of it.
    let alone = plateau(sum.get(..second)?, bin_ns)?.0;
    let until = carrying().filter_map(end).min()?;
    let together = plateau(sum.get(last.saturating_add(1)..until)?, bin_ns)?.0;
    gain_of(alone, together, &paths, 0)
}

/// The same where a loss left one path alone in between: all paths carried before it, after it, or both.
fn gain_after_loss(
    channels: &[ChannelTimeline],
    sum: &[f64],
    start_ns: i64,
    bin_ns: i64,
) -> Option<PathGain> {
    let lost_at = channels.iter().filter_map(|one| one.lost_ns).min()?;
    let paths = paths(channels);
    if paths.len() < 2 {
        return None;
    }
    let rate = |path: &(&str, &str, i64, Option<u64>), at: usize| -> f64 {
        let of = channels.iter().filter(|one| one.client == path.0 && one.server == path.1);
        of.filter_map(|one| one.bytes_per_second.get(at)).sum()
    };
    // The paths that carry something in each bin.
    let carrying: Vec<Vec<usize>> = (0..sum.len())
        .map(|at| {
            let those = paths.iter().enumerate().filter(|(_, path)| rate(path, at) > 0.0);
            those.map(|(place, _)| place).collect()
        })
        .collect();
    // Stretches of one kind; the first and the last bin of each can have a part of another kind.
    let mut alone: Option<(usize, &[f64])> = None;
    let mut together: Vec<f64> = Vec::new();
    let mut begin = 0;
    while let Some(kind) = carrying.get(begin) {
        let length = carrying.iter().skip(begin).take_while(|other| *other == kind).count();
        let inner = sum.get(begin + 1..(begin + length).saturating_sub(1)).unwrap_or_default();
        let at = start_ns.saturating_add(bin_ns.saturating_mul((begin + length) as i64));
        match kind.as_slice() {
            [path] if at > lost_at && alone.is_none_or(|(_, found)| found.len() < inner.len()) => {
                alone = Some((*path, inner));
            }
            all if all.len() == paths.len() => together.extend(inner),
            _ => {}
        }
        begin += length;
    }
    let (path, before) = alone?;
    gain_of(plateau(before, bin_ns)?.0, plateau(&together, bin_ns)?.0, &paths, path)
}

/// What several paths brought, compared with one of them.
fn gain_of(
    alone: f64,
    together: f64,
    paths: &[(&str, &str, i64, Option<u64>)],
    path: usize,
) -> Option<PathGain> {
    let link = paths.get(path)?.3;
    let speeds: Option<Vec<_>> = paths.iter().map(|path| path.3.filter(|&bits| bits > 0)).collect();
    let promised = match (speeds, link) {
        (Some(speeds), Some(link)) if link > 0 => {
            speeds.iter().map(|&bits| bits as f64).sum::<f64>() / link as f64
        }
        _ => paths.len() as f64,
    };
    Some(PathGain {
        before_bytes_per_second: rounded(alone),
        after_bytes_per_second: rounded(together),
        factor: rounded(together / alone),
        promised: rounded(promised),
    })
}

/// The channel with the lowest plateau, and what limits it.
fn slowest(channels: &[ChannelTimeline]) -> Option<SlowestPath> {
    let rate = |one: &ChannelTimeline| one.plateau_bytes_per_second;
    let mut known: Vec<_> = channels.iter().filter(|one| rate(one).is_some()).collect();
    if known.len() < 2 {
        return None;
    }
    known.sort_by(|a, b| rate(a).unwrap_or(0.0).total_cmp(&rate(b).unwrap_or(0.0)));
    let (slow, fast) = (*known.first()?, *known.last()?);
    let level = rate(slow)?;
    // Equal rates on paths that are not equal: requests are dealt out one by one.
    let is_equal = level > 0.9 * rate(fast)?;
    let ratio = |value: fn(&ChannelTimeline) -> Option<f64>| {
        let values: Vec<_> = known.iter().filter_map(|one| value(one)).collect();
        let least = values.iter().copied().fold(f64::INFINITY, f64::min);
        let most = values.iter().copied().fold(0.0, f64::max);
        if values.len() == known.len() && least > 0.0 { most / least } else { 1.0 }
    };
    let are_unequal = ratio(|one| one.link_bits_per_second.map(|bits| bits as f64)) >= 2.0
        || ratio(|one| one.round_trip_min_ns.map(|ns| ns as f64)) >= 4.0;
    Some(SlowestPath {
        connection: slow.connection,
        bytes_per_second: level,
        brake: brake(slow, level),
        brakes_others: is_equal && are_unequal,
    })
}

/// Whether data waits in front of a link of the path: it carries what is on its way in a round trip, and that
/// round trip is a multiple of the least one. A capture sees requests only once they leave, so that those which
/// wait in the client's socket do not show as requests in flight.
fn is_full(one: &ChannelTimeline, level: f64) -> bool {
    let (Some(held), Some(trip)) = (one.in_flight_max_bytes, one.round_trip_p50_ns) else {
        return false;
    };
    let is_longer = one.round_trip_min_ns.is_some_and(|least| {
        least > 0 && trip as f64 >= QUEUED * least as f64 && trip - least >= QUEUED_MIN_NS
    });
    is_longer && level >= ALWAYS_BUSY * held as f64 * 1e9 / trip as f64
}

/// Whether requests are one after the other because each needs all that time to pass: what waits in the client's socket
/// does not show as in flight.
fn is_transferring(one: &ChannelTimeline) -> bool {
    const MOSTLY: f64 = 0.8;
    one.outstanding_mean < 1.2
        && one.transferring_mean >= MOSTLY * one.outstanding_mean
        && one.transferring_mean >= 0.5
}

fn brake(one: &ChannelTimeline, level: f64) -> Brake {
    let bytes = bytes(one).max(1) as f64;
    let in_flight = one.in_flight_max_bytes.map(|bytes| bytes as f64);
    let windowed = in_flight.zip(one.round_trip_p50_ns.filter(|&ns| ns > 0));
    if one.link_bits_per_second.is_some_and(|bits| 8.0 * level >= NEAR * bits as f64) {
        Brake::Link
    } else if one.retransmissions.unwrap_or(0) as f64 * SEGMENT_BYTES > LOSS_MIN * bytes {
        Brake::Loss
    } else if is_full(one, level) || is_transferring(one) {
        Brake::Path
    } else if one.outstanding_mean < 1.2 {
        Brake::Requests
    } else if windowed.is_some_and(|(held, ns)| level >= NEAR * held * 1e9 / ns as f64) {
        Brake::Window
    } else {
        Brake::Unknown
    }
}
