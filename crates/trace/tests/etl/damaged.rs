//! Damaged logs end with coverage: never with a panic, a hang or a large allocation.

use super::{Log, interrupts, read};
use proptest::prelude::*;
use smbscope_testing::etl::{Builder, Compression};
use smbscope_trace::event::Event;

const T: i64 = 1_000_000;
/// DPCs of the sample log, which has this many in each of its buffers.
const PER_BUFFER: usize = 12;

fn log(compression: Compression) -> Vec<u8> {
    let mut builder = Builder { compression, buffer_bytes: 1_024, ..Builder::default() };
    for number in 0..4 {
        let mut buffer = builder.buffer(number % 2);
        buffer.stack_entry(36, T + i64::from(number), 0xaa, &[1, 2, 3]);
        buffer.image((20, 3), T + i64::from(number), 0x1000, 4, r"\a\b.sys");
        for step in 0..PER_BUFFER as i64 {
            let end = T + 1_000 * i64::from(number) + 10 * step;
            buffer.run(68, end - 4, end, 1, &[]);
        }
        builder.add(buffer);
    }
    builder.build()
}

/// What holds for every input.
fn check(bytes: &[u8]) -> Option<(Vec<Event>, Log)> {
    let (events, log) = read(bytes).ok()?;
    // Every event is in the file: nothing comes from a length alone, except CPUs.
    let others = events.iter().filter(|event| !matches!(event, Event::Cpu(_))).count();
    assert!(others <= 2 * bytes.len().max(1));
    assert!(log.coverage.read_bytes <= bytes.len() as u64);
    Some((events, log))
}

#[test]
fn a_log_that_is_cut_keeps_the_events_before_the_cut() {
    for compression in [Compression::None, Compression::Xpress, Compression::XpressHuffman] {
        let whole = log(compression);
        let (all, _) = check(&whole).unwrap();
        assert_eq!(interrupts(&all).count(), 4 * PER_BUFFER);
        let mut before = 0;
        // Compressed buffers are cut at a third of their bytes only, to save time.
        let step = if compression == Compression::None { 1 } else { 3 };
        for cut in (0..whole.len()).step_by(step) {
            let Some((events, log)) = check(&whole[..cut]) else {
                assert!(cut < 1_024, "the header of the log is there: {cut}");
                continue;
            };
            let count = interrupts(&events).count();
            assert!(count >= before, "more bytes, more events");
            before = count;
            if count < interrupts(&all).count() {
                // What ends between two buffers cannot be recognised by itself.
                let is_between = log.coverage.damaged == 0;
                assert!(
                    !is_between || count.is_multiple_of(PER_BUFFER),
                    "{cut} of {}",
                    whole.len()
                );
            }
        }
    }
}

/// Each bit of a time that is worth more than minutes, at the beginning, in the middle and at the end of buffers.
#[test]
fn a_damaged_time_does_not_stretch_the_log() {
    let whole = log(Compression::None);
    let (all, before) = check(&whole).unwrap();
    for number in 0..4_i64 {
        for step in [0, 5, PER_BUFFER as i64 - 1] {
            let end = T + 1_000 * number + 10 * step;
            for time in [end - 4, end] {
                let mut places = whole.windows(8).enumerate();
                let place = places.rfind(|(_, bytes)| *bytes == time.to_le_bytes());
                let at = place.unwrap().0;
                for bit in 32..64 {
                    let mut changed = whole.clone();
                    changed[at + bit / 8] ^= 1 << (bit % 8);
                    let (events, log) = check(&changed).unwrap();
                    let times = |log: &Log| (log.coverage.start_ns, log.coverage.end_ns);
                    let ends_before = before.coverage.end_ns;
                    // The last event of the log may be the damaged one.
                    assert!(log.coverage.end_ns <= ends_before, "{number} {step} {bit}");
                    assert_eq!(times(&log).0, times(&before).0, "{number} {step} {bit}");
                    assert_eq!(log.coverage.damaged, 1, "{number} {step} {bit}");
                    assert_eq!(interrupts(&events).count(), interrupts(&all).count() - 1);
                }
            }
        }
    }
}

#[test]
fn a_damaged_buffer_does_not_hide_the_next_one() {
    let mut bytes = log(Compression::None);
    // The first record of the second buffer, and the header of the third.
    bytes[2 * 1_024 + 72..2 * 1_024 + 80].fill(0);
    bytes[3 * 1_024..3 * 1_024 + 4].fill(0xff);
    let (events, log) = check(&bytes).unwrap();
    assert_eq!(interrupts(&events).count(), 2 * PER_BUFFER);
    assert_eq!(log.coverage.damaged, 2);
    assert_eq!(log.coverage.first_damaged.as_deref(), Some("the buffer at byte 2048"));
}

#[test]
fn what_is_not_a_log_is_refused() {
    let whole = log(Compression::None);
    assert!(read(&[]).is_err());
    assert!(read(&[0; 8_192]).is_err());
    assert!(read(&whole[1_024..]).is_err(), "the first buffer is missing");
    let mut other = whole.clone();
    other[72 + 6] = 1;
    let error = read(&other).err().map(|error| error.to_string());
    let expected = "not an event trace log (.etl): the first buffer has no TRACE_LOGFILE_HEADER";
    assert_eq!(error.as_deref(), Some(expected));
}

#[test]
fn lengths_of_a_forged_file_allocate_nothing() {
    // Many CPUs, each with a buffer that claims 16 MiB and decompresses to nothing.
    let mut bytes = log(Compression::Xpress);
    let mut buffer = bytes[1_024..1_024 + 72].to_vec();
    buffer[0..4].copy_from_slice(&80_u32.to_le_bytes());
    buffer[4..8].copy_from_slice(&(16_u32 << 20).to_le_bytes());
    for cpu in 0..20_000_u16 {
        buffer[40..42].copy_from_slice(&cpu.to_le_bytes());
        bytes.extend(&buffer);
        bytes.extend([0; 8]);
    }
    let (_, log) = check(&bytes).unwrap();
    assert_eq!(log.buffers_damaged, 20_000);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn any_bytes_changed_end_with_coverage(
        compression in prop::sample::select(&[
            Compression::None, Compression::Xpress, Compression::XpressHuffman, Compression::Lznt1,
        ]),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..40),
        cut in any::<prop::sample::Index>(),
    ) {
        let mut bytes = log(compression);
        for (index, value) in changes {
            // Rarely in the first buffer, whose header is needed for everything.
            let at = index.index(bytes.len());
            if at >= 600 || value < 16 {
                bytes[at] = value;
            }
        }
        check(&bytes);
        bytes.truncate(cut.index(bytes.len()));
        check(&bytes);
    }

    #[test]
    fn any_bytes_behind_the_header_end_with_coverage(tail in prop::collection::vec(any::<u8>(), 0..4_000)) {
        let mut bytes = log(Compression::None);
        bytes.truncate(1_024);
        bytes.extend(&tail);
        prop_assert!(check(&bytes).is_some());
    }
}
