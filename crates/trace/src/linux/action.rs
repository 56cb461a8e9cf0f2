//! Which events of the kernel have a meaning here, by their name.
//!
//! include/trace/events/{irq,napi,sched,ipi,power}.h; arch/x86/include/asm/trace/irq_vectors.h. LTTng puts
//! the name of the group before some of them (`irq_softirq_entry`, `x86_irq_vectors_local_timer_entry`).

use crate::event::Kind;

/// Interrupts of the local APIC.
const VECTORS: [(&str, Kind); 11] = [
    ("local_timer", Kind::Irq),
    ("reschedule", Kind::Ipi),
    ("call_function", Kind::Ipi),
    ("call_function_single", Kind::Ipi),
    ("irq_work", Kind::Ipi),
    ("spurious_apic", Kind::Irq),
    ("error_apic", Kind::Irq),
    ("x86_platform_ipi", Kind::Irq),
    ("thermal_apic", Kind::Irq),
    ("threshold_apic", Kind::Irq),
    ("deferred_error_apic", Kind::Irq),
];

/// What runs on the CPU instead of its thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Handler {
    Softirq,
    Irq,
    /// Interrupt from another CPU, on other systems than x86.
    Ipi,
    /// Interrupt of the local APIC, by its name.
    Vector(Kind, &'static str),
}

impl Handler {
    pub fn kind(self) -> Kind {
        match self {
            Handler::Softirq => Kind::Softirq,
            Handler::Irq => Kind::Irq,
            Handler::Ipi => Kind::Ipi,
            Handler::Vector(kind, _) => kind,
        }
    }
}

/// What an event means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// A softirq is requested.
    Raise,
    Begin(Handler),
    End(Handler),
    /// A NAPI poll has ended.
    Poll,
    Switch,
    /// A CPU enters or leaves an idle state.
    Idle,
    /// A CPU changes its frequency.
    Frequency,
}

impl Action {
    /// By the name of the event without its group; `None` for events that are only counted.
    pub fn from_event(event: &str) -> Option<Action> {
        let event = event.strip_prefix("x86_irq_vectors_").unwrap_or(event);
        let event = match event.strip_prefix("irq_") {
            Some(softirq) if softirq.starts_with("softirq_") => softirq,
            _ => event,
        };
        match event {
            "softirq_raise" => return Some(Action::Raise),
            "napi_poll" => return Some(Action::Poll),
            "sched_switch" => return Some(Action::Switch),
            "cpu_idle" | "power_cpu_idle" => return Some(Action::Idle),
            "cpu_frequency" | "power_cpu_frequency" => return Some(Action::Frequency),
            _ => {}
        }
        let (name, is_begin) = match event.strip_suffix("_entry") {
            Some(name) => (name, true),
            None => (event.strip_suffix("_exit")?, false),
        };
        let handler = match name {
            "softirq" => Handler::Softirq,
            "irq_handler" => Handler::Irq,
            "ipi" => Handler::Ipi,
            name => {
                let (name, kind) = VECTORS.into_iter().find(|&(known, _)| known == name)?;
                Handler::Vector(kind, name)
            }
        };
        Some(if is_begin { Action::Begin(handler) } else { Action::End(handler) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_have_their_meaning_by_name() {
        let begin = Some(Action::Begin(Handler::Softirq));
        assert_eq!(Action::from_event("softirq_entry"), begin);
        assert_eq!(Action::from_event("irq_softirq_entry"), begin);
        let timer = Handler::Vector(Kind::Irq, "local_timer");
        assert_eq!(Action::from_event("local_timer_exit"), Some(Action::End(timer)));
        assert_eq!(
            Action::from_event("x86_irq_vectors_local_timer_entry"),
            Some(Action::Begin(timer))
        );
        assert_eq!(Action::from_event("irq_handler_exit"), Some(Action::End(Handler::Irq)));
        assert_eq!(Action::from_event("power_cpu_idle"), Some(Action::Idle));
        assert_eq!(Action::from_event("cpu_frequency"), Some(Action::Frequency));
        for other in [
            "cpu_frequency_limits",
            "irq_entry",
            "sys_enter",
            "softirq",
            "sched_switched",
            "vector_alloc",
            "",
        ] {
            assert_eq!(Action::from_event(other), None, "{other}");
        }
    }
}
