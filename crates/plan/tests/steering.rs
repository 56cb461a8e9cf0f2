//! The kernel's receive packet steering against the prediction: each connection's CPU.
//!
//! `virtual_interfaces`: a veth pair and a tap interface in a network namespace of their own, on this machine. They have no
//! hash of hardware: the kernel computes one with a key of its own (`siphash` over the dissected headers), so that the way
//! from the hash to the CPU is compared, and that hash with Toeplitz. It needs root and two CPUs, otherwise it
//! is skipped.
//!
//! `adapter` runs in a guest of `tests/live/rss.py`, whose virtio adapter hashes with Toeplitz: key, table, interrupts and
//! RPS are read as `smbscope plan cores` reads them, and each connection's hash and CPU is compared. The host sends
//! with `send_into`.

#![cfg(target_os = "linux")]
// A test may panic.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::process::Command;
use std::time::Duration;

use smbscope_plan::cores::bundle::{Live, read};
use smbscope_plan::cores::layout::plan;
use smbscope_plan::cores::prediction::{Connection, predict, steered};
use smbscope_plan::cores::toeplitz::{Fields, Flow, MICROSOFT_KEY, flow_hash};

#[path = "support/packets.rs"]
mod packets;

use packets::{Arrival, Received, Tap, Taps, arrivals, send};

/// Connections of IPv4, and as many of IPv6.
const EACH: u16 = 200;
/// In the process that has a network namespace of its own.
const INSIDE: &str = "SMBSCOPE_STEERING_INSIDE";
const MAC: [u8; 6] = [0x02, 0, 0x5e, 0, 0, 0x01];

#[test]
fn virtual_interfaces() {
    if std::env::var_os(INSIDE).is_some() {
        return inside();
    }
    // Network and mounts of its own, with a /sys that shows that network; all is gone when the process ends.
    let script = "mount -t sysfs none /sys && \
        ip link add steer0 type veth peer name steer1 address 02:00:5e:00:00:01 && \
        ip tuntap add steer2 mode tap && ip link set steer2 address 02:00:5e:00:00:01 && \
        for end in steer0 steer1 steer2; do ip link set $end addrgenmode none up || exit 1; done && \
        echo ready >&2 && exec \"$0\" --exact virtual_interfaces --nocapture";
    let path = std::env::var("PATH").unwrap_or_default();
    let output = Command::new("unshare")
        .args(["--net", "--mount", "sh", "-c", script])
        .arg(std::env::current_exe().unwrap())
        .env(INSIDE, "1")
        .env("PATH", format!("{path}:/usr/sbin:/sbin"))
        .output();
    let output = match output {
        Ok(output) => output,
        Err(error) => return smbscope_testing::skip!("steering by the kernel: unshare: {error}"),
    };
    let errors = String::from_utf8_lossy(&output.stderr);
    if !errors.contains("ready") {
        return smbscope_testing::skip!(
            "steering by the kernel: no network namespace (it needs root and iproute2): {}",
            errors.trim()
        );
    }
    print!("{}", String::from_utf8_lossy(&output.stdout));
    assert!(output.status.success(), "{errors}");
}

/// The CPUs that are online.
fn online() -> Vec<u32> {
    let text = std::fs::read_to_string("/sys/devices/system/cpu/online").unwrap();
    text.trim()
        .split(',')
        .flat_map(|range| {
            let (first, last) = range.split_once('-').unwrap_or((range, range));
            first.parse::<u32>().unwrap()..=last.parse::<u32>().unwrap()
        })
        .collect()
}

/// Frames that each CPU received, as `/proc/net/softnet_stat` counts them.
fn softnet() -> BTreeMap<u32, u64> {
    let text = std::fs::read_to_string("/proc/net/softnet_stat").unwrap();
    let row = |(place, line): (usize, &str)| {
        let words: Vec<_> = line.split_whitespace().collect();
        let number = |place: usize| u64::from_str_radix(words.get(place)?, 16).ok();
        // The CPU is the 13th number since Linux 5.10; before, lines were of CPUs online.
        let cpu = number(12).and_then(|cpu| u32::try_from(cpu).ok()).unwrap_or(place as u32);
        (cpu, number(0).unwrap())
    };
    text.lines().enumerate().map(row).collect()
}

fn inside() {
    let online: Vec<u32> = online().into_iter().filter(|cpu| *cpu < 32).collect();
    if online.len() < 2 {
        return smbscope_testing::skip!("steering by the kernel: one CPU only");
    }
    let tap = Tap::open("steer2").unwrap();
    compare("steer1", &online, |arrivals| send("steer0", MAC, arrivals, Duration::ZERO).unwrap());
    compare("steer2", &online, |arrivals| tap.send(MAC, arrivals).unwrap());
}

/// Sends to an interface that receives, with RPS to all CPUs and to each alone.
fn compare(interface: &str, online: &[u32], send: impl Fn(&[Arrival])) {
    let taps = Taps::new(interface).unwrap();
    let mut hashes: BTreeMap<Arrival, u32> = BTreeMap::new();
    // All CPUs, then each alone.
    let masks = std::iter::once(online.to_vec()).chain(online.iter().map(|cpu| vec![*cpu]));
    for cpus in masks {
        let mask = cpus.iter().fold(0_u32, |mask, cpu| mask | 1 << cpu);
        let file = format!("/sys/class/net/{interface}/queues/rx-0/rps_cpus");
        std::fs::write(file, format!("{mask:x}")).unwrap();
        let steering: Vec<(u32, u32)> = cpus.iter().map(|cpu| (0, *cpu)).collect();
        let arrivals = arrivals(EACH);
        let before = softnet();
        send(&arrivals);
        let received = taps.collect(&arrivals, Duration::from_secs(10));
        let after = softnet();
        assert_eq!(received.len(), arrivals.len(), "frames were lost");
        let mut predicted: BTreeMap<u32, u64> = BTreeMap::new();
        for (arrival, Received { hash, cpu }) in &received {
            assert_eq!(steered(*hash, &steering), Some((0, *cpu)), "{arrival:?}: hash {hash:08x}");
            *predicted.entry(*cpu).or_default() += 1;
            // A connection keeps its hash, whatever the CPUs.
            assert_eq!(*hashes.entry(*arrival).or_insert(*hash), *hash, "{arrival:?}");
        }
        for (cpu, frames) in &predicted {
            // Other programs receive too: the counter grows at least by this.
            let counted = after[cpu] - before[cpu];
            assert!(
                counted >= *frames,
                "CPU {cpu}: {frames} predicted, softnet_stat counts {counted}"
            );
        }
        println!(
            "{interface}, RPS to {cpus:?}: {} of {} connections on the predicted CPU: {predicted:?}",
            received.len(),
            arrivals.len()
        );
    }
    let toeplitz = hashes.iter().filter(|(arrival, hash)| {
        let flow = Flow {
            source: arrival.source,
            source_port: arrival.source_port,
            destination: arrival.destination,
            destination_port: arrival.destination_port,
        };
        flow_hash(&MICROSOFT_KEY, &flow, Fields::AddressesAndPorts) == Some(**hash)
    });
    let equal = toeplitz.count();
    println!("{interface}: hash equal to Toeplitz: {equal} of {}", hashes.len());
    assert!(equal < 3, "the kernel's own hash is not Toeplitz");
}

/// The host's part: sends all connections into the interface that the environment names.
#[test]
fn send_into() {
    let Some(interface) = std::env::var_os("SMBSCOPE_STEERING_SEND") else { return };
    // The guest is emulated.
    let pause = Duration::from_millis(20);
    send(interface.to_str().unwrap(), MAC, &arrivals(EACH), pause).unwrap();
}

/// The guest's part: each connection's CPU, with RSS alone, and with RPS behind it.
#[test]
fn adapter() {
    let Some(name) = std::env::var_os("SMBSCOPE_STEERING_ADAPTER") else { return };
    let name = name.to_str().unwrap();
    let taps = Taps::new(name).unwrap();
    let card_of = || {
        let machine = read(&Live::new()).unwrap().machine;
        let card = machine.cards.iter().position(|card| card.name == name).unwrap();
        (machine, card)
    };
    let (machine, card) = card_of();
    let online: Vec<u32> = machine.cpus.iter().map(|cpu| cpu.number).collect();
    // Not in the order of the queues, so that a queue is not its CPU.
    let interrupts = &machine.cards[card].rss.interrupts;
    println!("guest: {}: {:?}", machine.cards[card].driver.as_deref().unwrap_or("?"), interrupts);
    for ((number, _), cpu) in interrupts.iter().zip(online.iter().rev().cycle()) {
        std::fs::write(format!("/proc/irq/{number}/smp_affinity_list"), cpu.to_string()).unwrap();
    }
    // An interrupt moves to its new CPU when it next comes: the first round is not compared.
    for (round, steering) in [vec![], vec![], vec![0, 1, 3]].into_iter().enumerate() {
        let mask = steering.iter().fold(0_u32, |mask, cpu| mask | 1 << cpu);
        for queue in 0..machine.cards[card].rss.rps.len() {
            let path = format!("/sys/class/net/{name}/queues/rx-{queue}/rps_cpus");
            std::fs::write(path, format!("{mask:x}")).unwrap();
        }
        let (machine, card) = card_of();
        let rss = &machine.cards[card].rss;
        println!(
            "guest: queues {:?}, table of {} entries, key of {} bytes, interrupts {:?}, RPS {:?}",
            rss.queues,
            rss.queue_table.len(),
            rss.key.len(),
            rss.interrupts,
            rss.rps
        );
        let layout = plan(&machine);
        println!("guest: listens {round}");
        let arrivals = arrivals(EACH);
        let received = taps.collect(&arrivals, Duration::from_secs(60));
        if round == 0 {
            continue;
        }
        let mut arrived = BTreeMap::<_, usize>::new();
        received.values().for_each(|received| *arrived.entry(received.cpu).or_default() += 1);
        println!("guest: received by CPU {arrived:?}");
        let (mut hashes, mut processors) = (0, BTreeMap::<_, usize>::new());
        for (arrival, received) in &received {
            let flow = Flow {
                source: arrival.source,
                source_port: arrival.source_port,
                destination: arrival.destination,
                destination_port: arrival.destination_port,
            };
            let hash = flow_hash(&rss.key, &flow, Fields::AddressesAndPorts);
            hashes += usize::from(hash == Some(received.hash));
            let connection = Connection {
                card,
                client: arrival.source,
                client_port: arrival.source_port,
                server: arrival.destination,
                server_port: arrival.destination_port,
                bytes: 400,
                packets: 1,
            };
            // Twice, because the prediction for a single one also goes through all ports, which takes long here.
            let both = [connection.clone(), connection];
            let prediction = predict(&machine, &layout, &both);
            let cpu = prediction.before.first().and_then(|core| core.cpu);
            if cpu == Some((0, received.cpu)) {
                *processors.entry(received.cpu).or_default() += 1;
            }
        }
        println!(
            "guest: RPS to {steering:?}: {hashes} hashes and {} CPUs of {} connections as predicted, \
             by CPU {processors:?}, {} lost",
            processors.values().sum::<usize>(),
            received.len(),
            arrivals.len() - received.len()
        );
    }
}
