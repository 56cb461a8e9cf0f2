//! Any bytes as an SMB1 message: every view, whatever the command.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| smbscope_fuzz::views::smb1(bytes));
