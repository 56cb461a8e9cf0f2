//! `tests/traces/flood.etl`, which tests of commands read: it is what the builder makes.
//! `SMBSCOPE_BLESS=1 cargo test -p smbscope-trace --test etl` writes it again.

use super::{duration_ns, interrupts, read};
use smbscope_testing::etl::{Builder, Compression};
use smbscope_trace::event::Kind;
use std::path::Path;

const KERNEL: u64 = 0xffff_f800_0000_0000;
const NDIS: u64 = 0xffff_f800_1000_0000;
const NIC: u64 = 0xffff_f800_2000_0000;
/// 10 ms on the default clock.
const LENGTH: i64 = 100_000;

/// A server whose CPU 0 spends its time in long DPCs of ndis.sys, while CPU 1 is almost idle.
fn flood() -> Vec<u8> {
    let mut builder = Builder {
        cpus: 2,
        compression: Compression::Xpress,
        buffer_bytes: 1_024,
        ..Builder::default()
    };
    let start = builder.start_ticks;
    let mut rundown = builder.buffer(1);
    for (base, path, pdb) in [
        (KERNEL, r"\SystemRoot\system32\ntoskrnl.exe", "ntkrnlmp.pdb"),
        (NDIS, r"\SystemRoot\System32\drivers\ndis.sys", "ndis.pdb"),
        (NIC, r"\SystemRoot\System32\drivers\nic.sys", "nic.pdb"),
    ] {
        rundown.symbols(start + LENGTH, base, 0, pdb);
        rundown.image((20, 4), start + LENGTH, base, 4, path);
    }
    let mut flooded = builder.buffer(0);
    let mut idle = builder.buffer(1);
    idle.perfinfo(15, 73, start, &[[0; 4], 10_000_u32.to_le_bytes(), [0; 4]].concat());
    flooded.switch(start + 1, 8, 0, 5);
    idle.switch(start + 1, 8, 0, 5);
    for number in 0..40 {
        // An ISR of 2 us, then a DPC of 150 us or 225 us.
        let at = start + 2_500 * number;
        let length = if number % 4 == 0 { 1_500 } else { 2_250 };
        flooded.run(50, at + 10, at + 30, NIC + 0x40, &[1, 97, 0, 0, 3, 0, 0, 0]);
        flooded.run(68, at + 30, at + 30 + length, NDIS + 0x100, &[]);
        if number % 4 == 0 {
            flooded.sample(at + 1_540, NDIS + 0x180, 0, 1);
            flooded.stack(
                32,
                at + 1_541,
                at + 1_540,
                0,
                &[NDIS + 0x180, NIC + 0x900, KERNEL + 0x77],
            );
            idle.sample(at + 1_540, KERNEL + 0x10, 0, 0);
            idle.run(69, at + 1_600, at + 1_620, KERNEL + 0x200, &[]);
        }
    }
    builder.add(rundown);
    builder.add(idle);
    builder.add(flooded);
    builder.build()
}

#[test]
fn the_fixture_is_what_the_builder_makes() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/traces/flood.etl");
    let made = flood();
    if std::env::var_os("SMBSCOPE_BLESS").is_some() {
        std::fs::write(&path, &made).unwrap();
    }
    let stored = std::fs::read(&path).unwrap();
    assert!(stored == made, "{} differs from what the builder makes", path.display());
    let (events, log) = read(&stored).unwrap();
    let dpcs: Vec<i64> =
        interrupts(&events).filter(|it| it.kind == Kind::Dpc).map(duration_ns).collect();
    assert_eq!((dpcs.len(), dpcs.iter().sum::<i64>()), (40, 10 * 150_000 + 30 * 225_000));
    assert_eq!(log.coverage.damaged, 0);
}
