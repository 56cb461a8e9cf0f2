//! Any bytes as the replies of a KDC and of a server to a Kerberos logon.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    runtime.block_on(smbscope_client::kerberos::try_replies(bytes));
});
