//! Properties of predictions from any recording, and from files with nonsense.

use proptest::prelude::*;
use smbscope_analysis::predict::changes::Change;
use smbscope_tables::code;
use smbscope_tables::run::{MEASURED, Scenario};

use crate::{
    Act, CREATE, FLUSH, MS, READ, RTT_NS, WRITE, act, mean, operations, predict, replication,
};

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let one = (0..5 * MS, 0..2 * MS, 0..MS, 77..200_000u64, any::<bool>()).prop_map(
        |(gap_ns, filesystem_ns, processing_ns, reply_bytes, waits)| Act {
            gap_ns,
            filesystem_ns,
            processing_ns,
            reply_bytes,
            waits,
        },
    );
    prop::collection::vec(one, 1..60)
}

/// Any number, with frequent extremes.
fn wild() -> impl Strategy<Value = i64> {
    prop_oneof![any::<i64>(), Just(i64::MIN), Just(i64::MAX), Just(0), -5..5i64]
}

proptest! {
    // Nonsense is slow: a link that is saturated for minutes.
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn no_nonsense_in_a_file_stops_it(
        numbers in prop::collection::vec((wild(), wild(), wild(), wild(), wild()), 1..6),
        rtt_s in 0.0..1e12,
    ) {
        let rows: Vec<_> = numbers
            .iter()
            .enumerate()
            .map(|(place, &(start, elapsed, server, slice, bytes))| {
                let mut row = operations(&[act(0, 77)], Some(place as u64 % 3))[0];
                row.set_command(code::command(2, [READ, WRITE, FLUSH, CREATE][place % 4]));
                row.set_request_start(start);
                row.set_elapsed_ns(elapsed);
                row.set_server_ns(server);
                row.set_filesystem_ns(slice);
                row.set_handle(1);
                row.set_offset_bytes(bytes as u64);
                row.set_transferred_bytes(bytes as u64);
                row.set_response_wire_bytes(bytes as u64);
                row.set_compound(place as u64 / 2);
                row
            })
            .collect();
        let scenarios: Vec<_> = numbers
            .iter()
            .enumerate()
            .map(|(place, &(at, began, ended, ..))| Scenario {
                recording: "run".into(),
                scenario_run: place as u64,
                phase: MEASURED.into(),
                scheduled_at: at,
                started_at: Some(began),
                ended_at: Some(ended),
                ..Scenario::default()
            })
            .collect();
        let changes = [
            Change::Rtt(rtt_s),
            Change::Bandwidth(1e6),
            Change::Window(1.0),
            Change::Loss(0.4),
            Change::Filesystem(1e-6),
            Change::Depth(3),
            Change::Compound(false),
            Change::Compound(true),
            Change::Channels(2),
            Change::DirLease(()),
            Change::WriteThrough(true),
            Change::Replication(replication(true)),
            Change::Replication(replication(false)),
            Change::Block(512),
        ];
        for count in 0..=changes.len() {
            predict(&rows, &scenarios, &changes[..count]);
        }
    }
}

proptest! {
    #[test]
    fn no_change_gives_the_measured_times(acts in acts()) {
        let rows = operations(&acts, None);
        for changes in [vec![], vec![Change::Rtt(RTT_NS as f64 / 1e9)], vec![Change::Filesystem(1.0)]] {
            let prediction = predict(&rows, &[], &changes);
            prop_assert_eq!(&prediction.operations.after, &prediction.operations.before);
            prop_assert_eq!(prediction.waiting_ns.0, prediction.waiting_ns.1);
            for command in &prediction.commands {
                prop_assert_eq!(&command.after, &command.before);
                prop_assert!(command.change_error_ns.is_none_or(|ns| ns == 0.0));
            }
        }
    }

    #[test]
    fn parts_sum_to_the_whole(acts in acts(), rtt_s in 0.0..0.3, times in 0.1..10.0) {
        let changes = [Change::Rtt(rtt_s), Change::Filesystem(times), Change::Bandwidth(1e7)];
        let prediction = predict(&operations(&acts, None), &[], &changes);
        let detail = prediction.detail.as_ref().unwrap();
        for row in &detail.sizes {
            let sum: f64 = row.parts.iter().map(|(_, part)| row.share(part).mean_ns).sum();
            prop_assert!((sum - row.whole.mean_ns().unwrap()).abs() < 1.0);
        }
        for row in prediction.commands.iter().chain([&prediction.operations]) {
            let sums = row.parts.iter().fold((0.0, 0.0), |sum, part| {
                (sum.0 + part.before_ns, sum.1 + part.after_ns)
            });
            prop_assert!((sums.0 - row.before.mean_ns().unwrap()).abs() < 1.0);
            prop_assert!((sums.1 - mean(row)).abs() < 1.0);
        }
    }

    #[test]
    fn nothing_gets_faster_by_a_worse_line_or_server(
        acts in acts(),
        rtt_s in 0.0..0.3,
        worse in 1.0..3.0,
        bits in 1e6..1e9,
        one_by_one in any::<bool>(),
    ) {
        let mut acts = acts;
        for act in &mut acts {
            // Large parallel messages open TCP's window for each other, and it closes again with time,
            // so that a small shift can cost or save a round trip: on a real link too.
            if one_by_one { act.waits = true } else { act.reply_bytes %= 14_000 }
        }
        let rows = operations(&acts, None);
        let at = |rtt_s: f64, times: f64, bits: f64| {
            let changes = [Change::Rtt(rtt_s), Change::Filesystem(times), Change::Bandwidth(bits)];
            predict(&rows, &[], &changes)
        };
        let one = at(rtt_s, 1.0, bits);
        let worse = [
            ("distance", at(rtt_s * worse, 1.0, bits)),
            ("storage", at(rtt_s, 1.0 / worse, bits)),
            ("rate", at(rtt_s, 1.0, bits / worse)),
        ];
        // Messages within a millisecond are not distinguished: a later one may find a free link.
        let unsure_ns = if one_by_one { 0 } else { MS };
        for (what, other) in worse {
            let (less, more) = (one.waiting_ns.1, other.waiting_ns.1);
            let unsure_of_all_ns = unsure_ns * acts.len() as i64;
            prop_assert!(more >= less * 999 / 1000 - unsure_of_all_ns, "{what}: {less} {more}");
            let least = 0.999 * mean(&one.operations) - unsure_ns as f64;
            prop_assert!(mean(&other.operations) >= least);
        }
    }
}
