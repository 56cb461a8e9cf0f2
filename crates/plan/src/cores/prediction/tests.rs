//! Predictions on small machines with known hashes, and sums that must hold for any.

use proptest::prelude::*;

use super::super::layout::plan;
use super::super::layout::tests::{Numbering, card, machine, machines};
use super::super::toeplitz::{MICROSOFT_KEY, default_table};
use super::*;

/// Microsoft's vectors: the client is the source.
fn connections() -> Vec<Connection> {
    // Hashes 0x51ccc178 and 0xc626b0ea: entries 0x78 and 0x6a of 128.
    [
        ("66.9.149.187", 2794, "161.142.100.80", 1766, 30),
        ("199.92.111.2", 14230, "65.69.140.83", 4739, 10),
    ]
    .map(|(client, client_port, server, server_port, packets)| Connection {
        card: 0,
        client: client.parse().unwrap(),
        client_port,
        server: server.parse().unwrap(),
        server_port,
        bytes: packets * 1000,
        packets,
    })
    .to_vec()
}

fn linux() -> Machine {
    let mut machine = machine(System::Linux, 1, 8, 1, Numbering::Neighbours);
    let mut card = card("eth0", Some(0), Some(4));
    card.rss.key = MICROSOFT_KEY.to_vec();
    card.rss.queues = Some(2);
    card.rss.queue_table = default_table(128, 2);
    card.rss.interrupts = vec![(30, vec![0]), (31, vec![0])];
    machine.cards = vec![card];
    machine
}

#[test]
fn each_connection_goes_through_hash_table_and_interrupt() {
    let machine = linux();
    let prediction = predict(&machine, &plan(&machine), &connections());
    let card = &prediction.cards[0];
    assert_eq!((card.key, card.connections), (KeySource::Read, 2));
    assert_eq!(card.verdict, Verdict::OneDominates { packets_percent: 75.0 });
    // Before, both queues interrupt CPU 0.
    assert_eq!(card.before.cores.len(), 1);
    assert_eq!((card.before.cores[0].cpu, card.before.busiest_percent), (Some((0, 0)), 100.0));
    // After, entry 0x78 is queue 0 on CPU 1, entry 0x6a queue 2 on CPU 3.
    let after: Vec<_> = card.after.cores.iter().map(|core| (core.cpu, core.packets)).collect();
    assert_eq!(after, [(Some((0, 1)), 30), (Some((0, 3)), 10)]);
    // With another key, as drivers draw it at a start: both on one core, or the larger one alone.
    let busiest = card.after.busiest.unwrap();
    assert_eq!((busiest.percent_p5, busiest.percent_p95), (75.0, 100.0));
    let key = card.keep_key.as_deref().unwrap();
    assert!(key.starts_with("ethtool -X 'eth0' hkey 6d:5a:"), "{key}");
    assert_eq!(prediction.after, card.after.cores);
}

#[test]
fn one_connection_is_not_spread_and_multichannel_is_a_distribution() {
    let machine = linux();
    let layout = plan(&machine);
    let one = &connections()[..1];
    let prediction = predict(&machine, &layout, one);
    assert_eq!(prediction.cards[0].verdict, Verdict::OneConnection);
    assert_eq!(prediction.cards[0].after.busiest_percent, 100.0);
    let more = |card: &Adapter| {
        let client = (one[0].client, 49_152..=65_535);
        let path = Path::planned(card, &layout.cards[0]);
        path.more_connections(card, client, (one[0].server, 445), 4).unwrap()
    };
    // The low bits of the hash are linear in the port: with Microsoft's key each queue has a quarter of the ports.
    let found = more(&machine.cards[0]);
    assert!((found.probabilities[0] - 24.0 / 256.0).abs() < 1e-9, "{found:?}");
    // A key of zeros puts all on one queue, whatever the ports; an unknown key leaves the shares of the table.
    let mut card = machine.cards[0].clone();
    card.rss.key = vec![0; 40];
    assert_eq!(more(&card).busiest.percent_p5, 100.0);
    card.rss.key.clear();
    assert!((more(&card).probabilities[0] - 24.0 / 256.0).abs() < 1e-9);
}

/// An adapter without a plan keeps today's way: several connections share its one queue.
#[test]
fn without_a_plan_multichannel_is_counted_on_the_queues_of_today() {
    let mut machine = linux();
    machine.cards[0].rss.queue_table = vec![0; 128];
    let prediction = predict(&machine, &Layout::default(), &connections()[..1]);
    let card = &prediction.cards[0];
    assert_eq!(card.before.cores, card.after.cores);
    let multichannel = card.multichannel.as_ref().unwrap();
    assert_eq!(multichannel.connections, 4);
    assert_eq!(multichannel.chance.as_ref().unwrap().busiest.percent_p5, 100.0);
}

#[test]
fn an_unknown_key_gives_an_interval() {
    let mut machine = linux();
    machine.cards[0].rss.key.clear();
    let prediction = predict(&machine, &plan(&machine), &connections());
    assert_eq!(prediction.cards[0].key, KeySource::Microsoft);
    let interval = prediction.cards[0].after.busiest.unwrap();
    // Two connections meet on one of four cores in a quarter of the cases.
    assert_eq!((interval.percent_p5, interval.percent_p95), (75.0, 100.0));
    assert!((interval.percent_mean - 81.25).abs() < 1.0, "{interval:?}");
}

#[test]
fn what_is_unknown_has_no_processor() {
    let before = |change: fn(&mut Machine)| {
        let mut machine = linux();
        change(&mut machine);
        let prediction = predict(&machine, &plan(&machine), &connections());
        prediction.before.iter().map(|core| (core.cpu, core.packets)).collect::<Vec<_>>()
    };
    let unknown = vec![(None, 40)];
    assert_eq!(
        before(|machine| machine.cards[0].rss.interrupts = vec![(30, vec![0, 1]); 2]),
        unknown
    );
    assert_eq!(before(|machine| machine.cards[0].rss.interrupts.clear()), unknown);
    assert_eq!(
        before(|machine| {
            machine.system = System::Windows;
            machine.cards[0].rss.processor_table = vec![(0, 2), (0, 3)];
        }),
        [(Some((0, 2)), 40)]
    );
    assert_eq!(
        before(|machine| {
            machine.system = System::Windows;
            machine.cards[0].rss.is_enabled = Some(false);
            machine.cards[0].rss.processor_table = vec![(0, 2), (0, 3)];
        }),
        unknown
    );
}

#[test]
fn rps_scales_the_hash() {
    let mut machine = linux();
    machine.cards[0].rss.rps = vec![vec![4, 5, 6, 7]; 2];
    let prediction = predict(&machine, &plan(&machine), &connections());
    // 0x51ccc178 is in the second quarter of 32 bits, 0xc626b0ea in the fourth.
    let before: Vec<_> = prediction.before.iter().map(|core| (core.cpu, core.packets)).collect();
    assert_eq!(before, [(Some((0, 5)), 30), (Some((0, 7)), 10)]);
}

#[test]
fn a_planned_rps_scales_the_adapters_hash_or_is_unknown() {
    let mut machine = linux();
    let card = &mut machine.cards[0];
    card.queues_max = Some(1);
    card.rss.queues = Some(1);
    card.rss.queue_table = default_table(128, 1);
    card.rss.interrupts = vec![(30, vec![0])];
    card.rss.rps = vec![Vec::new()];
    let layout = plan(&machine);
    assert_eq!(layout.cards[0].queues, [(0, 1)]);
    assert_eq!(layout.cards[0].rps, [2, 3, 4, 5, 6, 7].map(|cpu| (0, cpu)));
    let prediction = predict(&machine, &layout, &connections());
    // 0x51ccc178 is in the second sixth of 32 bits, 0xc626b0ea in the fifth.
    let cpus =
        |loads: &[CoreLoad]| loads.iter().map(|core| (core.cpu, core.packets)).collect::<Vec<_>>();
    assert_eq!(cpus(&prediction.after), [(Some((0, 3)), 30), (Some((0, 6)), 10)]);
    assert!(!prediction.cards[0].is_steering_hash_unknown);
    // Without receive-hashing the kernel's own hash decides: an interval over six CPUs.
    machine.cards[0].has_receive_hash = Some(false);
    let prediction = predict(&machine, &layout, &connections());
    assert_eq!(cpus(&prediction.after), [(None, 40)]);
    assert!(prediction.cards[0].is_steering_hash_unknown);
    let interval = prediction.cards[0].after.busiest.unwrap();
    assert!((interval.percent_mean - (75.0 * 5.0 + 100.0) / 6.0).abs() < 1.0, "{interval:?}");
}

#[test]
fn a_dominant_connection_has_what_multichannel_would_bring() {
    let mut machine = linux();
    let prediction = predict(&machine, &plan(&machine), &connections());
    let found = prediction.cards[0].multichannel.as_ref().unwrap();
    assert_eq!(
        (found.pairs, found.connections, found.source),
        (1, 4, multichannel::Source::Assumed)
    );
    // Microsoft's key spreads the ports evenly over four cores.
    let chance = found.chance.as_ref().unwrap();
    assert_eq!((chance.busiest.percent_p5, chance.busiest.percent_p95), (25.0, 75.0));
    assert!(
        (chance.busiest.percent_mean
            - 100.0 * (24.0 + 2.0 * 180.0 + 3.0 * 48.0 + 4.0 * 4.0) / 1024.0)
            .abs()
            < 1e-6
    );
    machine.samba_multichannel = Some(false);
    let prediction = predict(&machine, &plan(&machine), &connections());
    let found = prediction.cards[0].multichannel.as_ref().unwrap();
    assert_eq!((found.connections, &found.chance), (1, &None));
    // Even connections need none.
    let mut even = connections();
    even[1].packets = 30;
    let prediction = predict(&machine, &plan(&machine), &even);
    assert_eq!(prediction.cards[0].multichannel, None);
}

#[test]
fn connections_that_cannot_be_placed_are_counted() {
    let machine = linux();
    let mut all = connections();
    all[0].card = 7;
    all[1].server = "::1".parse().unwrap();
    let prediction = predict(&machine, &plan(&machine), &all);
    assert_eq!((prediction.ignored, prediction.cards.len(), prediction.after.len()), (2, 0, 0));
}

proptest! {
    /// Nothing is lost, and after the change all work is on planned cores.
    #[test]
    fn sums_are_kept(
        machine in machines(),
        flows in prop::collection::vec((0_usize..12, any::<u32>(), any::<u16>(), 0_u64..1_000_000), 0..60),
    ) {
        let layout = plan(&machine);
        let connections: Vec<Connection> = flows
            .into_iter()
            .map(|(card, client, client_port, packets)| Connection {
                card,
                client: IpAddr::from(client.to_be_bytes()),
                client_port,
                server: IpAddr::from([10, 0, 0, 1]),
                server_port: 445,
                bytes: packets * 1448,
                packets,
            })
            .collect();
        let prediction = predict(&machine, &layout, &connections);
        let expected: u64 = connections
            .iter()
            .filter(|connection| connection.card < machine.cards.len())
            .map(|connection| connection.packets)
            .sum();
        for loads in [&prediction.before, &prediction.after] {
            prop_assert_eq!(loads.iter().map(|core| core.packets).sum::<u64>(), expected);
        }
        // An adapter without a plan stays as it is.
        for card in &prediction.cards {
            match layout.cards.iter().find(|placed| placed.card == card.card) {
                Some(placed) => {
                    let planned = |cpu| placed.queues.contains(&cpu) || placed.rps.contains(&cpu);
                    prop_assert!(card.after.cores.iter().all(|core| core.cpu.is_some_and(planned)));
                }
                None => prop_assert_eq!(&card.after.cores, &card.before.cores),
            }
        }
    }
}
