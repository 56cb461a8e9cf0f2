//! Signing and encryption.

use smbscope_analysis::predict::changes::Change;
use smbscope_analysis::predict::crypto;
use smbscope_analysis::predict::crypto::{Calibration, Costs, Side};
use smbscope_analysis::predict::plan::Plan;
use smbscope_analysis::predict::replay::{Baseline, Prediction, Replay};
use smbscope_analysis::predict::requirements::unanswered;
use smbscope_tables::code;
use smbscope_tables::operation::Operation;
use smbscope_tables::protection::Protection;

use crate::{
    CLOSE, CREATE, IOCTL, MS, NEGOTIATE, READ, TREE_CONNECT, act, batch, connection, learnt, mean,
    operations,
};

fn calibration(costs: &[(Protection, f64)]) -> Calibration {
    let side = |message_ns: f64| {
        let cost = crypto::Cost { message_ns, byte_ns: 0.5, longer: Vec::new() };
        Side { inbound: cost.clone(), outbound: cost }
    };
    let costs = costs.iter().map(|(way, ns)| Costs {
        protection: way.name().to_owned(),
        server: side(*ns),
        client: side(2.0 * ns),
    });
    Calibration { costs: costs.collect(), ..Calibration::default() }
}

#[test]
fn signing_costs_both_sides_each_message_and_its_bytes() {
    let mut rows = operations(&vec![act(MS, 4_000); 10], None);
    let protected = |rows: &[Operation], change: Change, calibration: Option<Calibration>| {
        let mut plan = Plan { calibration, ..Plan::default() };
        change.plan(&mut plan);
        let mut replay = Replay::new(plan, Baseline::default());
        replay.connections(&[connection()]);
        replay.operations(&batch(rows)).unwrap();
        replay.finish()
    };
    let known =
        || Some(calibration(&[(Protection::AesGmac, 1_000.0), (Protection::AesCmac, 9_000.0)]));
    let difference =
        |one: &Prediction| mean(&one.operations) - one.operations.before.mean_ns().unwrap();
    // Request and reply at the server, half a nanosecond per byte; twice as much for each at the
    // client, outside the operation.
    let bytes = 0.5 * (120.0 + 4_000.0);
    let signed = protected(&rows, Change::Signing(Protection::AesGmac), known());
    assert_eq!(difference(&signed), 2_000.0 + bytes);
    assert_eq!((signed.protected.changed, signed.protected.unknown), (10, 0));
    let out = signed.operations.parts.iter().find(|part| part.part == "crypto_out").unwrap();
    assert_eq!((out.before_ns, out.after_ns), (0.0, 1_000.0 + 2_000.0));
    // From one algorithm to the other, and no cost if it is the same.
    rows.iter_mut().for_each(|row| row.set_signed(true));
    let same = protected(&rows, Change::Signing(Protection::HmacSha256), known());
    assert_eq!((difference(&same), same.protected.changed), (0.0, 0));
    let unknown = protected(&rows, Change::Signing(Protection::AesGmac), None);
    assert_eq!((difference(&unknown), unknown.protected.unknown), (0.0, 10));
    // The costs in the server's slices are removed without any calibration.
    rows.iter_mut().for_each(|row| row.set_crypto_out_ns(7_000));
    let off = protected(&rows, Change::Signing(Protection::None), None);
    assert_eq!(difference(&off), -7_000.0);
}

/// Without signing, the TreeConnects are signed nevertheless; with signing, the Negotiates are not.
#[test]
fn protection_that_is_there_already_changes_nothing() {
    let commands = [NEGOTIATE, IOCTL, TREE_CONNECT, CREATE, READ, CLOSE];
    for signed in [&[IOCTL, TREE_CONNECT][..], &[IOCTL, TREE_CONNECT, CREATE, READ, CLOSE]] {
        let mut rows = operations(&vec![act(MS / 10, 200); commands.len()], None);
        for (row, command) in rows.iter_mut().zip(commands) {
            row.set_command(code::command(2, command));
            row.set_signed(signed.contains(&command));
            // The Ioctl that validates the Negotiate belongs to no open.
            if matches!(command, CREATE | READ | CLOSE) {
                row.set_handle(1);
            }
        }
        let way = if signed.contains(&READ) { Protection::HmacSha256 } else { Protection::None };
        let requested = [Change::Signing(way), Change::Encryption(Protection::None)];
        let prediction = learnt(&rows, requested[0]);
        assert_eq!(prediction.protected.unknown, 0, "{way:?}");
        assert_eq!((prediction.protected.changed, unanswered(&requested, &prediction)), (0, None));
        assert_eq!(Some(mean(&prediction.operations)), prediction.operations.before.mean_ns());
        // Another algorithm is still predicted.
        let other = learnt(&rows, Change::Signing(Protection::AesGmac));
        assert_eq!(other.protected.unknown, 3, "{way:?}");
    }
}
