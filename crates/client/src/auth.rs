//! Logon: tokens for SESSION_SETUP, made by the `sspi` crate.
//!
//! Owns credentials, the choice of the mechanism, and NTLM from a credential to tokens and a session
//! key; Kerberos is in `kerberos`. NTLM's tokens are plain NTLMSSP without SPNEGO around them, which
//! MS-SMB2 servers accept (MS-SMB2 section 3.3.5.5.3, MS-NLMP).

use smbscope_wire::crypto::Key;
use sspi::{
    AuthIdentity, BufferType, ClientRequestFlags, CredentialUse, DataRepresentation, Ntlm,
    SecurityBuffer, SecurityStatus, Sspi, SspiImpl, Username,
};

use super::credential::Credential;
use super::error::ClientError;
use super::kerberos::{Kerberos, TicketLogon};

/// A logon in progress.
pub struct Logon(Mechanism);

enum Mechanism {
    Ntlm(Box<NtlmLogon>),
    Kerberos(Box<TicketLogon>),
}

impl Logon {
    /// Begins a logon at `server`; uses tickets if `kerberos` says how to get them.
    pub fn new(
        credential: &Credential,
        server: &str,
        kerberos: Option<&Kerberos>,
    ) -> Result<Logon, ClientError> {
        Ok(Logon(match kerberos {
            None => Mechanism::Ntlm(Box::new(NtlmLogon::new(credential, server)?)),
            Some(kerberos) => {
                Mechanism::Kerberos(Box::new(TicketLogon::new(kerberos, credential, server)?))
            }
        }))
    }

    /// The next token for the server in answer to `token` (empty for the first one).
    pub async fn step(&mut self, token: &[u8]) -> Result<Vec<u8>, ClientError> {
        match &mut self.0 {
            Mechanism::Ntlm(ntlm) => ntlm.step(token),
            Mechanism::Kerberos(kerberos) => kerberos.step(token).await,
        }
    }

    /// Takes the token that came with the server's success reply: with Kerberos it authenticates the
    /// server and contains the key.
    pub async fn finish(&mut self, token: &[u8]) -> Result<(), ClientError> {
        let Mechanism::Kerberos(kerberos) = &mut self.0 else { return Ok(()) };
        if !kerberos.established() {
            kerberos.step(token).await?;
        }
        if kerberos.established() {
            Ok(())
        } else {
            Err(ClientError::Logon("Kerberos: the server did not prove its identity".into()))
        }
    }

    /// The session key, which both sides have now.
    pub fn session_key(&self) -> Result<Key, ClientError> {
        match &self.0 {
            Mechanism::Ntlm(ntlm) => ntlm.session_key(),
            Mechanism::Kerberos(kerberos) => kerberos.session_key(),
        }
    }
}

/// One NTLM logon.
struct NtlmLogon {
    ntlm: Ntlm,
    identity: AuthIdentity,
    credentials: Option<<Ntlm as SspiImpl>::CredentialsHandle>,
    target: String,
}

impl NtlmLogon {
    fn new(credential: &Credential, server: &str) -> Result<NtlmLogon, ClientError> {
        let domain = (!credential.domain.is_empty()).then_some(credential.domain.as_str());
        let username = Username::new(&credential.user, domain)
            .map_err(|error| ClientError::Logon(format!("user name: {error}")))?;
        let identity = AuthIdentity { username, password: credential.password.clone() };
        let target = format!("cifs/{server}");
        Ok(NtlmLogon { ntlm: Ntlm::new(), identity, credentials: None, target })
    }

    fn step(&mut self, token: &[u8]) -> Result<Vec<u8>, ClientError> {
        let failed = |error: sspi::Error| ClientError::Logon(error.to_string());
        if self.credentials.is_none() {
            let acquired = self
                .ntlm
                .acquire_credentials_handle()
                .with_credential_use(CredentialUse::Outbound)
                .with_auth_data(&self.identity)
                .execute(&mut self.ntlm)
                .map_err(failed)?;
            self.credentials = Some(acquired.credentials_handle);
        }
        let Some(credentials) = self.credentials.as_mut() else {
            return Err(ClientError::Logon("no credentials".into()));
        };
        let mut input = [SecurityBuffer::new(token.to_vec(), BufferType::Token)];
        let mut output = [SecurityBuffer::new(Vec::new(), BufferType::Token)];
        let builder = self
            .ntlm
            .initialize_security_context()
            .with_credentials_handle(credentials)
            .with_context_requirements(
                ClientRequestFlags::CONFIDENTIALITY
                    | ClientRequestFlags::INTEGRITY
                    | ClientRequestFlags::ALLOCATE_MEMORY,
            )
            .with_target_data_representation(DataRepresentation::Native)
            .with_target_name(&self.target)
            .with_output(&mut output);
        let mut builder = match token {
            [] => builder,
            _ => builder.with_input(&mut input),
        };
        let result = self
            .ntlm
            .initialize_security_context_impl(&mut builder)
            .map_err(failed)?
            .resolve_to_result()
            .map_err(failed)?;
        if matches!(
            result.status,
            SecurityStatus::CompleteAndContinue | SecurityStatus::CompleteNeeded
        ) {
            self.ntlm.complete_auth_token(&mut output).map_err(failed)?;
        }
        let [output] = output;
        Ok(output.buffer)
    }

    fn session_key(&self) -> Result<Key, ClientError> {
        let keys = self
            .ntlm
            .query_context_session_key()
            .map_err(|error| ClientError::Logon(error.to_string()))?;
        Key::new(keys.session_key.as_ref())
            .ok_or_else(|| ClientError::Logon("the session key has an impossible length".into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_token_is_an_ntlmssp_negotiate() {
        let mut logon = NtlmLogon::new(&Credential::new("alice", "x"), "server").unwrap();
        let token = logon.step(&[]).unwrap();
        assert!(token.starts_with(b"NTLMSSP\0\x01\0\0\0"), "{token:02x?}");
        assert!(logon.step(b"no challenge").is_err());
    }
}
