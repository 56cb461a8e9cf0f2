//! Signing and encryption take the server's time. Visible from inside the server only; the
//! observation is [`super::super::server_time`].

use super::super::attribution::Attribution;
use super::super::candidate::Candidate;
use super::super::data::{Actor, Confidence, Remedy, Trouble};
use super::super::server_time::MEASURED;
use super::remedy;

pub(in super::super) const TITLE: &str = "cost of signing and encryption";

pub(in super::super) const ACTOR: Actor = Actor::Server;

pub(in super::super) const REMEDIES: &[Remedy] = &[
    remedy(
        "client and server",
        "SMB 3.1.1 with AES-GMAC for signing and AES-128-GCM for encryption; both with AES-NI",
    ),
    remedy(
        "Samba",
        "server smb3 signing algorithms = AES-128-GMAC, server smb3 encryption algorithms = AES-128-GCM",
    ),
    remedy("Windows", "Set-SmbServerConfiguration -EncryptionCiphers \"AES_128_GCM\""),
];

pub(in super::super) fn measured(attribution: Attribution) -> Candidate {
    Candidate::new(
        Trouble::Protection,
        "The server spends its time on signing and encryption",
        attribution,
        Confidence::High,
        MEASURED,
    )
}
