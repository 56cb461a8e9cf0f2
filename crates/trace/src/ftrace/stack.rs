//! Chains of calls below a sample of `perf script`: one line for each frame, the innermost first,
//! and an empty line at the end.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use crate::event::{Frame, Kind, StackId};
use crate::names::Names;

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

/// A frame: `ADDRESS FUNCTION+0xOFFSET (MODULE)`.
pub fn frame(line: &str, names: &mut Names) -> Option<Frame> {
    let line = line.trim();
    let (address, rest) = line.split_once(' ')?;
    let address = u64::from_str_radix(address, 16).ok()?;
    let rest = rest.trim();
    let (function, module) = match rest.strip_suffix(')').and_then(|rest| rest.rsplit_once(" (")) {
        Some((function, module)) => (function, module),
        None => (rest, ""),
    };
    let function = match function.rsplit_once("+0x") {
        Some((function, _offset)) => function,
        None => function,
    };
    let mut known = |name: &str| match name {
        "[unknown]" => None,
        name => names.intern(name),
    };
    Some(Frame { address, function: known(function), module: known(module) })
}

/// What the innermost of these functions says about the processor: a softirq, an irq, or a thread.
pub fn during(frames: &[Frame]) -> Option<Kind> {
    frames.iter().find_map(|frame| match frame.function.as_deref()? {
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
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_have_address_function_and_module() {
        let mut names = Names::default();
        let line = "\t ffffffff810a2 net_rx_action+0x12 (/lib/modules/4.3/build/vm linux)";
        let read = frame(line, &mut names).unwrap();
        assert_eq!(read.address, 0xf_ffff_fff8_10a2);
        assert_eq!(read.function.as_deref(), Some("net_rx_action"));
        assert_eq!(read.module.as_deref(), Some("/lib/modules/4.3/build/vm linux"));
        let read = frame("    7f25980008f0 [unknown] ([unknown])", &mut names).unwrap();
        assert_eq!((read.function, read.module), (None, None));
        let read = frame(" 10 operator+ (a)", &mut names).unwrap();
        assert_eq!(read.function.as_deref(), Some("operator+"));
        assert_eq!(frame("no address", &mut names), None);
    }

    #[test]
    fn equal_stacks_have_one_number() {
        let mut names = Names::default();
        let lines = [" 1 a (k)", " 2 __do_softirq (k)", " 3 handle_irq_event (k)"];
        let frames: Vec<_> = lines.iter().filter_map(|line| frame(line, &mut names)).collect();
        let mut stacks = Stacks::default();
        assert_eq!(stacks.number(&frames), Some((0, true)));
        assert_eq!(stacks.number(&frames[1..]), Some((1, true)));
        assert_eq!(stacks.number(&frames), Some((0, false)));
        assert_eq!(during(&frames), Some(Kind::Softirq));
        assert_eq!(during(&frames[2..]), Some(Kind::Irq));
        assert_eq!(during(&frames[..1]), None);
    }
}
