//! Any bytes as one frame of every link type.
#![no_main]

use libfuzzer_sys::fuzz_target;
use smbscope_capture::file::LinkType;
use smbscope_capture::frame::{FlowKey, dissect};

const LINKS: [LinkType; 11] = [
    LinkType::ETHERNET,
    LinkType::NULL,
    LinkType::LOOP,
    LinkType::RAW,
    LinkType::DLT_RAW,
    LinkType::DLT_RAW_OPENBSD,
    LinkType::LINUX_SLL,
    LinkType::LINUX_SLL2,
    LinkType::IPV4,
    LinkType::IPV6,
    LinkType(147),
];

fuzz_target!(|bytes: &[u8]| {
    let Some((&more, frame)) = bytes.split_first() else { return };
    let original = frame.len() as u32 + u32::from(more);
    for link in LINKS {
        let Ok(segment) = dissect(link, frame, original) else { continue };
        assert!(segment.payload.len() <= segment.payload_len as usize);
        assert!(segment.payload.len() <= frame.len());
        let (key, forward) = FlowKey::from_segment(&segment);
        let ends = [key.lower(), key.higher()];
        assert_eq!(ends[usize::from(!forward)].port(), segment.source_port);
        assert!(key.shard(3) < 3);
        let _ = (segment.mss(), segment.window_scale(), segment.timestamps());
        let _ = segment.options().count();
    }
});
