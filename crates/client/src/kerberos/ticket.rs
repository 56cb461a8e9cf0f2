//! Kerberos tokens in SPNEGO for SESSION_SETUP, made by the `sspi` crate.
//!
//! Sources: RFC 4120, RFC 4121, RFC 4178, MS-KILE, MS-SPNG. Each connection requests its own ticket,
//! because `sspi` neither exports nor imports tickets.

use std::collections::VecDeque;

use smbscope_wire::crypto::Key;
use sspi::generator::GeneratorState;
use sspi::{
    AuthIdentity, BufferType, ClientRequestFlags, Credentials, CredentialsBuffers,
    DataRepresentation, ErrorKind, KerberosConfig, KeytabIdentity, Negotiate, NegotiateConfig,
    NetworkProtocol, NetworkRequest, Secret, SecurityBuffer, SecurityStatus, Sspi, SspiImpl,
    Username,
};

use super::Kerberos;
use super::kdc::{self, KdcAddress};
use crate::credential::Credential;
use crate::error::ClientError;

/// SPNEGO offers Kerberos and nothing else: a logon never falls back to NTLM.
const PACKAGES: &str = "kerberos,!ntlm,!pku2u";

/// A logon in progress.
pub(crate) struct TicketLogon {
    negotiate: Negotiate,
    credentials: Option<CredentialsBuffers>,
    principal: String,
    /// Whether the secret is a key from a keytab.
    keytab: bool,
    service: String,
    kdcs: Vec<KdcAddress>,
    /// Replies instead of those of KDCs, for tests with any bytes.
    pub(super) scripted: Option<VecDeque<Vec<u8>>>,
    established: bool,
}

impl TicketLogon {
    /// Begins a logon at `server`.
    pub fn new(
        kerberos: &Kerberos,
        credential: &Credential,
        server: &str,
    ) -> Result<TicketLogon, ClientError> {
        let realm = kerberos.realm(credential)?;
        let kdcs = kerberos.kdcs(&realm)?;
        let principal = format!("{}@{realm}", credential.user);
        let failed = |error: &dyn std::fmt::Display| {
            ClientError::Logon(format!("Kerberos: {principal}: {error}"))
        };
        // In this form, and not as user@REALM, the KDC sees an ordinary principal (NT-PRINCIPAL) and
        // not an enterprise name, which only Active Directory knows.
        let username = Username::new_down_level_logon_name(&credential.user, &realm)
            .map_err(|error| failed(&error))?;
        let credentials = match &kerberos.keytab {
            Some(keytab) => {
                let key = keytab
                    .key(&credential.user, &realm)
                    .map_err(|error| ClientError::Logon(error.to_string()))?;
                let encryption_type = usize::from(key.encryption_type).try_into();
                Credentials::Keytab(KeytabIdentity {
                    principal: username,
                    key: Secret::new(key.value.to_vec()),
                    key_enctype: encryption_type
                        .map_err(|_| failed(&"the key's encryption type is not supported"))?,
                })
            }
            None => {
                let password = Secret::new(credential.password.to_string());
                Credentials::AuthIdentity(AuthIdentity { username, password })
            }
        };
        let credentials = CredentialsBuffers::try_from(credentials).map_err(|e| failed(&e))?;
        // `sspi` requires one address; `ask` decides which of the KDCs is used.
        let first = kdcs.first().map(KdcAddress::to_string).unwrap_or_default();
        // The client's name becomes a NetBIOS address in the ticket, which is not checked.
        let computer = "SMBSCOPE".to_owned();
        let config = KerberosConfig::new_with_kdc_url(&first, computer.clone());
        let config = NegotiateConfig::new(Box::new(config), Some(PACKAGES.to_owned()), computer);
        Ok(TicketLogon {
            negotiate: Negotiate::new_client(config).map_err(|error| failed(&error))?,
            credentials: Some(credentials),
            principal: principal.clone(),
            keytab: kerberos.keytab.is_some(),
            service: kerberos.service.clone().unwrap_or_else(|| format!("cifs/{server}")),
            kdcs,
            scripted: None,
            established: false,
        })
    }

    /// The next token for the server in answer to `token` (empty for the first one).
    pub async fn step(&mut self, token: &[u8]) -> Result<Vec<u8>, ClientError> {
        let mut input = [SecurityBuffer::new(token.to_vec(), BufferType::Token)];
        let mut output = [SecurityBuffer::new(Vec::new(), BufferType::Token)];
        let done = {
            let mut builder = self
                .negotiate
                .initialize_security_context()
                .with_credentials_handle(&mut self.credentials)
                .with_context_requirements(
                    // Only mutual authentication authenticates the server and yields a key.
                    ClientRequestFlags::MUTUAL_AUTH
                        | ClientRequestFlags::CONFIDENTIALITY
                        | ClientRequestFlags::INTEGRITY
                        | ClientRequestFlags::ALLOCATE_MEMORY,
                )
                .with_target_data_representation(DataRepresentation::Native)
                .with_target_name(&self.service)
                .with_input(&mut input)
                .with_output(&mut output);
            match self.negotiate.initialize_security_context_impl(&mut builder) {
                Err(error) => Err(error),
                Ok(mut generator) => {
                    let mut state = generator.start();
                    loop {
                        match state {
                            GeneratorState::Completed(done) => break done,
                            GeneratorState::Suspended(request) => {
                                let reply = match &mut self.scripted {
                                    Some(replies) => replies.pop_front().ok_or_else(|| {
                                        ClientError::Kdc("no more replies".to_owned())
                                    })?,
                                    None => ask(&self.kdcs, &request).await?,
                                };
                                state = generator.resume(Ok(reply));
                            }
                        }
                    }
                }
            }
        };
        let done = done.map_err(|error| self.explain(&error))?;
        self.established = done.status == SecurityStatus::Ok;
        let [output] = output;
        Ok(output.buffer)
    }

    /// Takes the token that came with the server's success reply: it authenticates the server and
    /// contains the key.
    pub async fn finish(&mut self, token: &[u8]) -> Result<(), ClientError> {
        if !self.established {
            self.step(token).await?;
        }
        if self.established {
            return Ok(());
        }
        Err(ClientError::Logon("Kerberos: the server did not prove its identity".into()))
    }

    /// The session key, which both sides have now: the acceptor's subkey (RFC 4121 section 2), untruncated.
    pub fn session_key(&self) -> Result<Key, ClientError> {
        let keys = self.negotiate.query_context_session_key().map_err(|e| self.explain(&e))?;
        Key::new(keys.session_key.as_ref())
            .ok_or_else(|| ClientError::Logon("the session key has an impossible length".into()))
    }

    /// Adds the context and a remedy to an error of `sspi`.
    fn explain(&self, error: &sspi::Error) -> ClientError {
        let said = error.description.as_str();
        // The KDC's additions for programs are a list of bytes.
        let said = said.split(". Additional error data").next().unwrap_or(said);
        let said = said.replace(". Additional error text:", ":");
        let principal = &self.principal;
        ClientError::Logon(if said.starts_with("pre-authentication information was invalid") {
            // `sspi` tries a password with AES-256, whatever the KDC proposes.
            let (secret, why) = if self.keytab {
                ("key in the keytab", "the keytab is old")
            } else {
                ("password", "it is wrong, or the account has no AES-256 key")
            };
            format!("Kerberos: the KDC does not take the {secret} of {principal}: {why}")
        } else if said.starts_with("client not found") {
            format!("Kerberos: the KDC does not know {principal}")
        } else if said.starts_with("server not found") {
            let service = &self.service;
            format!(
                "Kerberos: the KDC does not know the service {service}: name the server as its \
                 tickets do, or give --spn"
            )
        } else if said.starts_with("invalid key length") {
            format!(
                "Kerberos: {principal} for {}: the keys of account, KDC and service are not all of \
                 one encryption type, which is not supported: give all of them AES-256 keys",
                self.service
            )
        } else if said.contains("without the pa-pac data") {
            format!(
                "Kerberos: {principal} needs no pre-authentication at the KDC, which is not \
                 supported: require it there"
            )
        } else if error.error_type == ErrorKind::TimeSkew {
            format!("Kerberos: {principal}: the clocks here and at the KDC differ too much")
        } else {
            format!("Kerberos: {principal} for {}: {said}", self.service)
        })
    }
}

/// Asks the KDCs in turn until one answers. A request for another realm (a referral) goes to the KDC
/// that `sspi` found for that realm in krb5.conf.
async fn ask(kdcs: &[KdcAddress], request: &NetworkRequest) -> Result<Vec<u8>, ClientError> {
    let own = |kdc: &KdcAddress| {
        // Our own addresses always include the KDC's port.
        let host = request.url.host_str().unwrap_or_default();
        host.trim_matches(['[', ']']).eq_ignore_ascii_case(&kdc.host)
            && request.url.port() == Some(kdc.port)
    };
    let referred;
    let places = if kdcs.first().is_some_and(own) {
        kdcs
    } else {
        let place = request.url.as_str().strip_prefix("tcp://").unwrap_or_default();
        let place = KdcAddress::parse(place.trim_end_matches('/'));
        match (request.protocol, place) {
            (NetworkProtocol::Tcp, Ok(place)) => referred = [place],
            _ => {
                let url = &request.url;
                return Err(ClientError::Logon(format!("{url}: only KDCs over TCP are supported")));
            }
        }
        &referred
    };
    let mut failures = Vec::new();
    for kdc in places {
        match kdc.ask(&request.data, kdc::REPLY_TIMEOUT).await {
            Ok(reply) => return Ok(reply),
            Err(error) => failures.push(format!("KDC {kdc}: {error}")),
        }
    }
    Err(ClientError::Kdc(failures.join("; ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_realm_without_kdc_is_explained() {
        let credential = Credential::new("a@LAB.TEST", "secret");
        let error = TicketLogon::new(&Kerberos::default(), &credential, "fs").err().unwrap();
        let error = error.to_string();
        assert!(error.contains("LAB.TEST") && error.contains("--kdc"), "{error}");
        assert!(!error.contains("secret"));
    }
}
