//! Any bytes as the answer of a server about a DFS path, and as a krb5.conf; what is found is usable.
#![no_main]

use libfuzzer_sys::fuzz_target;
use smbscope_client::Target;
use smbscope_client::dfs::answer;
use smbscope_client::kerberos::krb5_conf::Krb5Conf;

const PATH: &str = r"\dfs\public\accounting\2026";

fuzz_target!(|bytes: &[u8]| {
    let place = Target::parse("//dfs/public/accounting/2026").expect("a target");
    if let Some(answer) = answer(&place, PATH, bytes) {
        assert!(!answer.targets.is_empty());
        assert!(answer.targets.iter().all(|target| !target.host.is_empty() && !target.share.is_empty()));
    }
    let mut conf = Krb5Conf::default();
    conf.add(&String::from_utf8_lossy(bytes));
    for kdc in conf.kdcs("LAB.TEST") {
        assert!(!kdc.host.is_empty());
    }
});
