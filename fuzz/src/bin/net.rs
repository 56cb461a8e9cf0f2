//! Any bytes as each message of `smbscope net`: handshake, control messages, results of an iperf3 server, the
//! kernel's `tcp_info`.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    smbscope_load::net::parse_any(bytes);
});
