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

/// Where the server breaks what it may not grant.
const OF_SERVER: [(&str, &str); 2] = [
    (
        "server",
        "update it: it grants an oplock for an open of a directory and breaks it, which no client can acknowledge (MS-SMB2 section \
         3.3.5.9: directories have leases of version 2 only)",
    ),
    ("server", "until then no oplocks for that share: Samba oplocks = no, ksmbd oplocks = no"),
];
pub(crate) const RAISE: (&str, &str) = (
    "server",
    "raise the limit: Windows HKLM\\SYSTEM\\CurrentControlSet\\Services\\LanmanServer\\Parameters, MaxMpxCt (50 by default); Samba \
     max mux = 100 or more",
);
/// Where it is high already.
pub(crate) const RAISE_MORE: (&str, &str) = (
    "server",
    "the limit is above the defaults already (Windows MaxMpxCt, Samba max mux): raise it again only if these clients need it",
);
/// Where the client has no request left.
const OF_LIMIT: [(&str, &str); 3] = [
    RAISE,
    (
        "client",
        "let fewer requests wait: programs that watch many folders keep one ChangeNotify outstanding for each",
    ),
    ("client", "use SMB2 or later, where an acknowledgement needs no free request of that limit"),
];

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
    let is_of_directory = owed.of_directories > 0 && owed.of_directories * 2 > owed.breaks;
    let is_full = owed.full > 0 && owed.full * 2 > owed.breaks;
    let limit = owed.limit;
    let (what, because) = if is_of_directory {
        (
            "The server breaks the oplock of an open directory, which no client can acknowledge, and lets the next open wait until it gives up"
                .to_owned(),
            format!(
                "directories have no oplocks, only leases of version 2, and the opens had none; {because}"
            ),
        )
    } else if is_full {
        (
            format!(
                "The client cannot acknowledge the break of its oplock: it has {limit} requests outstanding, and the server allows no more \
                 (MaxMpxCount)"
            ),
            format!("its own request waits with all others that it may have outstanding; {because}"),
        )
    } else {
        (what.to_owned(), because)
    };
    let candidate =
        Candidate::new(FindingKind::BreakNotAcknowledged, what, owed.attribution, confidence, because);
    let candidate = if is_of_directory {
        candidate.with_owner(Actor::Server, Vec::new()).with_remedies(&OF_SERVER)
    } else if is_full {
        candidate.with_owner(Actor::Client, owed.holders).with_remedies(&OF_LIMIT)
    } else {
        candidate.with_owner(Actor::Client, owed.holders)
    };
    candidate
        .of_events()
        .broken()
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
