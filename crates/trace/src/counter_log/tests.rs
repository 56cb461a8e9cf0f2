//! Counter logs: what typeperf and logman write, time zones, and damage.

use super::*;

fn read(text: &str) -> (Vec<Counter>, Coverages, Coverage) {
    let mut reader = Reader::new(io::Cursor::new(text.as_bytes()), "r");
    while reader.step(&mut |_| {}).unwrap() {}
    let (mut rows, mut coverage) = (Vec::new(), None);
    for part in reader.take_parts() {
        match part {
            Part::Counters(more) => rows.extend(more),
            Part::Coverage(one) => coverage = Some(*one),
            _ => {}
        }
    }
    (rows, coverage.unwrap(), reader.coverage())
}

#[test]
fn what_typeperf_prints_is_read() {
    let text = "\r\n\"(PDH-CSV 4.0)\",\"\\\\FS1\\Processor(_Total)\\% Processor Time\",\"\\\\FS1\\SMB Server\\Read Bytes/sec\"\r\n\
        \"09/22/2026 21:42:32.824\",\"12.5\",\" \"\r\n\
        \"09/22/2026 21:42:33.824\",\"25.000000\",\"1048576.000000\"\r\n\
        Exiting, please wait...                         \r\nThe command completed successfully.\r\n\r\r";
    assert!(is_counter_log(text));
    let (rows, coverages, coverage) = read(text);
    let found: Vec<_> = rows.iter().map(|row| (row.name.as_str(), row.value)).collect();
    let expected = [
        ("cpu_percent", 12.5),
        ("cpu_percent", 25.0),
        ("windows_smb_server_read_bytes_per_second", 1_048_576.0),
    ];
    assert_eq!(found, expected);
    // date -u -d '2026-09-22 21:42:32.824' +%s%3N
    assert_eq!((rows[0].time, rows[0].source.as_str()), (1_790_113_352_824_000_000, "server"));
    assert_eq!((coverage.damaged, coverage.events), (0, 3));
    let notes = coverages.notes.unwrap();
    assert!(notes.contains("taken for UTC") && notes.contains("1 values are missing"), "{notes}");
}

#[test]
fn local_times_become_utc() {
    let log = |zone: &str| {
        format!(
            "\u{feff}\"(PDH-TSV 4.0) {zone}\"\t\"\\\\A\\Memory\\Cache Bytes\"\n\"03/01/2024 00:30:00.5\"\t\"7\"\n"
        )
    };
    let utc = log("(UTC)(0)");
    assert!(is_counter_log(&utc));
    // date -u -d '2024-03-01 00:30:00.5' +%s%3N
    assert_eq!(read(&utc).0[0].time, 1_709_253_000_500_000_000);
    let berlin = read(&log("(W. Europe Standard Time)(-60)"));
    assert_eq!(berlin.0[0].time, 1_709_253_000_500_000_000 - 3_600_000_000_000);
    assert!(!berlin.1.notes.unwrap().contains("UTC"));
}

#[test]
fn damaged_lines_are_counted_and_others_stay() {
    let head = "\"(PDH-CSV 4.0) (UTC)(0)\",\"\\\\A\\Memory\\Cache Bytes\"\n";
    for line in ["\"13/01/2024 00:30:00.5\",\"7\"", "\"x\"", "\"03/01/2024\",\"7\"", "\"\",\"\",\""]
    {
        let text = format!("{head}{line}\n\"03/01/2024 00:30:01.5\",\"8\"\n");
        let (rows, coverages, _) = read(&text);
        assert_eq!((rows.len(), coverages.messages_malformed), (1, 1), "{line}");
        assert!(coverages.cut_off.unwrap().starts_with("line 2: no time"), "{line}");
    }
    for none in ["", "(PDH-CSV 4.0", "a,b\n\"(PDH-CSV 4.0)\"", "time,value\n"] {
        assert!(!is_counter_log(none), "{none}");
        let (rows, ..) = read(none);
        assert!(rows.is_empty());
    }
    // Seconds that are too many nanoseconds.
    let head = "\"(PDH-CSV 4.0) (UTC)(0)\",\"\\\\A\\PhysicalDisk(0)\\Avg. Disk sec/Read\"\n";
    let (rows, ..) = read(&format!("{head}\"03/01/2024 00:30:01.5\",\"1e305\"\n"));
    assert!(rows.is_empty());
    assert!(read("nothing\n").1.cut_off.unwrap().contains("no names of counters"));
}

/// Where Windows writes a comma before the fraction, all values have it.
#[test]
fn decimal_commas_are_read_where_all_values_have_them() {
    let head = "\"(PDH-CSV 4.0) (UTC)(0)\",\"\\\\A\\Memory\\Cache Bytes\",\"\\\\A\\Memory\\Cache Faults/sec\"\n";
    let line = |second: u32, a: &str, b: &str| {
        format!("\"03/01/2024 00:30:0{second}.5\",\"{a}\",\"{b}\"\n")
    };
    let values = |text: &str| {
        let (rows, coverages, _) = read(text);
        let values: Vec<_> = rows.iter().map(|row| row.value).collect();
        (values, coverages.messages_malformed, coverages.cut_off)
    };
    let commas = format!("{head}{}{}", line(1, "7,250000", "1,5"), line(2, " ", "3"));
    assert_eq!(values(&commas), (vec![7.25, 1.5, 3.0], 0, None));
    // What such a comma means is not known: the value is counted as damage.
    let mixed = format!("{head}{}{}", line(1, "7.5", "1,500"), line(2, "8.5", "x"));
    let (found, damaged, first) = values(&mixed);
    assert_eq!((found, damaged), (vec![7.5, 8.5], 2));
    assert_eq!(first.as_deref(), Some("line 2: `1,500` is not a number"));
}
