//! Any bytes as a pasted output, a bundle of a machine (JSON or tar), and files of a tar that is not damaged.
#![no_main]

use std::hint::black_box;

use libfuzzer_sys::fuzz_target;
use smbscope_plan::cores::bundle::{read_bytes, tar};
use smbscope_plan::cores::findings;

/// Files of Linux that a reader parses; the bytes are one of them, by the first byte.
const FILES: [&str; 8] = [
    "sys/devices/system/cpu/online",
    "sys/devices/system/node/node0/cpulist",
    "sys/class/net/a/device/uevent",
    "sys/class/net/a/queues/rx-0/rps_cpus",
    "proc/interrupts",
    "proc/net/softnet_stat",
    "smbscope/irqbalance",
    "ethtool/a.json",
];

fuzz_target!(|bytes: &[u8]| {
    check(bytes);
    let Some((first, contents)) = bytes.split_first() else { return };
    let mut archive = tar::Writer::default();
    for (position, path) in FILES.into_iter().enumerate() {
        let is_fuzzed = position == usize::from(*first) % FILES.len();
        let usual: &[u8] = if position < 2 { b"0" } else { b"DRIVER=a" };
        // Usual contents only where the reader needs the file to get further.
        if is_fuzzed || position < 3 {
            archive
                .add(path, Some(if is_fuzzed { contents } else { usual }))
                .expect("the path is short");
        }
    }
    archive.add("sys/devices/system/cpu/cpu0", None).expect("the path is short");
    check(&archive.finish());
});

fn check(bytes: &[u8]) {
    if let Ok(bundle) = read_bytes(bytes) {
        black_box(findings::find(&bundle.machine));
    }
}
