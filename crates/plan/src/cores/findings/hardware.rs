//! Rules about what receive work depends on besides CPUs: the link to the bus, rings, and states that save power.
//!
//! PCI Express Base Specification, "Link Status Register"; `Documentation/admin-guide/pm/cpuidle.rst`; mlnx_tune of
//! mlnx-tools checks the same.

use serde_json::json;
use smbscope_findings::KindInfo;

use super::super::topology::{Adapter, Machine};
use super::{FindingKind, Findings, Severity, cards, count};

pub(super) const PCI_DEGRADED: KindInfo = KindInfo::new(
    "pci-degraded",
    "The link to the bus has fewer lanes or a lower speed than the adapter has",
);
pub(super) const PCI_SLOWER: KindInfo =
    KindInfo::new("pci-slower", "The link to the bus carries less than the network does");
pub(super) const PCI_READ_REQUEST: KindInfo =
    KindInfo::new("pci-read-request", "Read requests on the bus are small for a fast adapter");
pub(super) const RING_SHORT: KindInfo =
    KindInfo::new("ring-short", "A receive ring holds little time");
pub(super) const DEEP_IDLE: KindInfo =
    KindInfo::new("deep-idle", "Idle CPUs enter states that they leave late");
pub(super) const POWER_PLAN: KindInfo =
    KindInfo::new("power-plan", "The power plan of Windows saves power");

/// Bytes of a frame on the wire: 1,514, its checksum, preamble and gap.
const FRAME_BYTES: u64 = 1_538;
/// A ring that holds less than this at the speed of the link overflows when its CPU is busy for a moment, in microseconds.
const RING_USECS_MIN: u64 = 200;
/// Part of the largest ring above which a ring is not a finding.
const RING_PARTS: u32 = 2;
/// Latency above which an idle state is a finding, in microseconds: what a request over a fast network takes.
const IDLE_USECS_MAX: u32 = 50;
/// Speed of a link from which read requests of 512 bytes keep the bus busy with headers, in bits per second.
const READ_REQUEST_BITS: u64 = 100_000_000_000;
const READ_REQUEST_BYTES_MIN: u32 = 1_024;

/// Power plans that every Windows has: balanced, and power saver.
const SAVING_PLANS: [&str; 2] =
    ["381b4222-f694-41f0-9685-ff5bb260df2e", "a1841308-3541-4fab-bc81-f71556f20b4a"];

pub(super) fn find(machine: &Machine, findings: &mut Findings) {
    for card in cards(machine) {
        bus(machine, card, findings);
        ring(card, findings);
    }
    idle(machine, findings);
    let plan = machine.power_plan.as_ref();
    if let Some(plan) = plan.filter(|plan| SAVING_PLANS.contains(&plan.guid.as_str())) {
        let sentence = format!(
            "The power plan {} lowers the frequency of CPUs between bursts; servers use High performance (8c5e7fda-e8bf-4a96-9a85-a6e23a8c635c).",
            plan.name
        );
        let evidence = json!({ "plan": plan.guid });
        findings.add(None, FindingKind::PowerPlan, Severity::Medium, sentence, evidence);
    }
}

fn gigabits(bits: u64) -> String {
    format!("{:.0} Gbit/s", bits as f64 / 1e9)
}

/// The speed of all ports on the device, whose functions share the link.
fn ports(machine: &Machine, card: &Adapter) -> (u32, u64) {
    let is_shared = |other: &&Adapter| {
        other.name == card.name || (card.device().is_some() && other.device() == card.device())
    };
    let speeds = machine.cards.iter().filter(is_shared).filter_map(|card| card.bits_per_second);
    speeds.fold((0, 0), |(ports, sum), speed| (ports + 1, sum.saturating_add(speed)))
}

fn bus(machine: &Machine, card: &Adapter, findings: &mut Findings) {
    let link = &card.pci;
    let Some(carries) = link.carries() else { return };
    let speed = card.bits_per_second;
    let at_most = link.carries_at_most().filter(|&most| most > carries);
    let (ports, sum) = ports(machine, card);
    let rate = |mega: Option<u32>| f64::from(mega.unwrap_or(0)) / 1_000.0;
    let is_slower = speed.is_some_and(|speed| carries < speed);
    let evidence = json!({
        "bits_per_second": carries,
        "bits_per_second_max": at_most,
        "lanes": link.lanes,
        "megatransfers": link.megatransfers,
        "link_bits_per_second": speed,
    });
    let lanes = |lanes: Option<u32>| count(lanes.unwrap_or(0), "lane");
    if let Some(most) = at_most {
        let sentence = format!(
            "Its link to the bus runs with {} at {} GT/s ({}), and it has {} at {} GT/s ({}): another slot or a firmware setting limits it.",
            lanes(link.lanes),
            rate(link.megatransfers),
            gigabits(carries),
            lanes(link.lanes_max),
            rate(link.megatransfers_max),
            gigabits(most)
        );
        let severity = match (is_slower, sum > carries) {
            (true, _) => Severity::High,
            (false, true) => Severity::Medium,
            (false, false) => Severity::Low,
        };
        findings.add(Some(card), FindingKind::PciDegraded, severity, sentence, evidence);
    } else if sum > carries {
        let sentence = format!(
            "Its link to the bus carries {} before headers, and its {} of the network {}.",
            gigabits(carries),
            count(ports, "port"),
            gigabits(sum)
        );
        let severity = if is_slower { Severity::High } else { Severity::Low };
        findings.add(Some(card), FindingKind::PciSlower, severity, sentence, evidence);
    }
    let is_fast = speed.is_some_and(|speed| speed >= READ_REQUEST_BITS);
    let bytes = link.read_request_bytes.filter(|&bytes| bytes < READ_REQUEST_BYTES_MIN);
    if let Some(bytes) = bytes.filter(|_| is_fast) {
        let sentence = format!(
            "It asks the memory for at most {bytes} bytes at a time (MaxReadReq), which is little for {}.",
            gigabits(speed.unwrap_or(0))
        );
        let evidence = json!({ "bytes": bytes });
        findings.add(Some(card), FindingKind::PciReadRequest, Severity::Low, sentence, evidence);
    }
}

/// A short ring without losses. With losses the finding about them has the ring.
fn ring(card: &Adapter, findings: &mut Findings) {
    let (Some(ring), Some(most), Some(speed)) = (card.ring, card.ring_max, card.bits_per_second)
    else {
        return;
    };
    let has_losses = card.losses.iter().any(|(_, frames)| *frames > 0);
    let usecs = u64::from(ring) * FRAME_BYTES * 8 * 1_000_000 / speed.max(1);
    if ring <= most / RING_PARTS && usecs < RING_USECS_MIN && !has_losses {
        let sentence = format!(
            "A receive ring has {ring} of at most {most} descriptors, which {} fill in {usecs} µs with full frames.",
            gigabits(speed)
        );
        let evidence = json!({ "ring": ring, "ring_max": most, "usecs": usecs });
        findings.add(Some(card), FindingKind::RingShort, Severity::Low, sentence, evidence);
    }
}

fn idle(machine: &Machine, findings: &mut Findings) {
    let states = machine.idle.iter().filter(|state| !state.is_disabled);
    let Some(deepest) = states.max_by_key(|state| state.latency_usecs) else { return };
    if deepest.latency_usecs > IDLE_USECS_MAX {
        let sentence = format!(
            "Idle CPUs may enter the state {}, which they take up to {} µs to leave: a request that wakes a CPU waits that long.",
            deepest.name, deepest.latency_usecs
        );
        let evidence = json!({ "state": deepest.name, "latency_usecs": deepest.latency_usecs });
        findings.add(None, FindingKind::DeepIdle, Severity::Low, sentence, evidence);
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::assemble::assemble;
    use super::super::super::read::read;
    use super::super::find;
    use super::*;

    /// What the outputs of a machine show, by the ids of the findings of this file.
    fn found(text: &str) -> Vec<(Severity, FindingKind, String)> {
        let reading = read(text.as_bytes()).unwrap();
        assert_eq!(reading.unknown.count(), 0, "{:?}", reading.unknown);
        let kinds = [
            FindingKind::PciDegraded,
            FindingKind::PciSlower,
            FindingKind::PciReadRequest,
            FindingKind::RingShort,
            FindingKind::DeepIdle,
            FindingKind::PowerPlan,
            FindingKind::PowerSaving,
        ];
        let findings = find(&assemble(&reading.pieces)).into_iter();
        let mine = findings.filter(|one| kinds.contains(&one.kind));
        mine.map(|one| (one.severity().unwrap(), one.kind, one.what)).collect()
    }

    const CARD: &str = "# ethtool -i eth4\ndriver: mlx5_core\nbus-info: 0000:3b:00.0\n\
        Settings for eth4:\n\tSpeed: 100000Mb/s\n\tLink detected: yes\n";

    #[test]
    fn half_of_the_lanes_are_found_in_lspci() {
        let lspci = "3b:00.0 Ethernet controller: Mellanox Technologies MT27800\n\tNUMA node: 1\n\
            \t\t\tMaxPayload 256 bytes, MaxReadReq 512 bytes\n\t\tLnkCap:\tPort #0, Speed 8GT/s, Width x16\n\
            \t\tLnkSta:\tSpeed 8GT/s (ok), Width x8 (downgraded)\n";
        let all = found(&format!("{CARD}{lspci}"));
        let kinds: Vec<_> = all.iter().map(|(severity, kind, _)| (*severity, *kind)).collect();
        let expected = [
            (Severity::High, FindingKind::PciDegraded),
            (Severity::Low, FindingKind::PciReadRequest),
        ];
        assert_eq!(kinds, expected);
        assert!(all[0].2.contains("8 lanes at 8 GT/s (63 Gbit/s)"), "{}", all[0].2);
        assert!(all[0].2.contains("16 lanes at 8 GT/s (126 Gbit/s)"), "{}", all[0].2);
        // With all lanes the port has room; two ports of 100 Gbit/s do not.
        let whole = lspci.replace("x8 (downgraded)", "x16").replace("512", "4096");
        assert_eq!(found(&format!("{CARD}{whole}")), []);
        let second = CARD.replace("eth4", "eth5").replace("00.0", "00.1");
        let two = found(&format!("{CARD}{second}{whole}"));
        assert_eq!((two[0].0, two[0].1), (Severity::Low, FindingKind::PciSlower));
    }

    #[test]
    fn the_link_is_found_in_pasted_files_and_in_windows() {
        let files = "# grep . /sys/class/net/eth4/device/*_link_*\n\
            /sys/class/net/eth4/device/current_link_speed:2.5 GT/s PCIe\n\
            /sys/class/net/eth4/device/max_link_speed:8.0 GT/s PCIe\n\
            /sys/class/net/eth4/device/current_link_width:16\n/sys/class/net/eth4/device/max_link_width:16\n";
        let found_in_files = found(&format!("{CARD}{files}"));
        assert!(found_in_files[0].2.contains("(32 Gbit/s)"), "{found_in_files:?}");
        let windows = "Name : SMB1\nInterfaceDescription : ConnectX-6\nBusNumber : 59\nDeviceNumber : 0\nFunctionNumber : 0\n\
            NumaNode : 1\nPciExpressCurrentLinkSpeedEncoded : 3\nPciExpressCurrentLinkWidth : 4\n\
            PciExpressMaxLinkSpeedEncoded : 4\nPciExpressMaxLinkWidth : 16\n";
        let found_in_windows = found(windows);
        assert_eq!(found_in_windows[0].1, FindingKind::PciDegraded);
        assert!(found_in_windows[0].2.contains("4 lanes at 8 GT/s (32 Gbit/s)"));
    }

    #[test]
    fn short_rings_and_saved_power_are_found() {
        let rings = "Ring parameters for eth4:\nPre-set maximums:\nRX:\t\t8192\nTX:\t\t8192\n\
            Current hardware settings:\nRX:\t\t1024\nTX:\t\t1024\n";
        let ring = found(&format!("{CARD}{rings}"));
        assert_eq!((ring.len(), ring[0].1), (1, FindingKind::RingShort));
        assert!(ring[0].2.contains("in 125 µs"), "{}", ring[0].2);
        let idle =
            "CPUidle driver: intel_idle\nanalyzing CPU 0:\nC1:\nLatency: 2\nC6:\nLatency: 133\n";
        let power = found(&format!("{CARD}{idle}  The governor \"powersave\" may decide\n"));
        let kinds: Vec<_> = power.iter().map(|(_, kind, _)| *kind).collect();
        assert_eq!(kinds, [FindingKind::PowerSaving, FindingKind::DeepIdle]);
        // A state that is switched off is not entered.
        assert_eq!(found(&format!("{CARD}{}", idle.replace("C6:", "C6 (DISABLED) :"))), []);
        let plan = "Power Scheme GUID: 381b4222-f694-41f0-9685-ff5bb260df2e  (Balanced)\n";
        assert_eq!(found(plan)[0].1, FindingKind::PowerPlan);
        assert_eq!(found("Power Scheme GUID: 8c5e7fda-e8bf-4a96-9a85-a6e23a8c635c  (High)\n"), []);
    }
}
