//! Any bytes as each file of /proc that is sampled; the first byte chooses.
#![no_main]

use libfuzzer_sys::fuzz_target;
use smbscope_counters::proc::{machine, process};

fuzz_target!(|bytes: &[u8]| {
    let Some((choice, rest)) = bytes.split_first() else { return };
    let text = String::from_utf8_lossy(rest);
    let mut out = Vec::new();
    match choice % 10 {
        0 => machine::stat(&text, &mut out),
        1 => machine::schedstat(&text, &mut out),
        2 => machine::loadavg(&text, &mut out),
        3 => machine::diskstats(&text, |name| !name.ends_with('1'), &mut out),
        4 => machine::net_dev(&text, &mut out),
        5 => machine::net_snmp(&text, &mut out),
        6 => machine::meminfo(&text, &mut out),
        7 => machine::file_nr(&text, &mut out),
        8 => machine::pressure("cpu", &text, &mut out),
        _ => drop(process::parse(&text)),
    }
    assert!(out.iter().all(|reading| reading.value.is_finite()), "a reading is a number");
});
