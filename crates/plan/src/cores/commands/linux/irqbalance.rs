//! irqbalance: stopped while interrupts are set, and started again with those left alone.
//!
//! irqbalance(1) (`--banirq`, `--policyscript`), systemd.unit(5) (drop-in files).

use super::super::super::topology::Machine;
use super::super::{Details, Interruption, Kind, Step};
use crate::script::{Check, quote};

/// Where the drop-in file for irqbalance is.
const DROP_IN: &str = "/etc/systemd/system/irqbalance.service.d/smbscope.conf";

pub(super) fn stop() -> Step {
    Step {
        does: "Stop irqbalance while interrupts are set".into(),
        apply: vec!["systemctl stop irqbalance".into()],
        undo: vec!["systemctl restart irqbalance".into()],
        checks: Vec::new(),
        details: Details {
            card: None,
            kind: Kind::IrqbalanceStop,
            interrupts: Interruption::Service,
        },
    }
}

/// The options with which irqbalance runs: a drop-in file replaces those of the unit. Words that systemd would read as
/// something else are left out.
fn options(machine: &Machine) -> String {
    let is_plain = |word: &&String| {
        let is_word = |byte: u8| byte.is_ascii_alphanumeric() || b"-_=./:,+@".contains(&byte);
        !word.is_empty() && word.bytes().all(is_word)
    };
    let words = machine.irqbalance_options.iter().filter(is_plain);
    words.cloned().collect::<Vec<_>>().join(" ")
}

pub(super) fn ban(machine: &Machine, cards: &[&String]) -> Step {
    let banned = machine.irqbalance_banned.iter().map(u32::to_string).collect::<Vec<_>>().join(" ");
    let names = cards.iter().map(|name| quote::sh(name)).collect::<Vec<_>>().join(" ");
    Step {
        does: "Let irqbalance leave the interrupts of these adapters alone, and start it again"
            .into(),
        apply: vec![
            format!(
                "ban_interrupts {} {} {names}",
                quote::sh(&options(machine)),
                quote::sh(&banned)
            ),
            "systemctl start irqbalance".into(),
        ],
        undo: vec![format!("rm -f {DROP_IN}"), "systemctl daemon-reload".into()],
        checks: vec![Check {
            command: "systemctl show -p ExecStart irqbalance".into(),
            expected: "--banirq for each interrupt of the adapters".into(),
        }],
        details: Details {
            card: None,
            kind: Kind::IrqbalanceBan,
            interrupts: Interruption::Service,
        },
    }
}
