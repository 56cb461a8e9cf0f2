//! Prints rows of the running smbd: `rows SECONDS [PORT]`.
#![allow(clippy::unwrap_used)]
use std::time::{Duration, Instant};
use arrow::util::pretty::pretty_format_batches;
use smbscope_event::part::Part;
use smbscope_probe::{find, loader, recording::Recording};
fn show(parts: Vec<Part>) {
    for part in parts { match part { Part::Operations(b) => {
        let names = ["command","path","status_name","compound_index","request_end","turnaround_ns","queue_ns","parse_ns","processing_ns","filesystem_ns","io_wait_ns","io_ns","lock_wait_ns","crypto_in_ns","crypto_out_ns","send_ns","encrypted","request_wire_bytes","response_wire_bytes"];
        let idx: Vec<usize> = names.iter().map(|n| b.schema().index_of(n).unwrap()).collect();
        println!("{}", pretty_format_batches(&[b.project(&idx).unwrap()]).unwrap());
    } Part::Handles(h) => println!("handles {}", h.len()), Part::Connections(c) => println!("{c:?}"), Part::Coverage(c) => println!("{c:?}"), _ => {} } }
}
fn main() {
    let args: Vec<String> = std::env::args().collect();
    let ports = args.get(2).map(|p| p.parse().unwrap()).into_iter().collect();
    let choice = find::Choice { ports, ..Default::default() };
    let mut recording = Recording::begin("x", &choice, loader::LoadOptions::default(), &Default::default()).unwrap();
    let begin = Instant::now();
    while begin.elapsed() < Duration::from_secs(args[1].parse().unwrap()) {
        let (parts, idle) = recording.poll().unwrap();
        show(parts);
        if idle { std::thread::sleep(Duration::from_millis(20)); }
    }
    println!("{:?}", recording.progress());
    show(recording.end().unwrap());
}
