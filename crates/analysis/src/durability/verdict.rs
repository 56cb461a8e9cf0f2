//! The verdict on files that must survive a power failure, in one sentence, and the settings that make writes stable.
//!
//! Sources: New-SmbMapping and `net use /writethrough` (Windows 10 1809 and Windows Server 2019 or later), Set-SmbShare,
//! smb.conf(5) (strict sync, sync always, durable handles), mount.cifs(8) (cache, nostrictsync), and the kernel's
//! fs/smb/client/file.c, which opens with FILE_WRITE_THROUGH for O_SYNC and O_DSYNC.

use super::data::{DurabilityKind, OpenTally, Way};
use super::{Application, WAYS};
use smbscope_tables::readable;

/// What makes writes stable before they are acknowledged: the client or server, and the setting.
pub fn settings() -> [(&'static str, &'static str); 4] {
    [
        (
            "Windows client",
            "New-SmbMapping -LocalPath X: -RemotePath \\\\SERVER\\SHARE -UseWriteThrough $true, or net use X: \
             \\\\SERVER\\SHARE /writethrough",
        ),
        (
            "Windows server",
            "a continuously available share on a cluster: Set-SmbShare -Name SHARE -ContinuouslyAvailable $true",
        ),
        (
            "Samba",
            "strict sync = yes (the default since 4.7), so that a Flush or write-through write reaches the disk; sync \
             always = yes, so that every write does, whatever the client requests; durable handles = yes only lets a \
             client reconnect to its opens and makes no data stable",
        ),
        (
            "Linux client",
            "open with O_SYNC or O_DSYNC (each write is then write-through), or call fsync before close and do not mount \
             with nostrictsync; cache=none or cache=strict sends writes to the server sooner and makes none of them \
             stable",
        ),
    ]
}

/// Files of one kind; none if there are none.
pub(super) fn of_kind(
    kind: Application,
    ways: &[OpenTally; WAYS],
    (opens, without): (u64, u64),
) -> Option<DurabilityKind> {
    let (mut all, mut stable_opens) = (OpenTally::default(), 0);
    for (way, tally) in Way::ALL.into_iter().zip(ways) {
        all.add(tally);
        stable_opens += if way.is_stable() { tally.opens } else { 0 };
    }
    (all.opens > 0).then(|| DurabilityKind {
        application: kind.name(),
        tally: all,
        stable_opens,
        verdict: kind.is_precious().then(|| {
            let sentence = sentence(kind, &all, stable_opens, ways);
            match not_persistent(opens, without) {
                Some(more) => format!("{sentence}. {more}"),
                None => sentence,
            }
        }),
    })
}

/// The verdict on opens with data on continuously available shares to which no persistent handle was granted;
/// none if there are none.
pub(super) fn not_persistent(opens: u64, without: u64) -> Option<String> {
    (without > 0).then(|| {
        format!(
            "{} of {} with data on continuously available shares had no persistent handle: that what they write without \
             write-through is stable, only the share promises, and a server can be set to declare that without keeping it \
             (Samba). smbscope durability proves it",
            readable::count(without),
            match opens {
                1 => "1 open".to_owned(),
                many => format!("{} opens", readable::count(many)),
            }
        )
    })
}

fn sentence(
    kind: Application,
    all: &OpenTally,
    stable_opens: u64,
    ways: &[OpenTally; WAYS],
) -> String {
    let files = kind.files();
    let opens = match all.opens {
        1 => "1 open".to_owned(),
        many => format!("{} opens", readable::count(many)),
    };
    if stable_opens < all.opens {
        return format!(
            "{} of {opens} of {files} ended with {} that the server had acknowledged and nothing had made stable: a power \
             failure at the server may lose data that the client believes to be safe",
            readable::count(all.opens - stable_opens),
            readable::bytes(all.unflushed_bytes),
        );
    }
    let used = Way::ALL.into_iter().zip(ways).filter(|(_, tally)| tally.opens > 0);
    let used: Vec<_> = used.map(|(way, _)| way.title()).collect();
    let until = match all.acknowledged_bytes {
        0 => String::new(),
        _ => " (until the Flush, acknowledged data was at risk)".to_owned(),
    };
    format!(
        "All {opens} of {files} had their data stable before the Close: {}{until}",
        used.join(", ")
    )
}
