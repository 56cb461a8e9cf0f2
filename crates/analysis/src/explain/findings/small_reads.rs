//! Reads go one at a time in blocks so small that the round trip counts more than the bytes. The
//! observation is [`super::super::sequential_blocks`].

use smbscope_findings::{Actor, KindInfo};

pub(crate) const WHAT: &str = "Reads go one at a time, in small blocks: the client sends each after the \
    reply to the one before, so that each round trip moves one block, however fast the network is";

pub(crate) const CLIENT: (&str, &str) = (
    "client",
    "keep several requests in flight: Windows does this for buffered I/O; on Linux mount with rsize=, wsize= \
     and vers=3.1.1",
);
pub(crate) const CLIENT_311: (&str, &str) = (
    "client",
    "keep several requests in flight: Windows does this for buffered I/O; on Linux mount with rsize= and wsize=",
);
pub(crate) const SAMBA: (&str, &str) = (
    "Samba",
    "smb2 max read = 8388608, smb2 max write = 8388608; min protocol SMB2 (SMB1 moves at most 60 KiB)",
);
pub(crate) const SAMBA_SMB2: (&str, &str) =
    ("Samba", "smb2 max read = 8388608, smb2 max write = 8388608");
pub(crate) const WINDOWS: (&str, &str) = (
    "Windows",
    "Set-SmbServerConfiguration -EnableSMB1Protocol $false; Set-SmbClientConfiguration -EnableLargeMtu $true",
);
pub(crate) const WINDOWS_SMB2: (&str, &str) =
    ("Windows", "Set-SmbClientConfiguration -EnableLargeMtu $true");

pub(crate) const KIND: KindInfo = KindInfo::new("small-reads", "stop-and-wait small reads")
    .with_actor(Actor::Client)
    .with_remedies(&[
    (
        "application",
        "read and write in blocks of 1 MiB (robocopy /J, larger buffers), or several files in parallel",
    ),
    CLIENT,
    SAMBA,
    WINDOWS,
]);
