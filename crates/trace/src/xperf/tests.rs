//! The layout of the text (tests/traces/dpcisr.txt, with numbers that are made up), whole and cut.

use super::*;

const TEXT: &str = include_str!("../../../../tests/traces/dpcisr.txt");

fn read(text: &str) -> (Vec<Total>, Vec<u32>, Coverage) {
    let mut reader = Text::new(text.as_bytes());
    let (mut totals, mut cpus) = (Vec::new(), Vec::new());
    let mut sink = |event| match event {
        Event::Total(total) => totals.push(total),
        Event::Cpu(cpu) => cpus.push(cpu.cpu),
        other => panic!("{other:?}"),
    };
    while reader.step(&mut sink).unwrap() {}
    let coverage = reader.coverage();
    (totals, cpus, coverage)
}

#[test]
fn every_part_of_the_text_becomes_sums() {
    assert!(is_text(TEXT) && !is_text("DPC Info\n"));
    let (totals, cpus, coverage) = read(TEXT);
    assert_eq!((cpus, coverage.damaged), (vec![0, 1], 0), "{:?}", coverage.first_damaged);
    assert_eq!((coverage.start_ns, coverage.end_ns), (Some(0), Some(2_000_000_000)));
    assert_eq!((coverage.format.as_str(), coverage.events), ("xperf -a dpcisr", 12));
    assert_eq!(coverage.read_bytes, TEXT.len() as u64);
    let modules: Vec<_> = totals
        .iter()
        .filter(|it| it.name.is_some() && it.count.is_none())
        .map(|it| (it.kind, it.name.as_deref().unwrap(), it.cpu.unwrap(), it.duration_ns.unwrap()))
        .collect();
    assert_eq!(
        modules,
        [
            (Kind::Dpc, "ndis.sys", 0, 1_200_000_000),
            (Kind::Dpc, "Unknown", 0, 100_000),
            (Kind::Dpc, "Unknown", 1, 50_000),
            (Kind::Isr, "nic.sys", 0, 3_000_000),
        ]
    );
    let buckets: Vec<_> = totals
        .iter()
        .filter_map(|it| Some((it.name.as_deref(), it.above_ns?, it.up_to_ns, it.count?)))
        .collect();
    assert_eq!(
        buckets,
        [
            (None, 8_000, Some(16_000), 2),
            (None, 128_000, Some(256_000), 5_000),
            (Some("ndis.sys"), 128_000, Some(256_000), 4_998),
            (Some("ndis.sys"), 2_048_000, None, 2),
            (None, 2_000, Some(4_000), 1_000),
        ]
    );
    let intervals: Vec<_> = totals
        .iter()
        .filter(|it| it.name.is_none() && it.count.is_none())
        .map(|it| (it.cpu.unwrap(), it.start_ns, it.end_ns, it.duration_ns.unwrap()))
        .collect();
    let second = 1_000_000_000;
    assert_eq!(
        intervals,
        [(0, 0, second, 990_000_000), (1, 0, second, 50_000), (0, second, 2 * second, 210_100_000),]
    );
}

/// The beginning of pastebin.com/aKFWZ6wM as people post it, with its blanks collapsed.
#[test]
fn a_text_whose_blanks_were_lost_is_read() {
    let text = "DPC Info\nCPU Usage Summing By Module For the Whole Trace\n\
        CPU Usage from 0 us to 561853390 us:\n\
        CPU 0 Usage, CPU 1 Usage, CPU 2 Usage, CPU 3 Usage,\n\
        usec %, usec %, usec %, usec %, Module\n\
        284 0.00, 186 0.00, 278 0.00, 1118 0.00, CLASSPNP.SYS\n\
        7021706 1.25, 1869641 0.33, 0 0.00, 0 0.00, Wdf01000.sys\n";
    assert!(is_text(text));
    let (totals, cpus, coverage) = read(text);
    assert_eq!((totals.len(), cpus.len(), coverage.damaged), (6, 4, 0));
    assert_eq!(totals[4].duration_ns, Some(7_021_706_000));
}

#[test]
fn lines_that_do_not_fit_and_missing_ones_are_counted() {
    let without = TEXT.replace("4998, or", "4997, or");
    let (_, _, coverage) = read(&without);
    assert_eq!(coverage.damaged, 1);
    let first = coverage.first_damaged.unwrap();
    assert!(first.ends_with("durations of ndis.sys: 4999 instead of 5000"), "{first}");
    let (totals, _, coverage) = read(&TEXT.replace("1200000  60.00,", "1200000,"));
    assert_eq!((totals.len(), coverage.damaged), (11, 1));
    for cut in (0..TEXT.len()).filter(|&cut| TEXT.is_char_boundary(cut)) {
        let (totals, _, coverage) = read(&TEXT[..cut]);
        assert!(totals.len() <= 12 && coverage.damaged <= 2);
    }
}
