//! Counts what a recording of the running smbd has: `rows SECONDS [PORT]`.
#![allow(clippy::unwrap_used, missing_docs)]
use arrow::array::AsArray;
use arrow::datatypes::Int64Type;
use smbscope_event::part::Part;
use smbscope_probe::{find, loader, recording::Recording};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
#[derive(Default)]
struct Sums {
    n: u64,
    slices: u64,
    residual: Vec<i64>,
    sums: BTreeMap<&'static str, i64>,
    waits: u64,
}
const NAMES: [&str; 11] = [
    "queue_ns",
    "parse_ns",
    "processing_ns",
    "filesystem_ns",
    "io_wait_ns",
    "io_ns",
    "flush_ns",
    "lock_wait_ns",
    "crypto_in_ns",
    "crypto_out_ns",
    "send_ns",
];
fn take(parts: Vec<Part>, by: &mut BTreeMap<String, Sums>) {
    for part in parts {
        match part {
            Part::Operations(b) => {
                let command =
                    arrow::compute::cast(&b["command"], &arrow::datatypes::DataType::Utf8).unwrap();
                let turn = b["turnaround_ns"].as_primitive::<Int64Type>();
                for row in 0..b.num_rows() {
                    let c = command.as_string::<i32>();
                    let name = if c.is_valid(row) { c.value(row).to_owned() } else { "?".into() };
                    let s = by.entry(name).or_default();
                    s.n += 1;
                    let mut sum = 0;
                    let mut any = false;
                    for n in NAMES {
                        let col = b[n].as_primitive::<Int64Type>();
                        if col.is_valid(row) {
                            any = true;
                            sum += col.value(row);
                            *s.sums.entry(n).or_default() += col.value(row);
                        }
                    }
                    s.slices += u64::from(any);
                    if any && turn.is_valid(row) && turn.value(row) - sum < -20_000 && s.waits < 3 {
                        s.waits += 1;
                        let idx: Vec<usize> = [
                            "command",
                            "status_name",
                            "message_id",
                            "compound",
                            "compound_index",
                            "compound_size",
                            "request_end",
                            "pending_at",
                            "response_start",
                            "turnaround_ns",
                            "queue_ns",
                            "parse_ns",
                            "processing_ns",
                            "filesystem_ns",
                            "lock_wait_ns",
                            "send_ns",
                        ]
                        .iter()
                        .map(|n| b.schema().index_of(n).unwrap())
                        .collect();
                        println!(
                            "{}",
                            arrow::util::pretty::pretty_format_batches(&[b
                                .slice(row, 1)
                                .project(&idx)
                                .unwrap()])
                            .unwrap()
                        );
                    }
                    if any && turn.is_valid(row) {
                        s.residual.push(turn.value(row) - sum);
                    }
                }
            }
            Part::Coverage(c) => println!("{c:?}"),
            _ => {}
        }
    }
}
use arrow::array::Array as _;
fn main() {
    let args: Vec<String> = std::env::args().collect();
    let ports = args.get(2).map(|p| p.parse().unwrap()).into_iter().collect();
    let choice = find::Choice { ports, ..Default::default() };
    let load =
        loader::LoadOptions { system_calls: std::env::var("NOSYS").is_err(), ..Default::default() };
    let mut recording = Recording::begin("x", &choice, load, &Default::default()).unwrap();
    eprintln!("recording");
    let begin = Instant::now();
    let mut by = BTreeMap::new();
    while begin.elapsed() < Duration::from_secs_f64(args[1].parse().unwrap()) {
        let (parts, idle) = recording.poll().unwrap();
        take(parts, &mut by);
        if idle {
            std::thread::sleep(Duration::from_millis(20));
        }
    }
    let (parts, progress) = recording.end().unwrap();
    take(parts, &mut by);
    println!("{progress:?}");
    for (c, mut s) in by {
        s.residual.sort_unstable();
        let at =
            |q: f64| s.residual.get((s.residual.len() as f64 * q) as usize).copied().unwrap_or(0);
        let means: Vec<String> = s
            .sums
            .iter()
            .map(|(n, v)| {
                format!("{} {:.1}", n.trim_end_matches("_ns"), *v as f64 / s.n as f64 / 1000.0)
            })
            .collect();
        println!(
            "{c}: {} rows, {} with slices, residual p1 {} p50 {} p99 {} max {} us | {}",
            s.n,
            s.slices,
            at(0.01) / 1000,
            at(0.5) / 1000,
            at(0.99) / 1000,
            s.residual.last().unwrap_or(&0) / 1000,
            means.join(" ")
        );
    }
}
