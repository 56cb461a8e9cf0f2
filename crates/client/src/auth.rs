//! Logon: tokens for SESSION_SETUP.
//!
//! Owns the choice of the mechanism, and NTLM from a credential to tokens and a session key; Kerberos
//! is in `kerberos`. NTLM's tokens are plain NTLMSSP without SPNEGO around them, which
//! MS-SMB2 servers accept (MS-SMB2 section 3.3.5.5.3, MS-NLMP).

use std::time::{SystemTime, UNIX_EPOCH};

use smbscope_wire::crypto::Key;
use smbscope_wire::secrets::{NtHash, NtlmAccount, NtlmFresh, ntlm_authenticate, ntlm_negotiate};
use zeroize::Zeroizing;

use super::credential::Credential;
use super::error::ClientError;
use super::kerberos::Kerberos;
#[cfg(feature = "kerberos")]
use super::kerberos::ticket::TicketLogon;

/// 1970 as FILETIME (100 ns since 1601).
const FILETIME_1970: u64 = 116_444_736_000_000_000;

/// A logon in progress.
pub struct Logon(Mechanism);

enum Mechanism {
    Ntlm(Box<NtlmLogon>),
    #[cfg(feature = "kerberos")]
    Kerberos(Box<TicketLogon>),
}

impl Logon {
    /// Begins a logon at `server`; uses tickets if `kerberos` says how to get them.
    #[cfg_attr(not(feature = "kerberos"), allow(unused_variables))]
    pub fn new(
        credential: &Credential,
        server: &str,
        kerberos: Option<&Kerberos>,
    ) -> Result<Logon, ClientError> {
        Ok(Logon(match kerberos {
            None => Mechanism::Ntlm(Box::new(NtlmLogon::new(credential))),
            #[cfg(feature = "kerberos")]
            Some(kerberos) => {
                Mechanism::Kerberos(Box::new(TicketLogon::new(kerberos, credential, server)?))
            }
            #[cfg(not(feature = "kerberos"))]
            Some(_) => return Err(failed("this build has no Kerberos")),
        }))
    }

    /// The next token for the server in answer to `token` (empty for the first one).
    pub async fn step(&mut self, token: &[u8]) -> Result<Vec<u8>, ClientError> {
        match &mut self.0 {
            Mechanism::Ntlm(ntlm) => ntlm.step(token),
            #[cfg(feature = "kerberos")]
            Mechanism::Kerberos(kerberos) => kerberos.step(token).await,
        }
    }

    /// Takes the token that came with the server's success reply.
    #[cfg_attr(not(feature = "kerberos"), allow(unused_variables))]
    pub async fn finish(&mut self, token: &[u8]) -> Result<(), ClientError> {
        match &mut self.0 {
            // It has none that says anything.
            Mechanism::Ntlm(_) => Ok(()),
            #[cfg(feature = "kerberos")]
            Mechanism::Kerberos(kerberos) => kerberos.finish(token).await,
        }
    }

    /// The session key, which both sides have now.
    pub fn session_key(&self) -> Result<Key, ClientError> {
        match &self.0 {
            Mechanism::Ntlm(ntlm) => ntlm.session_key(),
            #[cfg(feature = "kerberos")]
            Mechanism::Kerberos(kerberos) => kerberos.session_key(),
        }
    }
}

/// One NTLM logon.
struct NtlmLogon {
    credential: Credential,
    negotiate: Vec<u8>,
    session_key: Option<Key>,
}

impl NtlmLogon {
    fn new(credential: &Credential) -> NtlmLogon {
        let credential = credential.clone();
        NtlmLogon { credential, negotiate: Vec::new(), session_key: None }
    }

    fn step(&mut self, token: &[u8]) -> Result<Vec<u8>, ClientError> {
        if token.is_empty() {
            self.negotiate = ntlm_negotiate();
            return Ok(self.negotiate.clone());
        }
        let Credential { user, domain, password } = &self.credential;
        let account = NtlmAccount { user, domain, hash: NtHash::of_password(password) };
        let fresh = fresh()?;
        let (message, key) = ntlm_authenticate(&account, &self.negotiate, token, &fresh)
            .ok_or_else(|| failed("the server did not answer with an NTLM challenge"))?;
        self.session_key = Some(key);
        Ok(message)
    }

    fn session_key(&self) -> Result<Key, ClientError> {
        self.session_key.clone().ok_or_else(|| failed("the server did not ask for the password"))
    }
}

/// The nonce, key and time of one logon.
fn fresh() -> Result<NtlmFresh, ClientError> {
    let mut challenge = [0; 8];
    let mut session_key = Zeroizing::new([0; 16]);
    for bytes in [&mut challenge[..], session_key.as_mut_slice()] {
        getrandom::fill(bytes).map_err(|error| failed(&format!("no random numbers: {error}")))?;
    }
    let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let now_filetime = FILETIME_1970 + (since_1970.as_nanos() / 100) as u64;
    Ok(NtlmFresh { challenge, session_key, now_filetime })
}

fn failed(why: &str) -> ClientError {
    ClientError::Logon(why.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_token_is_an_ntlmssp_negotiate() {
        let mut logon = NtlmLogon::new(&Credential::new("alice", "x"));
        let token = logon.step(&[]).unwrap();
        assert!(token.starts_with(b"NTLMSSP\0\x01\0\0\0"), "{token:02x?}");
        assert!(logon.step(b"no challenge").is_err());
    }
}
