//! The checks, each with its outcome.

use smbscope_findings::{Finding, KindInfo, Weight, kinds};

pub use smbscope_findings::Outcome;

use super::topology_test::TopologyTest;
use super::{BANDWIDTH_MIN_BITS, LOG_DEFAULT_BYTES, STANDARD_BYTES_MAX, SYNC_RTT_MAX_NS};

const ROUND_TRIP: KindInfo = KindInfo::new("round-trip", "Round trip of synchronous copies");
const MEAN_RATE: KindInfo = KindInfo::new("mean-rate", "The link carries the writes on average");
const BUSIEST_RATE: KindInfo =
    KindInfo::new("busiest-rate", "The link carries the writes when they are busiest");
const RECOMMENDED_RATE: KindInfo =
    KindInfo::new("recommended-rate", "The link has the recommended rate");
const LOG_SIZE: KindInfo = KindInfo::new("log-size", "The log holds the writes of an outage");
const LOG_STORAGE: KindInfo =
    KindInfo::new("log-storage", "The log is on faster storage than the data");
const SECTOR_SIZES: KindInfo = KindInfo::new("sector-sizes", "Sectors have equal sizes");
const VOLUME_SIZES: KindInfo = KindInfo::new("volume-sizes", "Volumes have equal sizes");
const FIREWALL: KindInfo = KindInfo::new("firewall", "The firewall lets the ports pass");
const EDITION: KindInfo = KindInfo::new("edition", "The edition of Windows Server allows it");
const LOG_VOLUME: KindInfo = KindInfo::new("log-volume", "The log volume has room");
const SYSTEM_FILES: KindInfo =
    KindInfo::new("system-files", "The volumes have no files of the system");
const DOMAIN: KindInfo = KindInfo::new("domain", "The servers are members of a domain");
const SERVERS: KindInfo = KindInfo::new("servers", "Memory, CPUs and file systems suffice");

kinds! {
    /// What is checked.
    pub enum CheckKind {
        RoundTrip = ROUND_TRIP,
        MeanRate = MEAN_RATE,
        BusiestRate = BUSIEST_RATE,
        RecommendedRate = RECOMMENDED_RATE,
        LogSize = LOG_SIZE,
        LogStorage = LOG_STORAGE,
        SectorSizes = SECTOR_SIZES,
        VolumeSizes = VOLUME_SIZES,
        Firewall = FIREWALL,
        Servers = SERVERS,
        Edition = EDITION,
        LogVolume = LOG_VOLUME,
        SystemFiles = SYSTEM_FILES,
        Domain = DOMAIN,
    }
}

/// One check: what is required, its outcome, and what was found or how to find out.
pub type Check = Finding<CheckKind>;

/// What is known of the link, the log and the load.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Facts {
    /// Round trip, ns.
    pub rtt_ns: i64,
    /// Rate, bit/s; none if it is not given.
    pub bandwidth_bits: Option<f64>,
    /// Mean rate of writes, and that of the busiest minute or second, bit/s.
    pub mean_bits: f64,
    pub busiest_bits: f64,
    /// Whether that is the busiest minute: the recording is long enough.
    pub is_minute: bool,
    /// Whether round trip and rate of the link were measured, not given.
    pub is_measured: bool,
    /// The log, if its size is given; and what an outage needs, if one is given, bytes.
    pub log_bytes: Option<u64>,
    pub needed_log_bytes: Option<u64>,
    /// All data, if its size is given, bytes.
    pub data_bytes: Option<u64>,
}

/// All checks of a link. What a report of Test-SRTopology measured or decided counts more than what is given.
pub fn checks(facts: &Facts, test: Option<&TopologyTest>) -> Vec<Check> {
    let mut checks = vec![round_trip(facts, test)];
    checks.extend(rates(facts));
    checks.extend(log(facts));
    checks.push(edition(facts));
    let to_be_made = [
        (
            CheckKind::LogVolume,
            "the log volume of each server has 9 GB free, or room for the log if that is larger",
            "Get-Volume; Test-SRTopology checks it",
        ),
        (
            CheckKind::SystemFiles,
            "the data and log volumes are not the system volume, and have no page file and no dump file",
            "Get-CimInstance Win32_PageFileUsage; Get-CimInstance Win32_OSRecoveryConfiguration; Get-Volume",
        ),
        (
            CheckKind::Domain,
            "both servers are members of Active Directory domains that trust each other (workgroups need certificates, since \
             Windows Server 2025)",
            "(Get-CimInstance Win32_ComputerSystem).PartOfDomain",
        ),
        (
            CheckKind::LogStorage,
            "the log is on faster storage than the data",
            "Test-SRTopology measures both; on Linux: fio --rw=write --sync=1 on each",
        ),
        (
            CheckKind::SectorSizes,
            "sectors of data volumes, and of log volumes, have equal sizes on both servers",
            "Get-Disk | Format-Table Number, LogicalSectorSize, PhysicalSectorSize; on Linux: lsblk -o NAME,LOG-SEC,PHY-SEC",
        ),
        (
            CheckKind::VolumeSizes,
            "both data volumes have the same size, and the log volumes have free space for the log",
            "Get-Volume, Get-Partition; on Linux: lsblk -b",
        ),
        (
            CheckKind::Firewall,
            "the firewall lets TCP ports 445 and 5985 and ICMP pass in both directions, and 5445 for SMB Direct; DRBD: the port of \
             its resource, 7788 by custom",
            "Test-NetConnection DESTINATION -Port 445; on Linux: nc -zv DESTINATION 7788",
        ),
        (
            CheckKind::Servers,
            "both servers have 2 GB of memory and two cores, and their volumes are GPT, NTFS or ReFS",
            "Test-SRTopology checks them",
        ),
    ];
    checks.extend(to_be_made.map(|(kind, what, how)| to_be_made_check(kind, what, how.to_owned())));
    let results = checks.iter_mut().filter_map(|check| Some((test?.result(check.kind)?, check)));
    for (result, check) in results {
        check.weight = Weight::Check { outcome: result.outcome };
        check.because = format!("Test-SRTopology: {}", result.text);
    }
    checks
}

/// How a check ended.
pub fn outcome_of(check: &Check) -> Option<Outcome> {
    match check.weight {
        Weight::Check { outcome } => Some(outcome),
        _ => None,
    }
}

fn check(kind: CheckKind, what: String, is_met: bool, because: String) -> Check {
    let outcome = if is_met { Outcome::Passed } else { Outcome::Failed };
    with_outcome(kind, what, outcome, because)
}

fn to_be_made_check(kind: CheckKind, what: &str, how: String) -> Check {
    with_outcome(kind, what.to_owned(), Outcome::ToBeMade, how)
}

fn with_outcome(kind: CheckKind, what: String, outcome: Outcome, because: String) -> Check {
    Check { because, ..Finding::new(kind, what).with_weight(Weight::Check { outcome }) }
}

fn round_trip(facts: &Facts, test: Option<&TopologyTest>) -> Check {
    let milliseconds = |ns: i64| format!("{:.3} ms", ns as f64 / 1e6);
    let given = format!("{}, {}", milliseconds(facts.rtt_ns), source(facts));
    let measured = test.and_then(|test| Some((test.rtt_ns?, test.rtt_max_ns)));
    let because = match measured {
        Some((rtt_ns, most)) => {
            let most =
                most.map_or(String::new(), |most| format!(", {} at most", milliseconds(most)));
            let average = milliseconds(rtt_ns);
            format!("Test-SRTopology measured {average} on average{most}; this link has {given}")
        }
        None => format!("it is {given}"),
    };
    check(
        CheckKind::RoundTrip,
        format!("synchronous copies: a round trip of at most {} ms", SYNC_RTT_MAX_NS / 1_000_000),
        measured.map_or(facts.rtt_ns, |(rtt_ns, _)| rtt_ns) <= SYNC_RTT_MAX_NS,
        because,
    )
}

/// Where the properties of the link are from.
fn source(facts: &Facts) -> &'static str {
    if facts.is_measured { "as measured" } else { "as given" }
}

fn rates(facts: &Facts) -> Vec<Check> {
    let megabits = |bits: f64| format!("{:.1} Mbit/s", bits / 1e6);
    let Some(bits) = facts.bandwidth_bits else {
        let how = format!(
            "give --bandwidth; the writes are {} on average and {} when they are busiest",
            megabits(facts.mean_bits),
            megabits(facts.busiest_bits)
        );
        return vec![to_be_made_check(CheckKind::MeanRate, "the link carries the writes", how)];
    };
    let given = megabits(bits);
    let busiest =
        if facts.is_minute { "minute" } else { "second (the recording has no whole minute)" };
    vec![
        check(
            CheckKind::MeanRate,
            "the link carries the writes on average".to_owned(),
            bits > facts.mean_bits,
            format!("it carries {given}, the writes are {}", megabits(facts.mean_bits)),
        ),
        check(
            CheckKind::BusiestRate,
            format!("synchronous copies: the link carries the busiest {busiest}"),
            bits > facts.busiest_bits,
            format!("it carries {given}, the writes are {}", megabits(facts.busiest_bits)),
        ),
        check(
            CheckKind::RecommendedRate,
            format!("the link has the recommended {}", megabits(BANDWIDTH_MIN_BITS)),
            bits >= BANDWIDTH_MIN_BITS,
            format!("it carries {given}, {}", source(facts)),
        ),
    ]
}

fn log(facts: &Facts) -> Option<Check> {
    let needed = facts.needed_log_bytes?;
    let size = facts.log_bytes.unwrap_or(LOG_DEFAULT_BYTES);
    let name =
        if facts.log_bytes.is_some() { "the given size" } else { "Storage Replica's default" };
    Some(check(
        CheckKind::LogSize,
        "the log holds all writes of the outage".to_owned(),
        size >= needed,
        format!("it has {} ({name}), the outage needs {}", bytes(size), bytes(needed)),
    ))
}

/// What Windows Server Standard allows: one volume of 2 TB in one partnership.
fn edition(facts: &Facts) -> Check {
    let what = "Windows Server Standard: one partnership with one volume of at most 2 TB; more needs Datacenter";
    let how = "Get-ComputerInfo -Property WindowsEditionId; DRBD has no such limit";
    match facts.data_bytes.filter(|data| *data > STANDARD_BYTES_MAX) {
        Some(data) => check(
            CheckKind::Edition,
            what.to_owned(),
            false,
            format!("the data has {}: {how}", bytes(data)),
        ),
        None => to_be_made_check(CheckKind::Edition, what, how.to_owned()),
    }
}

/// With three digits, as sizes of logs are given: `4.00 MiB`.
fn bytes(count: u64) -> String {
    let (mut value, mut unit) = (count as f64, "B");
    for next in ["KiB", "MiB", "GiB", "TiB", "PiB"] {
        if value < 1024.0 {
            break;
        }
        (value, unit) = (value / 1024.0, next);
    }
    match value {
        _ if unit == "B" => format!("{count} B"),
        ..10.0 => format!("{value:.2} {unit}"),
        ..100.0 => format!("{value:.1} {unit}"),
        _ => format!("{value:.0} {unit}"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::topology_test::TestResult;
    use super::*;

    fn outcome(facts: &Facts, what: &str) -> Option<Outcome> {
        let all = checks(facts, None);
        all.iter().find(|check| check.what.contains(what)).and_then(outcome_of)
    }

    #[test]
    fn what_is_known_is_decided_and_the_rest_is_listed() {
        let near = Facts {
            rtt_ns: 1_000_000,
            bandwidth_bits: Some(1e9),
            mean_bits: 1e8,
            busiest_bits: 2e9,
            is_minute: true,
            needed_log_bytes: Some(9 << 30),
            ..Facts::default()
        };
        assert_eq!(outcome(&near, "round trip"), Some(Outcome::Passed));
        assert_eq!(outcome(&near, "on average"), Some(Outcome::Passed));
        assert_eq!(outcome(&near, "busiest minute"), Some(Outcome::Failed));
        assert_eq!(outcome(&near, "recommended"), Some(Outcome::Passed));
        assert_eq!(outcome(&near, "outage"), Some(Outcome::Failed));
        assert_eq!(outcome(&near, "faster storage"), Some(Outcome::ToBeMade));
        let larger = Facts { log_bytes: Some(9 << 30), ..near };
        assert_eq!(outcome(&larger, "outage"), Some(Outcome::Passed));
        let small = Facts {
            log_bytes: Some(4 << 20),
            needed_log_bytes: Some(5 << 20),
            is_minute: false,
            is_measured: true,
            ..near
        };
        let all = checks(&small, None)
            .into_iter()
            .map(|check| format!("{}: {}", check.what, check.because));
        let text = all.collect::<Vec<_>>().join("\n");
        for part in [
            "has 4.00 MiB (the given size), the outage needs 5.00 MiB",
            "busiest second",
            "ms, as measured",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert!(!text.contains("as given"), "{text}");
        let far = Facts { rtt_ns: 5_000_001, bandwidth_bits: None, needed_log_bytes: None, ..near };
        assert_eq!(outcome(&far, "round trip"), Some(Outcome::Failed));
        assert_eq!(outcome(&far, "carries the writes"), Some(Outcome::ToBeMade));
        assert_eq!(outcome(&far, "outage"), None);
        // What the edition allows is decided by the size of the data only.
        assert_eq!(outcome(&near, "Standard"), Some(Outcome::ToBeMade));
        let large = Facts { data_bytes: Some(4 << 40), ..near };
        assert_eq!(outcome(&large, "Standard"), Some(Outcome::Failed));
        for what in ["9 GB free", "page file", "ICMP", "domains"] {
            assert_eq!(outcome(&near, what), Some(Outcome::ToBeMade), "{what}");
        }
    }

    /// What was measured counts, whatever was given.
    #[test]
    fn a_report_decides_what_it_measured() {
        let text = "Log Disk Sector Size Test: 4096 is different from 512".to_owned();
        let (kind, outcome) = (CheckKind::SectorSizes, Outcome::Failed);
        let test = TopologyTest {
            rtt_ns: Some(6_300_000),
            rtt_max_ns: Some(9_800_000),
            results: vec![TestResult { kind, outcome, text }],
        };
        let facts = Facts { rtt_ns: 5_000_000, ..Facts::default() };
        let all = checks(&facts, Some(&test));
        let of = |kind| all.iter().find(|check| check.kind == kind).unwrap();
        let round_trip = of(CheckKind::RoundTrip);
        assert_eq!(outcome_of(round_trip), Some(Outcome::Failed));
        let because = "Test-SRTopology measured 6.300 ms on average, 9.800 ms at most; this link has 5.000 ms, as given";
        assert_eq!(round_trip.because, because);
        assert_eq!(outcome_of(of(CheckKind::SectorSizes)), Some(Outcome::Failed));
        assert!(of(CheckKind::SectorSizes).because.contains("different from 512"));
        assert_eq!(outcome_of(of(CheckKind::Domain)), Some(Outcome::ToBeMade));
    }
}
