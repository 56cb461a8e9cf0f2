//! Users of a lab: names, one password, and the two files that define them for Samba.
//!
//! All names are mapped to one system user (smb.conf `username map`), whose entry in an `smbpasswd`
//! file of the lab has the password's NT hash. So ten thousand users take milliseconds; `pdbedit -a` or
//! ten thousand system users would take minutes. Sources: smbpasswd(5), smb.conf(5) `username map`,
//! MS-NLMP 3.3.1 (NTOWFv1: MD4 of the password in UTF-16LE).

use std::fmt::Write as _;
use std::io;

use md4::{Digest as _, Md4};

use super::options::WORKGROUP;

/// Letters and digits that are not easily confused. There are 57: 22 of them give 128 bits.
const ALPHABET: &[u8] = b"ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz23456789";
const PASSWORD_CHARACTERS: usize = 22;

/// How user names are built from numbers, in Rust's and Python's notation.
pub const USER_PATTERN: &str = "user{:05}";

/// The name of a user; they count from 1.
pub fn user_name(number: u32) -> String {
    format!("user{number:05}")
}

/// A random password, from the operating system's source.
pub(super) fn random_password() -> io::Result<String> {
    // Bytes above the last whole multiple would make the first letters more frequent.
    let limit = 256 - 256 % ALPHABET.len();
    let mut password = String::with_capacity(PASSWORD_CHARACTERS);
    while password.len() < PASSWORD_CHARACTERS {
        let mut bytes = [0u8; 2 * PASSWORD_CHARACTERS];
        getrandom::fill(&mut bytes).map_err(io::Error::other)?;
        let fair = bytes.iter().map(|byte| usize::from(*byte)).filter(|byte| *byte < limit);
        let left = PASSWORD_CHARACTERS - password.len();
        password.extend(fair.take(left).map(|byte| char::from(ALPHABET[byte % ALPHABET.len()])));
    }
    Ok(password)
}

/// The `smbpasswd` file: the one account that every user is mapped to.
pub(super) fn smbpasswd(owner: &str, uid: u32, password: &str) -> String {
    let no_lm_hash = "X".repeat(32);
    let hash = nt_hash(password);
    // LCT is when the password changed, in seconds since 1970; it must not be 0 (must change).
    format!("{owner}:{uid}:{no_lm_hash}:{hash}:[U          ]:LCT-00000001:\n")
}

/// The `username map` file: one line for each user. Samba reads lines up to 511 bytes only, and `!`
/// ends its search, which takes 0.7 µs per line: 7 ms for the ten-thousandth user's logon. Its cache
/// (`username map cache time`) does not help: with it 4.22 does not find the guest account. With
/// `tickets`, users may also log on with Kerberos, and are looked up with the workgroup before the
/// name.
pub(super) fn username_map(owner: &str, users: u32, tickets: bool) -> String {
    (1..=users).fold(String::new(), |mut text, number| {
        let name = user_name(number);
        let _ = if tickets {
            writeln!(text, "!{owner} = {name} {WORKGROUP}\\{name}")
        } else {
            writeln!(text, "!{owner} = {name}")
        };
        text
    })
}

/// The file that `smbclient -A` reads.
pub(super) fn credentials(password: &str) -> String {
    format!("username = {}\npassword = {password}\n", user_name(1))
}

fn nt_hash(password: &str) -> String {
    let utf16: Vec<u8> = password.encode_utf16().flat_map(u16::to_le_bytes).collect();
    Md4::digest(utf16).iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02X}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_is_that_of_ms_nlmp() {
        // MS-NLMP 4.2.2.1.2: NTOWFv1 of "Password".
        assert_eq!(nt_hash("Password"), "A4F49C406510BDCAB6824EE7C30FD852");
    }

    #[test]
    fn an_account_is_one_line_of_six_fields() {
        let line = smbpasswd("nobody", 65534, "Password");
        let fields: Vec<&str> = line.trim_end().split(':').collect();
        assert_eq!(fields.len(), 7, "{line}");
        assert_eq!((fields[0], fields[1], fields[2].len()), ("nobody", "65534", 32));
        assert_eq!(fields[4], "[U          ]");
        assert!(!line.contains("Password"));
    }

    #[test]
    fn each_user_has_a_line() {
        let map = username_map("nobody", 10_000, false);
        assert_eq!(map.lines().count(), 10_000);
        assert!(map.starts_with("!nobody = user00001\n") && map.ends_with(" = user10000\n"));
        assert_eq!(username_map("nobody", 1, true), "!nobody = user00001 LAB\\user00001\n");
    }

    #[test]
    fn passwords_differ_and_are_plain() {
        let (one, two) = (random_password().unwrap(), random_password().unwrap());
        assert_ne!(one, two);
        assert_eq!(one.len(), PASSWORD_CHARACTERS);
        assert!(one.bytes().all(|byte| ALPHABET.contains(&byte)));
    }
}
