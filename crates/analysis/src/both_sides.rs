//! Rows of a client and rows of its server from one time, joined: how long the client waited for the server, how long the
//! server took itself, and what lies between them.
//!
//! The events that Windows' client writes about requests have no connection, session or number of a message in common with
//! the server's. So requests are joined by what both have: the command, the bytes that were moved, the name of the file
//! and the time. The difference between the two clocks is the one that most pairs of equal requests agree on; then each
//! request of the client gets the nearest one of the server that lies within its time.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::error::ArrowError;
use serde::Serialize;
use smbscope_tables::code::Vantage;

crate::rows::columns::columns! {
    command: text,
    path: text,
    vantage: text,
    transferred_bytes: u64,
    request_start: i64,
    request_end: i64,
    response_start: i64,
    response_end: i64,
}

/// Requests of each side that are kept; more are counted.
const REQUESTS_MAX: usize = 200_000;
/// Times beyond these are not those of a request, ns.
const TIME_MAX_NS: u64 = 4_000_000_000_000_000_000;
/// Largest difference between the clocks that is tried, ns.
const OFFSET_MAX_NS: i64 = 60_000_000_000;
/// Pairs by which the difference is found.
const PAIRS_MAX: usize = 2_000_000;
/// Requests of the server that are paired with one of the client.
const PARTNERS_MAX: usize = 256;
/// Pairs that agree on a difference do so within this time, ns.
const AGREE_NS: i64 = 1_000_000;
/// The width to which that is narrowed down, ns.
const AGREE_MIN_NS: i64 = 50_000;
/// Fewest pairs that must agree.
const AGREE_MIN: usize = 8;
/// A request of the server may seem to lie outside of the client's by this, ns: times of both sides are rounded.
const SLACK_NS: i64 = 200_000;

/// What one side knows of a request.
#[derive(Clone, Copy, Debug)]
struct Request {
    /// The key of the command and the bytes.
    key: u32,
    /// The file; 0 where it is not known.
    file: u32,
    /// From when to when the server had it, as this side sees it, ns.
    from: i64,
    to: i64,
    /// Begin and end of the whole request, ns.
    start: i64,
    end: i64,
}

impl Request {
    fn middle(&self) -> i64 {
        self.from.midpoint(self.to)
    }

    /// Whether both can be about the same file.
    fn is_same_file(&self, other: &Request) -> bool {
        self.file == other.file || self.file == 0 || other.file == 0
    }
}

/// Collects the requests of both sides.
#[derive(Debug, Default)]
pub struct BothSidesTally {
    keys: HashMap<(Arc<str>, u64), u32>,
    files: HashMap<String, u32>,
    /// Command of each key.
    commands: Vec<Arc<str>>,
    client: Vec<Request>,
    server: Vec<Request>,
    limited: u64,
}

/// Requests of both sides that were joined.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct BothSides {
    /// By how much the server's clock is ahead of the client's, ns.
    pub server_clock_ahead_ns: i64,
    /// Requests of the client, of the server, and those that were joined.
    pub client_requests: u64,
    pub server_requests: u64,
    pub joined: u64,
    /// Requests beyond the limit of this analysis.
    pub limited: u64,
    /// The most costly ones first.
    pub commands: Vec<SidesOfCommand>,
}

/// The joined requests of one command: means, ns.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct SidesOfCommand {
    pub command: String,
    /// Requests of the client, and how many of them were joined. Times are those of the joined ones.
    pub client_requests: u64,
    pub joined: u64,
    /// The client's whole time.
    pub total_ns: f64,
    /// Until it was handed to the transport: waiting for credits, building.
    pub before_ns: f64,
    /// The server's own time, as the server has it.
    pub server_ns: f64,
    /// What the client waited for the server beyond that: transport and network.
    pub between_ns: f64,
    pub between_p95_ns: i64,
    /// The client's work on the reply.
    pub after_ns: f64,
}

impl BothSidesTally {
    /// Adds operations of either side; those recorded between the two are left out.
    ///
    /// # Errors
    ///
    /// Arrow's.
    pub fn operations(&mut self, batch: &RecordBatch) -> Result<(), ArrowError> {
        let columns = Columns::from_batch(batch)?;
        for row in 0..batch.num_rows() {
            let vantage = columns.vantage.get(row).unwrap_or_default();
            let is_client = vantage == Vantage::Client.name();
            let of_server = [Vantage::Server, Vantage::Inside].map(Vantage::name);
            if !is_client && !of_server.contains(&vantage) {
                continue;
            }
            let times = [
                &columns.request_start,
                &columns.request_end,
                &columns.response_start,
                &columns.response_end,
            ];
            let [Some(start), Some(sent), Some(replied), Some(end)] =
                times.map(|column| column.get(row))
            else {
                continue;
            };
            // Times of damaged logs.
            if [start, sent, replied, end].iter().any(|time| time.unsigned_abs() > TIME_MAX_NS) {
                continue;
            }
            let side = if is_client { &mut self.client } else { &mut self.server };
            if side.len() >= REQUESTS_MAX {
                self.limited += 1;
                continue;
            }
            // A share may be a folder of the client's path.
            let path = columns.path.get(row).unwrap_or_default();
            let file = path.rsplit(['\\', '/']).next().unwrap_or_default();
            let number = u32::try_from(self.files.len() + 1).unwrap_or(u32::MAX);
            let file = match file {
                "" => 0,
                file => *self.files.entry(file.to_lowercase()).or_insert(number),
            };
            let command: Arc<str> = columns.command.get(row).unwrap_or_default().into();
            // The bytes of other commands do not mean the same to both.
            let is_data = matches!(&*command, "Read" | "Write");
            let bytes = columns.transferred_bytes.get(row).filter(|_| is_data).unwrap_or(0);
            let next = u32::try_from(self.commands.len()).unwrap_or(u32::MAX);
            let key = *self.keys.entry((command, bytes)).or_insert_with_key(|(command, _)| {
                self.commands.push(command.clone());
                next
            });
            let (from, to) = if is_client { (sent, replied) } else { (start, end) };
            side.push(Request { key, file, from, to: to.max(from), start, end });
        }
        Ok(())
    }

    /// The result; none where a side is missing, or where too few requests agree on a difference of the clocks.
    pub fn finish(mut self) -> Option<BothSides> {
        self.client.sort_by_key(|one| (one.key, one.middle()));
        self.server.sort_by_key(|one| (one.key, one.middle()));
        let offset_ns = self.offset_ns()?;
        let mut all: HashMap<Arc<str>, Sums> = HashMap::new();
        let mut joined = 0;
        for (key, clients, servers) in self.groups() {
            let command = self.commands.get(key as usize).cloned().unwrap_or_default();
            let sums = all.entry(command).or_default();
            sums.requests += clients.len() as u64;
            let pairs = join(clients, servers, offset_ns);
            joined += pairs.len() as u64;
            pairs.into_iter().for_each(|(client, server)| sums.add(&client, &server));
        }
        let mut commands: Vec<_> =
            all.into_iter().map(|(command, sums)| sums.finish(&command)).collect();
        commands.sort_by(|one, other| {
            let cost = |row: &SidesOfCommand| row.total_ns * row.joined as f64;
            cost(other).total_cmp(&cost(one)).then_with(|| one.command.cmp(&other.command))
        });
        Some(BothSides {
            server_clock_ahead_ns: offset_ns,
            client_requests: self.client.len() as u64,
            server_requests: self.server.len() as u64,
            joined,
            limited: self.limited,
            commands,
        })
    }

    /// The client's requests of each key and those of the server, which can be none; both are sorted.
    fn groups(&self) -> impl Iterator<Item = (u32, &[Request], &[Request])> {
        self.client.chunk_by(|one, other| one.key == other.key).filter_map(|clients| {
            let key = clients.first()?.key;
            let first = self.server.partition_point(|one| one.key < key);
            let last = self.server.partition_point(|one| one.key <= key);
            Some((key, clients, self.server.get(first..last)?))
        })
    }

    /// By how much the server's clock is ahead, ns: that which most pairs agree on.
    fn offset_ns(&self) -> Option<i64> {
        // Each key gets as many pairs as another one: rare requests tell more than frequent ones.
        let share = (PAIRS_MAX / self.groups().count().max(1)).max(PARTNERS_MAX);
        let mut differences = Vec::new();
        for (_, clients, servers) in self.groups() {
            let step = (clients.len() * servers.len().min(PARTNERS_MAX)).div_ceil(share).max(1);
            for client in clients.iter().step_by(step) {
                let at = client.middle();
                let first = servers.partition_point(|one| one.middle() < at - OFFSET_MAX_NS);
                let last = servers.partition_point(|one| one.middle() <= at + OFFSET_MAX_NS);
                let near = servers.get(first..last).unwrap_or_default();
                // The nearest ones, if there are too many.
                let place = near.partition_point(|one| one.middle() < at);
                let begin = place.saturating_sub(PARTNERS_MAX / 2);
                let near = near.iter().skip(begin).take(PARTNERS_MAX);
                let same = near.filter(|one| one.is_same_file(client));
                differences.extend(same.map(|one| one.middle() - at));
            }
        }
        differences.sort_unstable();
        let fewest = AGREE_MIN.min(self.client.len().min(self.server.len())).max(1);
        let mut agreeing = densest(&differences, AGREE_NS);
        if agreeing.len() < fewest {
            return None;
        }
        // Pairs of different requests lie around those of the same one, which are closer together.
        let mut width_ns = AGREE_NS;
        while width_ns > AGREE_MIN_NS && agreeing.len() >= 2 * fewest {
            width_ns /= 2;
            agreeing = densest(agreeing, width_ns);
        }
        agreeing.get(agreeing.len() / 2).copied()
    }
}

/// The most of these sorted values that lie within this width of each other.
fn densest(values: &[i64], width_ns: i64) -> &[i64] {
    let (mut best, mut last) = (0..0, 0);
    for (first, &value) in values.iter().enumerate() {
        while values.get(last).is_some_and(|&other| other <= value.saturating_add(width_ns)) {
            last += 1;
        }
        if last - first > best.len() {
            best = first..last;
        }
    }
    values.get(best).unwrap_or_default()
}

/// Pairs of requests of one key, each of which is in one pair at most.
fn join(clients: &[Request], servers: &[Request], offset_ns: i64) -> Vec<(Request, Request)> {
    let mut taken = vec![false; servers.len()];
    let mut pairs = Vec::new();
    for client in clients {
        let at = client.middle() + offset_ns;
        let room_ns = (client.to - client.from) / 2 + SLACK_NS;
        let first = servers.partition_point(|one| one.middle() < at - room_ns);
        let near = servers.iter().enumerate().skip(first);
        let near = near.take_while(|(_, one)| one.middle() <= at + room_ns).take(PARTNERS_MAX);
        let fits = near.filter(|(place, one)| {
            let is_within = one.from >= client.from + offset_ns - SLACK_NS
                && one.to <= client.to + offset_ns + SLACK_NS;
            is_within && one.is_same_file(client) && !taken.get(*place).copied().unwrap_or(true)
        });
        let Some((place, server)) = fits.min_by_key(|(_, one)| (one.middle() - at).abs()) else {
            continue;
        };
        if let Some(taken) = taken.get_mut(place) {
            *taken = true;
        }
        pairs.push((*client, *server));
    }
    pairs
}

/// Sums of a command, ns.
#[derive(Default)]
struct Sums {
    requests: u64,
    total: f64,
    before: f64,
    server: f64,
    after: f64,
    between: Vec<i64>,
}

impl Sums {
    fn add(&mut self, client: &Request, server: &Request) {
        let server_ns = server.to - server.from;
        self.total += (client.end - client.start) as f64;
        self.before += (client.from - client.start) as f64;
        self.after += (client.end - client.to) as f64;
        self.server += server_ns as f64;
        self.between.push((client.to - client.from - server_ns).max(0));
    }

    fn finish(mut self, command: &str) -> SidesOfCommand {
        let joined = self.between.len();
        let mean = |sum: f64| if joined == 0 { 0.0 } else { sum / joined as f64 };
        self.between.sort_unstable();
        // The nearest rank.
        let rank = (joined * 95).div_ceil(100).saturating_sub(1);
        SidesOfCommand {
            command: command.to_owned(),
            client_requests: self.requests,
            joined: joined as u64,
            total_ns: mean(self.total),
            before_ns: mean(self.before),
            server_ns: mean(self.server),
            between_ns: mean(self.between.iter().map(|ns| *ns as f64).sum()),
            between_p95_ns: self.between.get(rank).copied().unwrap_or(0),
            after_ns: mean(self.after),
        }
    }
}

#[cfg(test)]
mod tests {
    use smbscope_tables::builder::OperationBuilder;
    use smbscope_tables::code;
    use smbscope_tables::operation::Operation;

    use super::*;

    const US: i64 = 1_000;
    const READ: u16 = 8;

    /// A side's rows: start, end, bytes and file of each request.
    fn rows(vantage: Vantage, requests: &[(i64, i64, u64, &str)]) -> RecordBatch {
        let mut builder = OperationBuilder::new(None).unwrap();
        for &(start, end, bytes, file) in requests {
            let mut row = Operation::default();
            row.set_recording(builder.names.recording.intern(vantage.name()));
            row.set_vantage(vantage as u64);
            row.set_protocol(2);
            row.set_command(code::command(2, READ));
            row.set_path(builder.names.path.intern(file));
            row.set_transferred_bytes(bytes);
            let is_client = vantage == Vantage::Client;
            // The client builds for 30 us and works on the reply for 20.
            row.set_request_start(start);
            row.set_request_end(if is_client { start + 30 * US } else { start });
            row.set_response_start(if is_client { end - 20 * US } else { end });
            row.set_response_end(end);
            row.derive_durations();
            builder.append(&[row]);
        }
        builder.finish().unwrap()
    }

    /// Reads at times without a pattern: each 400 us for the client, of which the server has 200 in the middle.
    fn sides(count: i64, ahead_ns: i64) -> (RecordBatch, RecordBatch) {
        let at =
            |number: i64| 1_000_000_000_000 + number * 700 * US + (number * number * 37) % 509 * US;
        let client: Vec<_> = (0..count)
            .map(|number| {
                (at(number), at(number) + 400 * US, 4096 * (1 + number as u64 % 5), "A\\b.txt")
            })
            .collect();
        let server: Vec<_> = client
            .iter()
            .map(|&(start, _, bytes, _)| {
                (start + ahead_ns + 105 * US, start + ahead_ns + 305 * US, bytes, "b.TXT")
            })
            .collect();
        (rows(Vantage::Client, &client), rows(Vantage::Inside, &server))
    }

    fn joined(batches: &[&RecordBatch]) -> Option<BothSides> {
        let mut tally = BothSidesTally::default();
        batches.iter().for_each(|batch| tally.operations(batch).unwrap());
        tally.finish()
    }

    #[test]
    fn requests_are_joined_whatever_the_clocks_say() {
        for ahead_ns in [0, 12_345_678, -3_000_000_000] {
            let (client, server) = sides(500, ahead_ns);
            let found = joined(&[&client, &server]).unwrap();
            assert!((found.server_clock_ahead_ns - ahead_ns).abs() <= 50 * US, "{found:?}");
            assert_eq!(
                (found.client_requests, found.server_requests, found.joined),
                (500, 500, 500)
            );
            let row = &found.commands[0];
            assert_eq!((row.command.as_str(), row.joined), ("Read", 500));
            assert_eq!((row.total_ns, row.before_ns, row.after_ns), (400e3, 30e3, 20e3));
            assert_eq!(
                (row.server_ns, row.between_ns, row.between_p95_ns),
                (200e3, 150e3, 150 * US)
            );
        }
    }

    #[test]
    fn what_only_one_side_has_stays_alone() {
        let (client, server) = sides(200, 5_000_000);
        let others: Vec<_> = (0..50)
            .map(|number| {
                (
                    1_000_000_000_000 + number * 900 * US,
                    1_000_000_000_000 + number * 900 * US + 100 * US,
                    1,
                    "other",
                )
            })
            .collect();
        let other = rows(Vantage::Server, &others);
        let found = joined(&[&client, &server, &other]).unwrap();
        assert_eq!((found.server_requests, found.joined), (250, 200));
        assert_eq!(joined(&[&client]), None);
        assert_eq!(joined(&[&server]), None);
        assert_eq!(joined(&[]), None);
    }

    #[test]
    fn requests_of_another_time_are_not_joined() {
        let (client, _) = sides(200, 0);
        // An hour later.
        let (_, server) = sides(200, 3_600_000_000_000);
        assert_eq!(joined(&[&client, &server]), None);
    }
}
