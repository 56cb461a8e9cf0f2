//! Any bytes as files with symbols: a PDB file in both containers (as they are, and behind a good
//! signature), and text of /proc/kallsyms.
#![no_main]

use libfuzzer_sys::fuzz_target;
use smbscope_trace::symbols::{Functions, Identity, kernel_functions, pdb_functions};
use std::io::Cursor;

const MSF: &[u8] = b"Microsoft C/C++ MSF 7.00\r\n\x1aDS\0\0\0";
const MSFZ: &[u8] = b"Microsoft MSFZ Container\r\n\x1aALD\0\0";

fuzz_target!(|bytes: &[u8]| {
    pdb(bytes);
    for magic in [MSF, MSFZ] {
        let rest = bytes.get(magic.len()..).unwrap_or_default();
        pdb(&[magic, rest].concat());
    }
    let (functions, damaged) = kernel_functions(bytes).expect("memory can be read");
    assert!(damaged <= bytes.len() as u64);
    check(&functions);
});

fn pdb(bytes: &[u8]) {
    let wanted = Identity::parse("030201000504070608090A0B0C0D0E0F2").expect("a GUID and an age");
    if let Ok(Some(functions)) = pdb_functions(Cursor::new(bytes), &wanted) {
        check(&functions);
    }
}

fn check(functions: &Functions) {
    for address in (0..0x10_0000).step_by(0x1000).chain([u64::MAX, u64::MAX << 31]) {
        assert!(functions.find(address).is_none_or(|name| !name.is_empty()));
    }
}
