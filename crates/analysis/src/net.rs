//! The network without SMB next to SMB: what a test of the path found (`smbscope net send`), what SMB
//! moved over the same path, and which of the two is the limit. docs/method/net.md defines the terms.

pub mod bound;
pub mod like;
mod paths;

use hashbrown::{HashMap, HashSet};
use serde::Serialize;
use smbscope_tables::tables::{Channel, Connection, Counter, NetRoundTrip, NetTest};

use crate::rows::bins::Bin;
use paths::SmbPaths;

/// Rows of tests and of round trips that are kept.
const ROWS_MAX: usize = 256;
/// Servers that are remembered.
const SERVERS_MAX: usize = 10_000;
/// CPUs of one machine.
const CPUS_MAX: usize = 4096;
/// From this part of the raw rate on, SMB has what the path carries.
pub const NETWORK_SHARE: f64 = 0.85;
/// Windows of at least this length are compared.
const WINDOW_NS: i64 = 1_000_000_000;
/// A window with at least this part of the busiest one's bytes belongs to the plateau.
const PLATEAU_SHARE: f64 = 0.5;

/// What a test of the network says, alone and next to SMB.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Net {
    /// Phases and directions.
    pub tests: Vec<NetTest>,
    /// Round trips of messages as large as SMB's.
    pub round_trips: Vec<NetRoundTrip>,
    /// Rows past the limit.
    pub left_out: u64,
    /// SMB next to it, by direction; empty without SMB.
    pub ratios: Vec<SmbRatio>,
    /// CPU time of the SMB client's machine for each GB; null without counters.
    pub smb_client_cpu_per_gb_ns: Option<i64>,
    /// CPU time of the SMB server's machine for each GB.
    pub smb_server_cpu_per_gb_ns: Option<i64>,
    /// MTU and segments that do not fit.
    pub problems: Vec<PathProblem>,
}

/// One direction of SMB and of the network.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct SmbRatio {
    /// read or write.
    pub operation: String,
    /// What SMB moved on its plateau.
    pub smb_bits_per_second: f64,
    /// Windows of the plateau.
    pub smb_windows: u64,
    /// Length of a window.
    pub smb_window_ns: i64,
    /// What the path carried without SMB.
    pub raw_bits_per_second: f64,
    /// SMB's part of it.
    pub ratio: f64,
    /// network, smb, sender, receiver or unknown.
    pub limit: String,
    /// What limited the raw rate.
    pub raw_limit: String,
    /// Addresses of servers that the data went to or came from; null if the recording does not say.
    pub paths: Option<u64>,
    /// Those with a test, which all numbers are about; null likewise.
    pub paths_tested: Option<u64>,
}

impl SmbRatio {
    /// Over what the rates are compared, with a preposition.
    pub fn over(&self) -> String {
        match (self.paths, self.paths_tested) {
            (Some(paths @ 2..), Some(tested)) if tested == paths => {
                format!("over the same {paths} paths together")
            }
            (Some(paths @ 2..), Some(1)) => {
                format!("over the same path, one of {paths} that SMB uses: the others have no test")
            }
            (Some(paths @ 2..), Some(tested)) => {
                format!("over {tested} of the {paths} paths that SMB uses: the others have no test")
            }
            _ => "over the same path".to_owned(),
        }
    }
}

/// Something about packet sizes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct PathProblem {
    /// mtu_differs, segment_too_small or segments_differ.
    pub kind: String,
    /// The sender's and the receiver's value, or MTU and segment.
    pub first_bytes: u64,
    /// See `first_bytes`.
    pub second_bytes: u64,
}

/// One window of SMB.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Moved {
    pub(crate) read_bytes: u64,
    pub(crate) written_bytes: u64,
}

impl Bin for Moved {
    fn empty() -> Moved {
        Moved::default()
    }

    fn absorb(&mut self, other: &Moved) {
        self.read_bytes = self.read_bytes.saturating_add(other.read_bytes);
        self.written_bytes = self.written_bytes.saturating_add(other.written_bytes);
    }
}

/// CPU time of one source of counters.
#[derive(Clone, Debug, Default)]
struct Cpu {
    last: Option<i64>,
    /// Sum over the machine, as a part of all its CPUs.
    busy_ns: f64,
    processors: HashSet<String>,
}

/// Collects the rows.
#[derive(Clone, Debug, Default)]
pub struct NetTally {
    net: Net,
    servers: HashSet<String>,
    cpus: HashMap<String, Cpu>,
    paths: SmbPaths,
}

impl NetTally {
    /// Adds phases.
    pub fn tests(&mut self, rows: &[NetTest]) {
        for row in rows {
            if self.net.tests.len() < ROWS_MAX {
                self.net.tests.push(row.clone())
            } else {
                self.net.left_out += 1
            }
        }
    }

    /// Adds round trips.
    pub fn round_trips(&mut self, rows: &[NetRoundTrip]) {
        for row in rows {
            if self.net.round_trips.len() < ROWS_MAX {
                self.net.round_trips.push(row.clone())
            } else {
                self.net.left_out += 1
            }
        }
    }

    /// Adds connections of SMB: which addresses are servers.
    pub fn connections(&mut self, rows: &[Connection]) {
        for row in rows {
            if self.servers.len() < SERVERS_MAX && !self.servers.contains(&row.server) {
                self.servers.insert(row.server.clone());
            }
        }
    }

    /// Adds what channels carried: which part of SMB's data went over which path.
    pub fn channels(&mut self, rows: &[Channel]) {
        self.paths.add(rows);
    }

    /// Adds counters of a load run.
    pub fn counters(&mut self, rows: &[Counter]) {
        for row in rows.iter().filter(|row| row.name == "cpu_percent") {
            let cpu = self.cpus.entry(row.source.clone()).or_default();
            match &row.instance {
                Some(name) if cpu.processors.len() < CPUS_MAX => {
                    if !cpu.processors.contains(name) {
                        cpu.processors.insert(name.clone());
                    }
                }
                Some(_) => {}
                None => {
                    let length = cpu.last.map_or(0, |last| row.time.saturating_sub(last).max(0));
                    cpu.busy_ns += row.value.clamp(0.0, 100.0) / 100.0 * length as f64;
                    cpu.last = Some(row.time);
                }
            }
        }
    }

    /// Whether a test was among the rows.
    pub fn has_tests(&self) -> bool {
        !self.net.tests.is_empty() || !self.net.round_trips.is_empty()
    }

    /// The result without SMB; `None` without a test.
    pub fn finish_alone(self) -> Option<Net> {
        self.finish(0, &[])
    }

    /// The result; `None` without a test. `bins` are SMB's bytes over time, in windows of `bin_ns`.
    pub(crate) fn finish(mut self, bin_ns: i64, bins: &[Moved]) -> Option<Net> {
        self.has_tests().then_some(())?;
        let bytes: u64 =
            bins.iter().map(|bin| bin.read_bytes.saturating_add(bin.written_bytes)).sum();
        self.net.smb_client_cpu_per_gb_ns = self.cpu_per_gb(&["client"], bytes);
        self.net.smb_server_cpu_per_gb_ns = self.cpu_per_gb(&["server", "metrics"], bytes);
        for (operation, of) in [
            ("read", (|bin| bin.read_bytes) as fn(&Moved) -> u64),
            ("write", |bin| bin.written_bytes),
        ] {
            let Some((whole, windows, window_ns)) = plateau(bin_ns, bins, of) else { continue };
            // Several paths: only those with a test can be compared with it.
            let used = self.paths.used(of);
            let (tests, found) = match used.len() {
                0 | 1 => {
                    let one = used.first().map(String::as_str);
                    let test = one.and_then(|server| self.test_of(operation, Some(server)));
                    let test = test.or_else(|| self.test_of(operation, None));
                    (Vec::from_iter(test), (whole, windows, window_ns))
                }
                _ => {
                    let servers = used.iter().map(String::as_str);
                    let tested = servers.filter_map(|server| {
                        Some((server, self.test_of(operation, Some(server))?))
                    });
                    let (servers, tests): (Vec<_>, Vec<_>) = tested.unzip();
                    let (width_ns, bins) = self.paths.of(&servers);
                    let Some(found) = plateau(width_ns, &bins, of) else { continue };
                    (tests, found)
                }
            };
            let Some(first) = tests.first() else { continue };
            let (rate, windows, window_ns) = found;
            let raw: f64 = tests.iter().map(|test| test.bits_per_second).sum();
            let ratio = if raw > 0.0 { rate / raw } else { 0.0 };
            // Several tests with different limits: that of the whole is not known better.
            let raw_limit = match tests.iter().all(|test| test.limit == first.limit) {
                true => &*first.limit,
                false if tests.iter().any(|test| test.limit == "pace") => "pace",
                false => "unknown",
            };
            let limit = match (ratio >= NETWORK_SHARE, raw_limit) {
                (false, _) if raw > 0.0 => "smb",
                (true, limit @ ("sender" | "receiver")) => limit,
                // A paced test does not show what the path could carry.
                (true, "network") => "network",
                (true, "unknown") => "network",
                _ => "unknown",
            };
            let ratio = SmbRatio {
                operation: operation.to_owned(),
                smb_bits_per_second: rate,
                smb_windows: windows,
                smb_window_ns: window_ns,
                raw_bits_per_second: raw,
                ratio,
                limit: limit.to_owned(),
                raw_limit: raw_limit.to_owned(),
                paths: (!used.is_empty()).then_some(used.len() as u64),
                paths_tested: (!used.is_empty()).then_some(tests.len() as u64),
            };
            self.net.ratios.push(ratio);
        }
        self.net.problems = problems(&self.net.tests);
        Some(self.net)
    }

    fn cpu_per_gb(&self, sources: &[&str], bytes: u64) -> Option<i64> {
        let cpu = sources.iter().find_map(|source| self.cpus.get(*source))?;
        let processors = cpu.processors.len().max(1) as f64;
        let is_known = bytes > 0 && cpu.busy_ns > 0.0;
        is_known.then(|| (cpu.busy_ns * processors / (bytes as f64 / 1e9)) as i64)
    }

    /// The test of the direction in which an operation's data goes, to this address of the server if one is
    /// given. Tests run on the client, unless the machine that ran them is an SMB server of the same recording.
    fn test_of(&self, operation: &str, address: Option<&str>) -> Option<&NetTest> {
        let is_of = |test: &&NetTest| {
            let runs_test = if test.direction == "send" { &test.sender } else { &test.receiver };
            let other = if test.direction == "send" { &test.receiver } else { &test.sender };
            let on_server = self.servers.contains(runs_test) && !self.servers.contains(other);
            let sends = test.direction == "send";
            let server = if on_server { runs_test } else { other };
            let is_there = address.is_none_or(|address| address == server.as_str());
            is_there && (operation == "write") == (sends != on_server)
        };
        let tests = self.net.tests.iter().filter(is_of);
        // Alone rather than together with the other direction, and unpaced rather than paced.
        tests.max_by(|a, b| {
            let key = |test: &NetTest| (test.pace_bits_per_second.is_none(), !test.together);
            key(a).cmp(&key(b)).then(a.bits_per_second.total_cmp(&b.bits_per_second))
        })
    }
}

/// The mean rate of the windows that moved at least half as much per second as the busiest one, their
/// number and their length. The first and the last window count for the time from the first to the last
/// payload only; they are left out if that is less than half of them and there are others.
fn plateau(bin_ns: i64, bins: &[Moved], of: fn(&Moved) -> u64) -> Option<(f64, u64, i64)> {
    (bin_ns > 0).then_some(())?;
    let together = usize::try_from((WINDOW_NS + bin_ns - 1) / bin_ns).unwrap_or(1).max(1);
    let window_ns = bin_ns.saturating_mul(i64::try_from(together).unwrap_or(1));
    let first = bins.iter().position(|bin| of(bin) > 0)?;
    let last = bins.iter().rposition(|bin| of(bin) > 0)?;
    let window = |(number, bins): (usize, &[Moved])| {
        let begin = number * together;
        let covered = (begin + bins.len()).min(last + 1).saturating_sub(begin.max(first));
        (bins.iter().map(of).sum::<u64>(), covered)
    };
    let mut windows: Vec<(u64, usize)> = bins.chunks(together).enumerate().map(window).collect();
    windows.retain(|(_, covered)| *covered > 0);
    if windows.iter().any(|(_, covered)| covered * 2 >= together) {
        windows.retain(|(_, covered)| covered * 2 >= together);
    }
    let rate = |(sum, covered): &(u64, usize)| *sum as f64 / *covered as f64;
    let most = windows.iter().map(rate).max_by(f64::total_cmp).filter(|most| *most > 0.0)?;
    windows.retain(|window| rate(window) >= PLATEAU_SHARE * most);
    let sum = windows.iter().fold(0u64, |sum, (bytes, _)| sum.saturating_add(*bytes));
    let covered: usize = windows.iter().map(|(_, covered)| covered).sum();
    let seconds = bin_ns as f64 / 1e9 * covered as f64;
    Some((sum as f64 * 8.0 / seconds, windows.len() as u64, window_ns))
}

/// What is wrong with packet sizes, once for each kind.
fn problems(tests: &[NetTest]) -> Vec<PathProblem> {
    /// Headers of IPv6 and TCP with its usual options.
    const HEADERS_MAX: u64 = 40 + 20 + 40;
    /// With larger MTUs, half of the receive window limits segments, not the path (`tcp_bound_to_half_wnd`).
    const LOOPBACK_MTU: u64 = 32_768;
    let mut list: Vec<PathProblem> = Vec::new();
    let mut add = |kind: &str, first_bytes: u64, second_bytes: u64| {
        let problem = PathProblem { kind: kind.to_owned(), first_bytes, second_bytes };
        if !list.contains(&problem) {
            list.push(problem);
        }
    };
    for test in tests {
        if let (Some(sender), Some(receiver)) = (test.sender_mtu, test.receiver_mtu)
            && sender != receiver
        {
            add("mtu_differs", sender.max(receiver), sender.min(receiver));
        }
        if let (Some(sender), Some(receiver)) = (test.sender_mss, test.receiver_mss)
            && sender.abs_diff(receiver) > 12
            && test.sender_mtu.is_none_or(|mtu| mtu < LOOPBACK_MTU)
        {
            add("segments_differ", sender.max(receiver), sender.min(receiver));
        }
        for (mtu, mss) in
            [(test.sender_mtu, test.sender_mss), (test.receiver_mtu, test.receiver_mss)]
        {
            if let (Some(mtu), Some(mss)) = (mtu, mss)
                && mtu < LOOPBACK_MTU
                && mss + HEADERS_MAX < mtu
            {
                add("segment_too_small", mtu, mss);
            }
        }
    }
    list
}

#[cfg(test)]
mod tests {
    use super::*;

    fn test(direction: &str, bits_per_second: f64, limit: &str) -> NetTest {
        let (sender, receiver) =
            if direction == "send" { ("10.0.0.1", "10.0.0.2") } else { ("10.0.0.2", "10.0.0.1") };
        NetTest {
            direction: direction.into(),
            bits_per_second,
            limit: limit.into(),
            sender: sender.into(),
            receiver: receiver.into(),
            ..NetTest::default()
        }
    }

    fn bins(written_bytes: &[u64]) -> Vec<Moved> {
        written_bytes
            .iter()
            .map(|written_bytes| Moved { read_bytes: 0, written_bytes: *written_bytes })
            .collect()
    }

    #[test]
    fn the_plateau_leaves_out_ramp_and_pauses() {
        // Ten bins of 100 ms are one window.
        let mut bytes = vec![0; 10];
        bytes.extend([100; 20]);
        bytes.extend([10; 10]);
        let found = plateau(100_000_000, &bins(&bytes), |bin| bin.written_bytes).unwrap();
        assert_eq!(found, (8000.0, 2, 1_000_000_000));
        // A transfer of half a second, and one that begins and ends within windows.
        let half = [[0; 3].as_slice(), &[100; 5], &[0; 4]].concat();
        let of = |bin: &Moved| bin.written_bytes;
        assert_eq!(plateau(100_000_000, &bins(&half), of).unwrap(), (8000.0, 1, 1_000_000_000));
        let edges = [[0; 9].as_slice(), &[100; 17]].concat();
        assert_eq!(plateau(100_000_000, &bins(&edges), of).unwrap(), (8000.0, 2, 1_000_000_000));
        assert_eq!(plateau(1, &bins(&[0]), |bin| bin.written_bytes), None);
        assert_eq!(plateau(0, &bins(&[5]), |bin| bin.written_bytes), None);
    }

    #[test]
    fn smb_near_the_raw_rate_is_limited_by_the_network_and_else_limits_itself() {
        let limit = |raw: f64, raw_limit: &str| {
            let mut tally = NetTally::default();
            tally.tests(&[test("send", raw, raw_limit), test("receive", 1e12, "network")]);
            let net = tally.finish(1_000_000_000, &bins(&[1000, 1000, 1000])).unwrap();
            let [ratio] = &net.ratios[..] else { panic!("{net:?}") };
            assert_eq!((ratio.operation.as_str(), ratio.smb_windows), ("write", 3));
            ratio.limit.clone()
        };
        assert_eq!(limit(8000.0, "network"), "network");
        assert_eq!(limit(9500.0, "receiver"), "smb");
        assert_eq!(limit(9000.0, "receiver"), "receiver");
        assert_eq!(limit(16_000.0, "network"), "smb");
        assert_eq!(limit(8000.0, "pace"), "unknown");
    }

    /// Two paths with a test of one, of both, and of neither.
    #[test]
    fn several_paths_are_compared_with_the_tests_of_these_paths() {
        let row = |server: &str, second: i64, bytes_written| Channel {
            server: server.into(),
            interval_start: second * 1_000_000_000,
            interval_ns: 1_000_000_000,
            bytes_written,
            ..Channel::default()
        };
        let rows: Vec<_> = (0..8)
            .flat_map(|second| [row("10.0.0.2", second, 600), row("10.1.0.2", second, 500)])
            .collect();
        let ratio = |tests: &[NetTest]| {
            let mut tally = NetTally::default();
            tally.tests(tests);
            tally.channels(&rows);
            tally.finish(1_000_000_000, &bins(&[1100; 8])).unwrap().ratios.pop()
        };
        let first = test("send", 8000.0, "network");
        let second = NetTest { receiver: "10.1.0.2".into(), ..first.clone() };
        let other = NetTest { receiver: "10.9.0.2".into(), ..first.clone() };
        let one = ratio(&[first.clone(), other.clone()]).unwrap();
        assert_eq!((one.paths, one.paths_tested), (Some(2), Some(1)));
        assert!((one.ratio - 0.6).abs() < 0.01 && one.limit == "smb", "{one:?}");
        assert!(one.over().contains("one of 2 that SMB uses"), "{}", one.over());
        let both = ratio(&[first, second]).unwrap();
        assert!((both.ratio - 0.55).abs() < 0.01 && both.limit == "smb", "{both:?}");
        assert_eq!(both.raw_bits_per_second, 16_000.0);
        assert_eq!(both.over(), "over the same 2 paths together");
        assert_eq!(ratio(&[other]), None);
    }

    #[test]
    fn a_test_that_ran_on_the_server_is_turned_around() {
        let mut tally = NetTally::default();
        tally.tests(&[test("send", 16_000.0, "network"), test("receive", 8000.0, "network")]);
        tally.connections(&[Connection { server: "10.0.0.1".into(), ..Connection::default() }]);
        let net = tally.finish(1_000_000_000, &bins(&[1000])).unwrap();
        assert_eq!(net.ratios[0].raw_bits_per_second, 8000.0);
    }

    #[test]
    fn cpu_time_is_that_of_all_processors_for_each_gb() {
        let mut tally = NetTally::default();
        tally.tests(&[test("send", 1.0, "network")]);
        let row = |time, instance: Option<&str>, value| Counter {
            time,
            source: "client".into(),
            name: "cpu_percent".into(),
            instance: instance.map(str::to_owned),
            value,
            ..Counter::default()
        };
        let rows = [
            row(0, Some("cpu0"), 50.0),
            row(0, Some("cpu1"), 50.0),
            row(0, None, 50.0),
            row(1_000_000_000, None, 50.0),
        ];
        tally.counters(&rows);
        let net = tally.finish(1_000_000_000, &bins(&[500_000_000])).unwrap();
        assert_eq!(net.smb_client_cpu_per_gb_ns, Some(2_000_000_000));
        assert_eq!(net.smb_server_cpu_per_gb_ns, None);
    }

    #[test]
    fn packet_sizes_that_do_not_fit_are_problems() {
        let sizes = |sender, receiver, mss| NetTest {
            sender_mtu: Some(sender),
            receiver_mtu: Some(receiver),
            sender_mss: Some(mss),
            receiver_mss: Some(mss),
            ..NetTest::default()
        };
        assert_eq!(problems(&[sizes(1500, 1500, 1448)]), []);
        assert_eq!(problems(&[sizes(65_536, 65_536, 32_741)]), []);
        let kinds = |test| problems(&[test]).into_iter().map(|one| one.kind).collect::<Vec<_>>();
        assert_eq!(kinds(sizes(9000, 1500, 1448)), ["mtu_differs", "segment_too_small"]);
        assert_eq!(kinds(sizes(1500, 1500, 1200)), ["segment_too_small"]);
    }

    #[test]
    fn without_a_test_there_is_nothing() {
        assert_eq!(NetTally::default().finish(1, &bins(&[5])), None);
    }
}
