//! Stacks by number, and what a stack says about the CPU.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use crate::event::{Frame, Kind, StackId};

/// Most different stacks of a trace.
const STACKS_MAX: usize = 262_144;
/// Most frames of a stack; `perf` records at most 127 (`kernel.perf_event_max_stack`).
pub const FRAMES_MAX: usize = 512;

/// Stacks that occurred, by their hash.
#[derive(Debug, Default)]
pub struct Stacks {
    known: HashMap<u64, StackId>,
    /// Stacks without a number because there were too many.
    pub discarded: u64,
}

impl Stacks {
    /// Number of the stack, and whether it is new; `None` if there are too many.
    pub fn number(&mut self, frames: &[Frame]) -> Option<(StackId, bool)> {
        let mut hasher = DefaultHasher::new();
        frames.hash(&mut hasher);
        let next = self.known.len();
        match self.known.entry(hasher.finish()) {
            Entry::Occupied(known) => Some((*known.get(), false)),
            Entry::Vacant(vacant) if next < STACKS_MAX => {
                Some((*vacant.insert(next as StackId), true))
            }
            Entry::Vacant(_) => {
                self.discarded += 1;
                None
            }
        }
    }
}

/// What the innermost of these functions says about the CPU: a softirq, an irq, or a thread.
pub fn during(frames: &[Frame]) -> Option<Kind> {
    frames.iter().find_map(|frame| during_function(frame.function.as_deref()?))
}

/// What runs while this function does.
fn during_function(function: &str) -> Option<Kind> {
    match function {
        // kernel/softirq.c; the second since Linux 6.7.
        "__do_softirq" | "handle_softirqs" => Some(Kind::Softirq),
        // kernel/irq/handle.c, arch/x86/kernel/apic/apic.c.
        "handle_irq_event"
        | "handle_irq_event_percpu"
        | "__handle_irq_event_percpu"
        | "__sysvec_apic_timer_interrupt"
        | "smp_apic_timer_interrupt"
        | "generic_handle_arch_irq" => Some(Kind::Irq),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_stacks_have_one_number() {
        let frame = |(address, function): (u64, &str)| Frame {
            address,
            function: Some(function.into()),
            module: None,
        };
        let frames = [(1, "a"), (2, "__do_softirq"), (3, "handle_irq_event")].map(frame);
        let mut stacks = Stacks::default();
        assert_eq!(stacks.number(&frames), Some((0, true)));
        assert_eq!(stacks.number(&frames[1..]), Some((1, true)));
        assert_eq!(stacks.number(&frames), Some((0, false)));
        assert_eq!(during(&frames), Some(Kind::Softirq));
        assert_eq!(during(&frames[2..]), Some(Kind::Irq));
        assert_eq!(during(&frames[..1]), None);
    }
}
