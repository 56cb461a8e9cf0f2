//! A client does not acknowledge the break of an oplock or lease (MS-SMB2 sections 3.2.5.19 and
//! 3.3.2.1): other opens of the file wait until the server gives up. The observation is
//! [`super::super::breaks`].

use smbscope_findings::{Actor, Confidence, KindInfo};

use super::super::breaks::Owed;
use super::super::candidate::Candidate;
use super::super::data::FindingKind;

pub(crate) const KIND: KindInfo = KindInfo::new("break-not-acknowledged", "oplock or lease break not acknowledged")
    .with_actor(Actor::Client)
    .with_remedies(&[
    (
        "client",
        "update its SMB client: a client must acknowledge a break although it waits for a reply on the same \
         connection; check that it is not suspended or cut off by a firewall",
    ),
    (
        "client",
        "until then let it request no oplocks and leases: Linux mount option cache=none or module parameter \
         enable_oplocks=0, Windows Set-SmbClientConfiguration -OplocksDisabled $true",
    ),
    ("Samba", "for such shares: oplocks = no, smb2 leases = no"),
    ("Windows", "Set-SmbShare -LeasingMode None for such shares"),
]);

/// Frames that the evidence names.
const FRAMES: usize = 5;

/// The breaks without an acknowledgement.
pub(crate) fn finish(mut owed: Owed) -> Candidate {
    owed.waits_ns.sort_unstable();
    let longest = owed.waits_ns.last().copied().unwrap_or(0) as f64;
    let shortest = owed.waits_ns.first().copied().unwrap_or(0) as f64;
    owed.holders.sort();
    owed.holders.dedup();
    if owed.breaks == 0 {
        owed.holders = vec!["not in the recording".to_owned()];
    }
    let frames: Vec<_> = owed.frames.iter().take(FRAMES).map(u64::to_string).collect();
    let in_frames = match frames.as_slice() {
        [] => String::new(),
        [one] => format!(" in frame {one}"),
        _ => format!(" in frames {}", frames.join(", ")),
    };
    let (what, confidence, because) = match owed.breaks {
        0 => (
            "Opens wait for as long as a server waits for the acknowledgement of an oplock or lease break: a client \
             outside this recording probably does not acknowledge it",
            Confidence::Possible,
            "the server answered STATUS_PENDING, and replied after the time after which servers give up (30 s Samba, \
             35 s Windows); the break itself is not in the recording"
                .to_owned(),
        ),
        breaks => (
            match owed.own {
                own if own == breaks => {
                    "A client does not acknowledge the break of its own oplock or lease, and waits itself until the \
                     server gives up"
                }
                _ => {
                    "A client does not acknowledge the break of its oplock or lease: others wait until the server \
                     gives up"
                }
            },
            Confidence::Measured,
            format!(
                "the server sent the break{in_frames}, and the recording contains no acknowledgement before the reply"
            ),
        ),
    };
    Candidate::new(FindingKind::BreakNotAcknowledged, what, owed.attribution, confidence, because)
        .of_events()
        .with_owner(Actor::Client, owed.holders)
        .with_figures([
            (
                "breaks_not_acknowledged",
                owed.breaks as f64,
                "",
                "breaks without an acknowledgement: {}",
            ),
            ("shortest_wait", shortest, "ns", "shortest wait {}"),
            ("longest_wait", longest, "ns", "longest wait {}"),
        ])
}
