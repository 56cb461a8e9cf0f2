//! How messages are protected under a baseline: signed or encrypted, by whom and with what.
//!
//! Owns what follows from several settings together: a connection is signed when one side requires it, encrypted messages
//! are not signed, and the dialect decides the algorithm ([MS-SMB2] 3.1.4.1, 3.1.4.3; smb.conf(5)).

use super::catalogue::{self, Preset, Role};
use super::difference::{Side, Unset};
use super::terms::SettingKey;

const GMAC: &str = "aes-gmac";
const CMAC: &str = "aes-cmac";
const HMAC: &str = "hmac-sha256";

/// The newest dialect.
const NEWEST: u16 = 785;
/// The first dialect with AES-CMAC, and with encryption.
const SMB3: u16 = 768;

/// What two sides have, the second one laid over the first if it keeps what it does not set.
#[derive(Clone, Copy, Debug)]
pub struct View<'a> {
    pub side: Side<'a>,
    /// What it is laid over.
    pub below: Option<Side<'a>>,
}

impl<'a> View<'a> {
    /// The views of two sides.
    pub fn both(before: Side<'a>, after: Side<'a>, unset: Unset) -> [View<'a>; 2] {
        let below = (unset == Unset::Kept).then_some(before);
        [View { side: before, below: None }, View { side: after, below }]
    }

    /// The value of a setting of all shares, by an input or by default.
    pub fn value(&self, id: &str) -> Option<&'a str> {
        let key = SettingKey { id: id.to_owned(), of: None };
        let of = |side: Side<'a>| side.terms.value(id);
        let is_removed = self.side.terms.removed.contains(&key);
        let below = self.below.filter(|_| !is_removed).and_then(of);
        of(self.side).or(below).or_else(|| {
            let system = self.side.system.or(self.below.and_then(|below| below.system))?;
            match catalogue::row(id)?.default_of(system) {
                Preset::Value(value) => Some(value),
                Preset::Unknown | Preset::Absent => None,
            }
        })
    }

    /// Whether an input sets it.
    fn is_set(&self, id: &str) -> bool {
        self.side.terms.value(id).is_some()
            || self.below.is_some_and(|below| below.terms.value(id).is_some())
    }

    /// The values of a setting of the server and of its twin of the client, as far as the machine's role has them.
    fn values(&self, [server, client]: [&str; 2]) -> [Option<&'a str>; 2] {
        [(server, Role::Server), (client, Role::Client)]
            .map(|(id, side)| self.value(id).filter(|_| self.side.role.has(side)))
    }

    /// Whether messages are signed: known if one side requires it, or neither does.
    pub fn signs(&self) -> Option<bool> {
        any(self.values(["server-signing", "client-signing"]))
    }

    /// Whether all messages are encrypted.
    pub fn encrypts(&self) -> Option<bool> {
        any(self.values(["server-encryption", "client-encryption"]))
    }

    /// The dialect that results from a recorded one.
    pub fn dialect(&self, recorded: Option<u16>) -> Option<u16> {
        let numbers = |ids: [&str; 2]| {
            self.values(ids).into_iter().flatten().filter_map(|text| text.parse().ok())
        };
        let most = numbers(["server-dialect-most", "client-dialect-most"]).min();
        let least: Option<u16> = numbers(["server-dialect-least", "client-dialect-least"]).max();
        let clamped = recorded.map(|one| one.max(least.unwrap_or(0)));
        match (clamped, most) {
            (Some(one), Some(most)) => Some(one.min(most)),
            (one, most) => one.or(most),
        }
    }

    /// The algorithm that signs with this dialect; `negotiated` is that of recorded connections of the newest dialect.
    pub fn signing_algorithm(
        &self,
        dialect: Option<u16>,
        negotiated: Option<&str>,
    ) -> &'static str {
        match dialect {
            Some(one) if one < SMB3 => return HMAC,
            Some(one) if one < NEWEST => return CMAC,
            _ => {}
        }
        let offered = self
            .is_set("server-signing-algorithms")
            .then(|| self.value("server-signing-algorithms"))
            .flatten();
        let first = offered.and_then(|list| list.split(',').next()).or(negotiated);
        match first {
            Some("aes-128-gmac" | GMAC) => GMAC,
            Some("aes-128-cmac" | CMAC) => CMAC,
            Some(HMAC) => HMAC,
            // Not known: what the version negotiates, or what every version can.
            _ if self.side.system.is_some_and(|system| system.has_gmac()) => GMAC,
            _ => CMAC,
        }
    }

    /// The cipher with this dialect.
    pub fn cipher(&self, dialect: Option<u16>, negotiated: Option<&str>) -> String {
        if dialect.is_some_and(|one| one < NEWEST) {
            return "aes-128-ccm".to_owned();
        }
        let offered = self.is_set("server-ciphers").then(|| self.value("server-ciphers")).flatten();
        let first = offered.and_then(|list| list.split(',').next()).or(negotiated);
        let is_known = |one: &&str| {
            matches!(*one, "aes-128-ccm" | "aes-128-gcm" | "aes-256-ccm" | "aes-256-gcm")
        };
        first.filter(is_known).unwrap_or("aes-128-gcm").to_owned()
    }
}

/// One that is on, or all off; Samba's `desired` (2) is on for clients that can.
fn any(values: [Option<&str>; 2]) -> Option<bool> {
    let is_on = |value: &Option<&str>| matches!(value, Some("1" | "2"));
    match (values.iter().any(is_on), values.iter().any(Option::is_some)) {
        (true, _) => Some(true),
        (false, true) => Some(false),
        (false, false) => None,
    }
}
