//! Any bytes as a calibration and as a profile of `predict`.
#![no_main]

use std::hint::black_box;

use libfuzzer_sys::fuzz_target;
use smbscope_analysis::predict::crypto::Calibration;
use smbscope_tables::profile::Profile;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(calibration) = serde_json::from_slice::<Calibration>(bytes) {
        black_box(calibration.wrong());
    }
    if let Ok(profile) = serde_json::from_slice::<Profile>(bytes) {
        black_box(profile.wrong());
    }
});
