//! Collected caches of clients: any text is read to the end, and judged.

#![no_main]

use libfuzzer_sys::fuzz_target;
use smbscope_plan::namespace::gate::collected::read;
use smbscope_plan::namespace::model::{CachedReferral, CachedTarget, ClientCache};

fuzz_target!(|bytes: &[u8]| {
    let text = String::from_utf8_lossy(bytes);
    let all = read(&text, "PC", |inner| {
        let target =
            |line: &str| CachedTarget { server: line.to_owned(), ..CachedTarget::default() };
        let referral = |line: &str| CachedReferral {
            entry: line.to_owned(),
            targets: line.split(' ').map(target).collect(),
            ..CachedReferral::default()
        };
        if inner.len() % 7 == 0 {
            return Err(inner.to_owned());
        }
        Ok(ClientCache {
            referrals: inner.lines().map(referral).collect(),
            ..ClientCache::default()
        })
    });
    assert!(all.caches.len() <= text.lines().count().max(1));
});
