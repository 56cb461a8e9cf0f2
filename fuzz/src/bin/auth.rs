//! Any bytes as a security blob and as a DFS referral.
#![no_main]

use std::hint::black_box;

use libfuzzer_sys::fuzz_target;
use smbscope_wire::{auth, dfs};

fuzz_target!(|bytes: &[u8]| {
    let blob = auth::inspect(bytes);
    black_box((blob.account(), blob.service(), format!("{blob:?}")));
    for mechanism in blob.offered {
        black_box((mechanism.name(), mechanism.to_string(), mechanism.is_kerberos()));
    }
    if let Some(message) = blob.ntlmssp {
        black_box((message.kind(), message.flags(), message.version()));
        black_box((message.domain(), message.user(), message.workstation()));
        black_box((message.is_anonymous(), message.is_ntlm_v2(), message.target_name()));
        for pair in message.target_info() {
            black_box(message.target_attribute(pair.id));
        }
    }
    for request in [dfs::Request::new(bytes), dfs::Request::new_extended(bytes)] {
        black_box((request.max_referral_level(), request.path(), request.site_name()));
    }
    let response = dfs::Response::new(bytes);
    black_box((response.path_consumed(), response.referral_count(), response.flags()));
    for referral in response.referrals() {
        black_box((referral.version(), referral.server_type(), referral.flags()));
        black_box((referral.dfs_path(), referral.alternate_path(), referral.network_address()));
        black_box((referral.special_name(), referral.service_site_guid()));
        black_box((referral.time_to_live_s(), referral.expanded_names().count()));
    }
});
