//! `smbscope top --cpu`: what each CPU does now, on a screen or as printed tables.
//!
//! The numbers are computed by `analysis::processors::now`; the recorder is that of `record --cpu`.

use std::io::Write as _;
use std::time::Instant;

use ratatui::crossterm::event::{Event, KeyCode, KeyModifiers};
use serde_json::{Value, json};
use smbscope_analysis::processors::now::{CpuNow, Now};
use smbscope_report::format;
use smbscope_store::Part;
use smbscope_trace::record::{Counted, Options, Recorder, Tracer};

use super::args::Top;
use super::screen::Screen;
use super::{Limits, is_screen, live, numbers};
use crate::format::{Align, Column, TextFormat, lines};
use crate::interrupt;
use crate::options::Verbosity;
use crate::output::Output;
use crate::pipeline::record::now;

/// Samples each second on each CPU.
const HZ: u32 = 99;
/// How long keys and the end of an interval are waited for.
const WAIT: std::time::Duration = std::time::Duration::from_millis(20);
/// Names that are shown of a CPU.
const NAMES: usize = 3;

/// An interval.
struct Interval {
    cpus: Vec<CpuNow>,
    length_ns: i64,
    end_ns: i64,
    counted: Counted,
}

/// Shows what CPUs do.
pub fn run(args: &Top, verbosity: Verbosity) -> anyhow::Result<()> {
    args.listen.schedule(true, verbosity)?;
    let buffer_bytes = args.listen.buffer / 4;
    let mut recorder = Recorder::start(
        "now",
        Options { buffer_bytes, hz: HZ, switches: false, tracer: Tracer::Auto },
    )?;
    if let Some(why) = recorder.instead() {
        verbosity.say(&format!("CPUs are recorded by tracefs: {why}"));
    }
    if !recorder.missing().is_empty() {
        verbosity.say(&format!("this kernel has no {}", recorder.missing().join(", ")));
    }
    live::drop_capabilities(std::path::Path::new("."), None, verbosity);
    let limits = Limits { begin: Instant::now(), duration: args.duration, count: args.count };
    let mut screen = is_screen(args).then(Screen::enter).transpose()?;
    let mut output = Output::stdout();
    let (mut adding, mut begun, mut intervals) = (Now::default(), Instant::now(), 0);
    loop {
        let is_full = recorder.receive()?;
        let is_over = begun.elapsed() >= args.interval;
        if is_full || is_over {
            add(&mut adding, &recorder.parts()?);
        }
        if is_over {
            let length_ns = i64::try_from(begun.elapsed().as_nanos()).unwrap_or(i64::MAX);
            begun = Instant::now();
            intervals += 1;
            let (cpus, counted) = (adding.take(length_ns), recorder.counted());
            let interval = Interval { cpus, length_ns, end_ns: now(), counted };
            match (&mut screen, args.format) {
                (Some(screen), _) => screen.text(&table(&interval, ("", "")))?,
                (None, TextFormat::Text) => {
                    let text = table(&interval, output.bold());
                    output.text(&format!("{text}\n"))?;
                }
                (None, TextFormat::Json) => output.text(&format!("{}\n", object(&interval)))?,
            }
            let flushed = output.flush();
            output.watch().check(flushed)?;
        }
        if interrupt::asked() || limits.are_over(intervals) || quits(screen.as_ref(), is_full)? {
            drop(screen);
            return output.finish();
        }
    }
}

/// Waits for a moment; whether the user wants to end.
fn quits(screen: Option<&Screen>, is_full: bool) -> anyhow::Result<bool> {
    if is_full {
        return Ok(false);
    }
    let Some(screen) = screen else {
        std::thread::sleep(WAIT);
        return Ok(false);
    };
    Ok(match screen.event(WAIT)? {
        Some(Event::Key(key)) => {
            let is_control = key.modifiers.contains(KeyModifiers::CONTROL);
            matches!(key.code, KeyCode::Char('q') | KeyCode::Esc)
                || is_control && key.code == KeyCode::Char('c')
        }
        _ => false,
    })
}

fn add(adding: &mut Now, parts: &[Part]) {
    for part in parts {
        match part {
            Part::Interrupts(batch) => adding.interrupts(batch),
            Part::Samples(batch) => adding.samples(batch),
            _ => {}
        }
    }
}

/// An interval for people.
fn table(interval: &Interval, (begin, end): (&str, &'static str)) -> String {
    let Interval { cpus, length_ns, end_ns, counted } = interval;
    let heading = format!(
        "{}, last {}: {} events of CPUs so far, {} lost, smbscope used {} of a CPU\n",
        format::time(*end_ns),
        format::duration(*length_ns),
        format::count(counted.events),
        format::count(counted.lost),
        format::share(counted.share),
    );
    let right = ["User", "Kernel", "Softirq", "Irq", "Idle", "Packets/s"];
    let right = right.map(|title| Column { title: title.to_owned(), align: Align::Right });
    let column = |title: &str, align| Column { title: title.to_owned(), align };
    let mut columns = vec![column("CPU", Align::Right)];
    columns.extend(right);
    columns.push(column("Interrupts and softirqs", Align::Left));
    let cells: Vec<_> = cpus.iter().map(|cpu| cells(cpu, *length_ns)).collect();
    heading + &lines(&columns, &cells, (begin, end))
}

fn cells(cpu: &CpuNow, length_ns: i64) -> Vec<String> {
    let timed = |ns: i64| format::share(ns as f64 / length_ns.max(1) as f64);
    let sampled = |ns: Option<i64>| ns.map_or_else(String::new, timed);
    let names = cpu.names.iter().take(NAMES).filter(|(_, ns)| *ns > 0);
    let names: Vec<_> =
        names.map(|(name, ns)| format!("{} {}", format::sanitized(name), timed(*ns))).collect();
    let packets: u64 = cpu.polls.iter().map(|polls| polls.packets).sum();
    let polled = cpu.polls.first().filter(|polls| polls.packets > 0);
    let polled = polled.map_or_else(String::new, |polls| {
        let rate = numbers::rate(polls.packets, length_ns);
        format!("; {} packets/s of {}", rate, format::sanitized(&polls.device))
    });
    vec![
        cpu.cpu.to_string(),
        sampled(cpu.user_ns),
        sampled(cpu.kernel_ns),
        timed(cpu.deferred_ns),
        timed(cpu.interrupt_ns),
        sampled(cpu.idle_ns),
        if packets == 0 { String::new() } else { numbers::rate(packets, length_ns) },
        names.join(", ") + &polled,
    ]
}

/// An interval for programs.
fn object(interval: &Interval) -> Value {
    let cpus = interval.cpus.iter().map(|cpu| {
        let names = cpu.names.iter();
        let polls = cpu.polls.iter();
        json!({
            "cpu": cpu.cpu,
            "interrupt_ns": cpu.interrupt_ns,
            "deferred_ns": cpu.deferred_ns,
            "samples": { "all": cpu.samples, "user": cpu.user, "kernel": cpu.kernel, "idle": cpu.idle },
            "user_ns": cpu.user_ns,
            "kernel_ns": cpu.kernel_ns,
            "idle_ns": cpu.idle_ns,
            "names": names.map(|(name, ns)| json!({ "name": name, "exclusive_ns": ns })).collect::<Vec<_>>(),
            "polls": polls
                .map(|polls| json!({ "device": polls.device, "count": polls.count, "packets": polls.packets }))
                .collect::<Vec<_>>(),
        })
    });
    json!({
        "end_ns": interval.end_ns,
        "span_ns": interval.length_ns,
        "events": interval.counted.events,
        "lost": interval.counted.lost,
        "own_share": interval.counted.share,
        "cpus": cpus.collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use smbscope_analysis::processors::now::Polls;

    use super::*;

    fn interval() -> Interval {
        let cpu = CpuNow {
            cpu: 2,
            interrupt_ns: 10_000_000,
            deferred_ns: 900_000_000,
            samples: 100,
            user: 5,
            kernel: 4,
            idle: 0,
            user_ns: Some(50_000_000),
            kernel_ns: Some(40_000_000),
            idle_ns: Some(0),
            names: vec![("NET_RX".to_owned(), 890_000_000), ("eth0-rx-0".to_owned(), 10_000_000)],
            polls: vec![Polls { device: "eth0".to_owned(), count: 2000, packets: 128_000 }],
        };
        let quiet = CpuNow { cpu: 3, ..CpuNow::default() };
        let counted = Counted { events: 5000, lost: 7, share: 0.021 };
        Interval { cpus: vec![cpu, quiet], length_ns: 1_000_000_000, end_ns: 0, counted }
    }

    #[test]
    fn a_locked_processor_is_seen_with_what_holds_it() {
        let text = table(&interval(), ("", ""));
        let lines: Vec<_> = text.lines().collect();
        assert!(lines[0].contains("5,000 events of CPUs so far, 7 lost"), "{text}");
        assert!(lines[2].contains("90.0 %") && lines[2].contains("NET_RX 89.0 %"), "{text}");
        assert!(lines[2].ends_with("128,000 packets/s of eth0"), "{text}");
        // Without samples nothing is claimed.
        let quiet: Vec<_> = lines[3].split_whitespace().collect();
        assert_eq!(quiet[0], "3");
        assert!(!lines[3].contains("packets"), "{text}");
    }

    #[test]
    fn the_object_has_numbers() {
        let object = object(&interval());
        assert_eq!(object["cpus"][0]["deferred_ns"], 900_000_000);
        assert_eq!(object["cpus"][0]["polls"][0]["packets"], 128_000);
        assert_eq!(object["lost"], 7);
    }
}
