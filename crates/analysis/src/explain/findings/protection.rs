//! Signing and encryption take the server's time. Inside the server it is measured
//! ([`super::super::server_time`]); from outside, the time of signed reads and writes that grows with their
//! bytes shows it ([`super::super::signing`]).

use smbscope_findings::{Actor, Confidence, KindInfo};

use super::super::attribution::Attribution;
use super::super::candidate::Candidate;
use super::super::data::FindingKind;
use super::super::server_time::MEASURED;

pub(crate) const QUICK: (&str, &str) = (
    "client and server",
    "SMB 3.1.1 with AES-GMAC for signing and AES-128-GCM for encryption; both with AES-NI",
);
pub(crate) const SAMBA: (&str, &str) = (
    "Samba",
    "server smb3 signing algorithms = AES-128-GMAC, server smb3 encryption algorithms = AES-128-GCM",
);
pub(crate) const WINDOWS: (&str, &str) =
    ("Windows", "Set-SmbServerConfiguration -EncryptionCiphers \"AES_128_GCM\"");

pub(crate) const KIND: KindInfo = KindInfo::new("protection", "cost of signing and encryption")
    .with_actor(Actor::Server)
    .with_remedies(&[
    QUICK,
    SAMBA,
    WINDOWS,
    (
        "policy",
        "smbscope plan baseline POLICY --recording RUN --calibration FILE shows which setting asks for it, its price \
         and cheaper ways to the same protection",
    ),
]);

pub(crate) fn measured(attribution: Attribution) -> Candidate {
    Candidate::new(
        FindingKind::Protection,
        "The server spends its time on signing and encryption",
        attribution,
        Confidence::Measured,
        MEASURED,
    )
}

/// `is_compared` if reads or writes that are not signed grow less.
pub(crate) fn from_outside(attribution: Attribution, is_compared: bool) -> Candidate {
    let (confidence, because) = if is_compared { (
            Confidence::Likely,
            "the time before the first byte of the reply grows with the bytes of signed reads or writes, and less \
             with those of unsigned ones",
        ) } else { (
            Confidence::Possible,
            "the time before the first byte of the reply grows with the bytes of signed reads or writes by more \
             than the network needs; slow storage looks the same: a copy of the same file without signing, or a \
             recording inside the server (smbscope record), decides between them",
        ) };
    Candidate::new(
        FindingKind::Protection,
        "The server signs and verifies slowly, as one CPU core without fast cryptography does: its time \
         grows with each byte of signed reads and writes",
        attribution,
        confidence,
        because,
    )
}
