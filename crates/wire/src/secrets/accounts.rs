//! Files of passwords and of NT hashes, and the search for those of a user.
//!
//! Owns the two formats (see `Secrets::add_passwords` and `Secrets::add_nt_hashes`). Names of accounts
//! contain none of `" / [ ] : ; | = , + * ? < >` (MS-SAMR section 3.1.1.6), so the first colon always
//! ends the name and a password may contain anything but a line break. Nothing is guessed: a line in
//! another form is an error with its number, which never repeats the line.
//!
//! A domain in a name is accepted but does not restrict it: clients send the NetBIOS name, the DNS
//! name, their own name or nothing for the same account, and a logon shows which secret is its own.

use super::nt_hash::NtHash;
use std::collections::HashMap;
use std::fmt;

/// Lines of all files together.
const LINES_MAX: usize = 100_000;
/// Lines for every account: all are tried with every logon.
const ANY_MAX: usize = 1_000;

/// What no name of an account contains.
const NOT_IN_NAMES: &[char] = &['"', '/', '[', ']', ';', '|', '=', ',', '+', '*', '?', '<', '>'];

/// What is wrong with a file of secrets. It never repeats a part of a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SecretListError {
    /// The line, counted from 1; `None` if it is about the file as a whole.
    pub line: Option<usize>,
    /// What is wrong in it.
    pub problem: &'static str,
}

impl fmt::Display for SecretListError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "line {line}: {}", self.problem),
            None => f.write_str(self.problem),
        }
    }
}

impl std::error::Error for SecretListError {}

/// NT hashes by account.
#[derive(Clone, Default)]
pub struct Accounts {
    /// By user name, as [`folded`] writes it.
    named: HashMap<String, Vec<NtHash>>,
    /// For every account.
    any: Vec<NtHash>,
    lines: usize,
}

impl Accounts {
    /// How many secrets there are.
    pub fn len(&self) -> usize {
        self.lines
    }

    /// The hashes to try for a user: those with the name first.
    pub fn of(&self, user: &str) -> impl Iterator<Item = &NtHash> {
        self.named.get(&folded(user)).into_iter().flatten().chain(&self.any)
    }

    pub fn add_passwords(&mut self, text: &[u8]) -> Result<(), SecretListError> {
        self.add(text, |line| {
            let (name, password) = line.split_once(':').ok_or(
                "not NAME:PASSWORD; write `user:password`, `DOMAIN\\user:password`, or `*:password` for every account",
            )?;
            Ok((account(name)?, NtHash::of_password(password)))
        })
    }

    pub fn add_nt_hashes(&mut self, text: &[u8]) -> Result<(), SecretListError> {
        self.add(text, |line| {
            let line = line.trim();
            let (name, digits) = match line.split(':').collect::<Vec<_>>().as_slice() {
                [digits] => ("*", *digits),
                [name, digits] => (*name, *digits),
                [name, rid, lm, digits, ..] if is_number(rid) && lm.len() == 32 => (*name, *digits),
                _ => return Err("not NAME:HASH, HASH, or NAME:RID:LM:NT:::"),
            };
            let hash =
                NtHash::from_hex(digits).ok_or("the NT hash is not 32 hexadecimal digits")?;
            Ok((account(name)?, hash))
        })
    }

    fn add(
        &mut self,
        text: &[u8],
        parse: impl Fn(&str) -> Result<(Option<String>, NtHash), &'static str>,
    ) -> Result<(), SecretListError> {
        let whole = |problem| SecretListError { line: None, problem };
        if text.starts_with(&[0xff, 0xfe]) || text.starts_with(&[0xfe, 0xff]) {
            return Err(whole("the file is UTF-16; save it as UTF-8"));
        }
        let text = std::str::from_utf8(text).map_err(|_| whole("the file is not UTF-8 text"))?;
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        for (index, line) in text.split('\n').enumerate() {
            let line = line.strip_suffix('\r').unwrap_or(line);
            if line.trim().is_empty() || line.starts_with('#') {
                continue;
            }
            if self.lines == LINES_MAX {
                return Err(whole("more than 100000 accounts"));
            }
            let (name, hash) = parse(line)
                .map_err(|problem| SecretListError { line: Some(index + 1), problem })?;
            match name {
                Some(name) => self.named.entry(name).or_default().push(hash),
                None if self.any.len() == ANY_MAX => {
                    return Err(whole("more than 1000 lines for every account"));
                }
                None => self.any.push(hash),
            }
            self.lines += 1;
        }
        Ok(())
    }
}

/// The user in a name, `None` for every account.
fn account(name: &str) -> Result<Option<String>, &'static str> {
    if name == "*" {
        return Ok(None);
    }
    let user = folded(name);
    if user.is_empty() || user.trim() != user {
        return Err("no name, or spaces around it, before the first colon");
    }
    if user.contains(NOT_IN_NAMES) {
        return Err(
            "the text before the first colon is not the name of an account; `*` means every account",
        );
    }
    Ok(Some(user))
}

/// The user name alone, in lower case: without `DOMAIN\` and `@domain`.
fn folded(name: &str) -> String {
    let user = name.rsplit_once('\\').map_or(name, |(_, user)| user);
    let user = user.split_once('@').map_or(user, |(user, _)| user);
    user.to_lowercase()
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    const HASH: &str = "a4f49c406510bdcab6824ee7c30fd852";

    fn hashes(accounts: &Accounts, user: &str) -> Vec<NtHash> {
        accounts.of(user).cloned().collect()
    }

    #[test]
    fn a_password_is_everything_behind_the_first_colon() {
        let mut accounts = Accounts::default();
        let text =
            "\u{feff}# lab\r\n\r\nAlice:Password\r\nDOM\\bob: a:b #c \nbob@dom.example:x\n*:any";
        accounts.add_passwords(text.as_bytes()).unwrap();
        let any = NtHash::of_password("any");
        let password = NtHash::from_hex(HASH).unwrap();
        assert_eq!(hashes(&accounts, "alice"), [password, any.clone()]);
        let bob = [" a:b #c ", "x"].map(NtHash::of_password);
        assert_eq!(hashes(&accounts, "BOB")[..2], bob);
        assert_eq!(hashes(&accounts, "BOB@other.example")[..2], bob);
        assert_eq!(hashes(&accounts, "carol"), [any]);
        assert_eq!(accounts.len(), 4);
    }

    #[test]
    fn hashes_are_read_in_three_forms() {
        let mut accounts = Accounts::default();
        let text = format!(
            "alice:{HASH}\nDOM\\bob:1103:aad3b435b51404eeaad3b435b51404ee:{HASH}:::\n\
             carol:500:NO PASSWORD*********************:{HASH}:::\n"
        );
        accounts.add_nt_hashes(text.as_bytes()).unwrap();
        for user in ["alice", "bob", "carol"] {
            assert_eq!(hashes(&accounts, user), [NtHash::from_hex(HASH).unwrap()], "{user}");
        }
        assert!(hashes(&accounts, "dave").is_empty());
        accounts.add_nt_hashes(HASH.as_bytes()).unwrap();
        assert_eq!(hashes(&accounts, "dave").len(), 1);
    }

    #[test]
    fn other_lines_are_refused_with_their_number_and_without_their_text() {
        let secret = "S3cret";
        for (text, problem) in [
            (format!("a:b\n{secret}\n"), "line 2: not NAME:PASSWORD"),
            (format!(":{secret}"), "line 1: no name"),
            (format!("\n\n {secret}:x"), "line 3: no name, or spaces"),
            (format!("{secret}*x:y"), "line 1: the text before the first colon"),
            (format!("DOM\\:{secret}"), "line 1: no name"),
            (format!("\u{feff}{secret}\0"), "line 1: not NAME"),
        ] {
            let error = Accounts::default().add_passwords(text.as_bytes()).unwrap_err().to_string();
            assert!(error.contains(problem) && !error.contains(secret), "{error}");
        }
        for (text, problem) in [
            (format!("a:{}", &HASH[1..]), "line 1: the NT hash is not 32"),
            (format!("{HASH}g"), "line 1: the NT hash is not 32"),
            (format!("a:b:c:{HASH}"), "line 1: not NAME:HASH"),
        ] {
            let error = Accounts::default().add_nt_hashes(text.as_bytes()).unwrap_err().to_string();
            assert!(error.contains(problem) && !error.contains(&HASH[1..]), "{error}");
        }
        let many = Accounts::default().add_passwords("*:a\n".repeat(1001).as_bytes()).unwrap_err();
        assert_eq!(many.to_string(), "more than 1000 lines for every account");
        let utf16 = Accounts::default().add_passwords(b"\xff\xfea\0").unwrap_err();
        assert_eq!(utf16.to_string(), "the file is UTF-16; save it as UTF-8");
        let latin = Accounts::default().add_passwords(b"a:\xfc").unwrap_err();
        assert_eq!((latin.line, latin.problem), (None, "the file is not UTF-8 text"));
    }
}
