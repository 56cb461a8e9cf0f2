//! How fast a trace becomes rows: events for each CPU second, and the most memory, of one file. With `operations`,
//! packets and events of SMB become operations.
//!
//!     cargo run --release -p smbscope-trace --example rows_speed TRACE [operations | ROWS_OF_A_BATCH]

use std::path::Path;
use std::time::Instant;

use smbscope_tables::Part;
use smbscope_trace::{HEAD_BYTES, Reader, Symbols, Wanted, recognise, recognise_folder};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).ok_or("usage: rows_speed TRACE")?;
    let path = Path::new(&path);
    let format = if path.is_dir() {
        recognise_folder(path).map(|(format, _)| format)
    } else {
        let mut head = vec![0; HEAD_BYTES];
        let read = std::io::Read::read(&mut std::fs::File::open(path)?, &mut head)?;
        recognise(head.get(..read).unwrap_or(&head))
    };
    let format = format.ok_or("this is not a trace")?;
    let begin = Instant::now();
    let choice = std::env::args().nth(2).unwrap_or_default();
    let mut wanted = Wanted::PROCESSORS;
    if choice == "operations" {
        let tables =
            smbscope_capture::Tables { operations: true, ..smbscope_capture::Tables::NONE };
        let options = smbscope_capture::Options { tables, ..smbscope_capture::Options::default() };
        wanted = Wanted { processors: false, operations: Some(options), companion: None };
    }
    let rows = choice.parse().unwrap_or(8_192);
    let mut reader = Reader::open_as(path, "trace", format, &Symbols::default(), rows, wanted)?;
    let (mut events, mut rows) = (0, 0);
    while let Some(part) = reader.next_part()? {
        match &part {
            Part::Traces(traces) => events += traces.iter().map(|trace| trace.events).sum::<u64>(),
            Part::Interrupts(batch) | Part::Samples(batch) | Part::Switches(batch) => {
                rows += batch.num_rows();
            }
            Part::Operations(batch) => rows += batch.num_rows(),
            Part::Coverage(coverage) => events += coverage.frames.max(coverage.messages),
            _ => {}
        }
    }
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let most = status.lines().find(|line| line.starts_with("VmHWM")).unwrap_or_default();
    let stat = std::fs::read_to_string("/proc/self/schedstat").unwrap_or_default();
    let cpu_ns: f64 = stat.split(' ').next().unwrap_or_default().parse().unwrap_or(f64::NAN);
    println!(
        "{events} events, {rows} rows, {:.2} s, {:.2} CPU s, {:.2} million events/CPU s, {most}",
        begin.elapsed().as_secs_f64(),
        cpu_ns / 1e9,
        events as f64 / cpu_ns * 1e3
    );
    Ok(())
}
