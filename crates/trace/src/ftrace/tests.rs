//! Whole text traces in the forms of each tool.

use super::*;
use crate::event::Kind;

fn read(text: &str) -> (Vec<Event>, Coverage) {
    let mut reader = State::default();
    let mut events = Vec::new();
    for line in text.lines() {
        reader.line(Some(line), &[], &mut |event| events.push(event));
    }
    reader.finish(&mut |event| events.push(event));
    (events, reader.coverage())
}

fn interrupts(events: &[Event]) -> Vec<(Kind, &str, i64)> {
    let found = events.iter().filter_map(|event| match event {
        Event::Interrupt(one) => {
            let took = one.start_ns.map_or(-1, |start| one.end_ns - start);
            Some((one.kind, one.name.as_deref().unwrap_or(""), took))
        }
        _ => None,
    });
    found.collect()
}

#[test]
fn idle_states_have_durations_and_frequencies_belong_to_their_cpu() {
    let text = "\
        idle-0 [001] d... 10.000100: cpu_idle: state=2 cpu_id=1\n\
        idle-0 [001] d... 10.000400: cpu_idle: state=4294967295 cpu_id=1\n\
        a-7 [000] d... 10.000500: cpu_frequency: state=1800000 cpu_id=3\n\
        a-7 [000] d... 10.000600: cpu_frequency: cpu_id=3\n";
    let (events, coverage) = read(text);
    let found: Vec<_> = events
        .iter()
        .filter_map(|event| match event {
            Event::Power(it) => Some((it.cpu, it.kind.name(), it.value, it.duration_ns)),
            _ => None,
        })
        .collect();
    let expected = [(1, "c_state", 2, Some(300_000)), (3, "frequency", 1_800_000, None)];
    assert_eq!(found, expected);
    assert_eq!((coverage.damaged, coverage.events_other), (1, 0));
}

#[test]
fn a_trace_of_tracefs_is_read() {
    let text = "\
# tracer: nop
#
# entries-in-buffer/entries-written: 9/12   #P:4
#
#           TASK-PID     CPU#  |||||  TIMESTAMP  FUNCTION
#              | |         |   |||||     |         |
CPU:1 [LOST 5 EVENTS]
          <idle>-0       [001] d.h1.   100.000010: irq_handler_entry: irq=24 name=virtio0-input.0
          <idle>-0       [001] d.h1.   100.000011: softirq_raise: vec=3 [action=NET_RX]
          <idle>-0       [001] d.h1.   100.000012: irq_handler_exit: irq=24 ret=handled
          <idle>-0       [001] ..s1.   100.000015: softirq_entry: vec=3 [action=NET_RX]
          <idle>-0       [001] d.h2.   100.000016: local_timer_entry: vector=236
          <idle>-0       [001] d.h2.   100.000018: local_timer_exit: vector=236
          <idle>-0       [001] ..s1.   100.000040: napi_poll: napi poll on napi struct 00 for device eth0 work 7 budget 64
          <idle>-0       [001] ..s1.   100.000041: napi_poll: napi poll on napi struct 01 for device (no_device) work 1 budget 64
          <idle>-0       [001] ..s1.   100.000045: softirq_exit: vec=3 [action=NET_RX]
          <idle>-0       [001] d.h1.   100.000050: hrtimer_cancel: hrtimer=00
##### CPU 2 buffer started ####
          <idle>-0       [002] ..s1.   100.000060: softirq_exit: vec=1 [action=TIMER]
";
    let (events, coverage) = read(text);
    assert_eq!(
        interrupts(&events),
        [
            (Kind::Irq, "virtio0-input.0", 2_000),
            (Kind::Irq, "local_timer", 2_000),
            (Kind::NapiPoll, "eth0", -1),
            (Kind::NapiPoll, "backlog", -1),
            (Kind::Softirq, "NET_RX", 30_000),
        ]
    );
    let raised = events.iter().find_map(|event| match event {
        Event::Interrupt(one) if one.kind == Kind::Softirq => Some(one.raised_ns),
        _ => None,
    });
    assert_eq!(raised, Some(Some(100_000_011_000)));
    assert_eq!(coverage.format, "ftrace");
    assert_eq!((coverage.events, coverage.events_other), (11, 1));
    // Three overwritten according to the head, five lost while reading.
    assert_eq!((coverage.events_lost, coverage.ends_unmatched), (Some(8), 1));
    assert_eq!(coverage.damaged, 0);
    assert!(is_trace(text));
}

#[test]
fn damaged_lines_are_counted_and_the_first_is_named() {
    let text = "\
a-1 [000] d... 1.000001: softirq_entry: vec=1 [action=TIMER]
a-1 [000] d... 1.0000
a-1 [000] d... 1.000003: softirq_exit: vec=x
a-1 [000] d... 1.000004: sched_switch: nothing
a-1 [000] d... 1.000005: softirq_exit: vec=1 [action=TIMER]
";
    let (events, coverage) = read(text);
    assert_eq!(interrupts(&events), [(Kind::Softirq, "TIMER", 4_000)]);
    assert_eq!(coverage.damaged, 3);
    assert_eq!(coverage.first_damaged.as_deref(), Some("line 2: a-1 [000] d... 1.0000"));
    let mut reader = State::default();
    reader.line(None, &[], &mut |_| {});
    let damaged = reader.coverage().first_damaged;
    assert_eq!(damaged.as_deref(), Some("line 1: too long, or not text"));
}

#[test]
fn both_forms_of_a_switch_are_read() {
    let text = "\
cpus=4
CPU 2 is empty
a b-12 [003] 5.000000001: sched_switch: prev_comm=a b prev_pid=12 prev_prio=120 prev_state=S ==> next_comm=swapper/3 next_pid=0 next_prio=120
<idle>-0 [003] 5.000000002: sched_switch:          swapper/3:0 [120] R ==> kworker/3:1:44 [120]
";
    let (events, coverage) = read(text);
    let switches: Vec<_> = events
        .iter()
        .filter_map(|event| match event {
            Event::Switch(switch) => Some(switch),
            _ => None,
        })
        .collect();
    let (first, second) = (switches[0], switches[1]);
    assert_eq!((first.old_thread, first.old_name.as_deref()), (12, Some("a b")));
    assert_eq!((first.old_state.as_deref(), first.new_thread), (Some("S"), 0));
    assert_eq!((second.old_thread, second.new_thread), (0, 44));
    assert_eq!(second.new_name.as_deref(), Some("kworker/3:1"));
    assert_eq!((coverage.format.as_str(), coverage.damaged), ("trace-cmd report", 0));
    assert_eq!(coverage.events_lost, Some(0));
    // The thread of a virtual machine's CPU.
    let text = "       CPU 0/KVM-812 [001] 5.0: local_timer_entry: vector=236\n";
    assert_eq!(read(text).1.events, 1);
}

#[test]
fn samples_of_perf_script_have_stacks() {
    let text = "\
iperf 27409/28744 [000] 10.133575:     250000 cpu-clock: 
\t          59fef5 copy_user (vmlinux)
\t          279de7 __do_softirq+0x1 (vmlinux)

iperf 27409/28744 [000] 10.133585:     250000 cpu-clock: 
\t          59fef5 copy_user (vmlinux)
\t          279de7 __do_softirq+0x1 (vmlinux)

swapper     0 [001] 10.133590:     250000 cycles:P:  ffff10 native_halt+0x2 ([kernel.kallsyms])
swapper     0 [001] 10.133595:     250000 cpu-clock/freq=99,call-graph=fp/k: 
\tffff10 native_halt+0x2 ([kernel.kallsyms])

swapper     0 [001] 10.133600:          1 irq:irq_handler_entry: irq=36 name=virtio1 a ffffffff813eba8c __handle ([k])
swapper     0 [001] 10.133601:          1 irq:irq_handler_entry: irq=37 name=ahci ffffffff813eba8c __handle ([k])
swapper     0 [001] 10.133602:          1 irq:irq_handler_exit: irq=37 ret=handled
swapper     0 [001] 10.133602:          1 block:block_rq_issue: 8,0 R
";
    let (events, coverage) = read(text);
    let samples: Vec<_> = events
        .iter()
        .filter_map(|event| match event {
            Event::Sample(sample) => Some(sample),
            _ => None,
        })
        .collect();
    assert_eq!(samples.len(), 4);
    assert_eq!(interrupts(&events), [(Kind::Irq, "ahci", 1_000)]);
    assert_eq!((samples[0].stack, samples[1].stack, samples[2].stack), (Some(0), Some(0), Some(1)));
    assert_eq!((samples[0].process, samples[0].thread), (Some(27_409), Some(28_744)));
    assert_eq!((samples[0].during, samples[0].weight_ns), (Some(Kind::Softirq), Some(250_000)));
    assert_eq!((samples[2].during, samples[2].weight_ns), (None, None));
    assert_eq!(samples[2].address, Some(0xff_ff10));
    let stacks = events.iter().filter(|event| matches!(event, Event::Stack { .. })).count();
    assert_eq!(stacks, 2);
    assert_eq!((coverage.events, coverage.events_other, coverage.damaged), (8, 1, 0));
    assert!(is_trace(text));
}

#[test]
fn other_texts_are_not_traces() {
    assert!(!is_trace(""));
    assert!(!is_trace("[    1.234567] usb 1-1: new device\n"));
    assert!(!is_trace("Nov 26 06:00:00 host sshd[123]: Accepted password for a\n"));
    assert!(!is_trace("time,command\n1.0,Create\n"));
    assert!(is_trace("version = 6\ncpus=6\n a-1 [001] 76.2: x: y=1\n"));
}
