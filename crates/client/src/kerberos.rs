//! Logon with a ticket.
//!
//! Owns what the users of a run share: realm, KDCs, keytab, service. The path from a credential to
//! tokens and a session key is in `ticket`, which only builds with the feature `kerberos` have;
//! exchanges with the KDC block no thread ([`kdc`]).

pub mod kdc;
pub mod keytab;
pub mod krb5_conf;
#[cfg(feature = "kerberos")]
pub(crate) mod ticket;

use std::sync::Arc;

use super::credential::Credential;
use super::error::ClientError;
use kdc::KdcAddress;
use keytab::Keytab;
use krb5_conf::Krb5Conf;

/// How the users of a run get their tickets.
#[derive(Clone, Debug, Default)]
pub struct Kerberos {
    /// Realm of all users; overrides the realms in their names.
    pub realm: Option<String>,
    /// KDCs, tried in this order; empty: those of `conf`.
    pub kdcs: Vec<KdcAddress>,
    /// The service; `None`: `cifs/HOST`.
    pub service: Option<String>,
    /// Keys of the users, instead of passwords.
    pub keytab: Option<Arc<Keytab>>,
    /// What krb5.conf says.
    pub conf: Krb5Conf,
}

impl Kerberos {
    /// The realm of users whose names have no realm.
    pub fn common_realm(&self) -> Option<String> {
        self.realm.as_ref().or(self.conf.default_realm.as_ref()).map(|realm| realm.to_uppercase())
    }

    /// The realm of a user: the given one, that of the name, or the default one. `sspi` writes realms
    /// in upper case, so this does too.
    pub fn realm(&self, credential: &Credential) -> Result<String, ClientError> {
        let domain = Some(&credential.domain).filter(|domain| !domain.is_empty());
        let realm = self.realm.as_ref().or(domain).or(self.conf.default_realm.as_ref());
        let realm = realm.ok_or_else(|| {
            ClientError::Logon(format!(
                "{} has no Kerberos realm: give --realm, or write USER@REALM",
                credential.user
            ))
        })?;
        Ok(realm.to_uppercase())
    }

    #[cfg(feature = "kerberos")]
    fn kdcs(&self, realm: &str) -> Result<Vec<KdcAddress>, ClientError> {
        let kdcs = match self.kdcs.as_slice() {
            [] => self.conf.kdcs(realm),
            given => given.to_vec(),
        };
        if !kdcs.is_empty() {
            Ok(kdcs)
        } else {
            Err(ClientError::Logon(format!(
                "no KDC of the realm {realm} is known: give --kdc HOST, or a kdc line in [realms] of {}",
                self.conf.shown()
            )))
        }
    }
}

/// Tries a logon whose KDC and server send these bytes, cut into replies by their length in the first two; for tests with
/// any bytes.
#[cfg(feature = "kerberos")]
pub async fn try_replies(mut bytes: &[u8]) {
    let mut replies = std::collections::VecDeque::new();
    while let Some((length, rest)) = bytes.split_first_chunk() {
        let (reply, rest) = rest.split_at(usize::from(u16::from_le_bytes(*length)).min(rest.len()));
        replies.push_back(reply.to_vec());
        bytes = rest;
    }
    let kdcs = vec![KdcAddress { host: "kdc.lab.test".to_owned(), port: 88 }];
    let kerberos = Kerberos { kdcs, ..Kerberos::default() };
    let credential = Credential::new("alice@LAB.TEST", "secret");
    let logon = ticket::TicketLogon::new(&kerberos, &credential, "fs.lab.test");
    let Ok(mut logon) = logon else { return };
    // The last one is the server's.
    let token = replies.pop_back().unwrap_or_default();
    logon.scripted = Some(replies);
    if logon.step(&[]).await.is_ok() {
        let _ = logon.finish(&token).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kerberos(realm: Option<&str>, default_realm: Option<&str>) -> Kerberos {
        let mut conf = Krb5Conf::default();
        conf.default_realm = default_realm.map(str::to_owned);
        Kerberos { realm: realm.map(str::to_owned), conf, ..Kerberos::default() }
    }

    #[test]
    fn the_given_realm_goes_before_that_of_the_name_and_the_default() {
        let realm = |kerberos: &Kerberos, name: &str| {
            kerberos.realm(&Credential::new(name, "")).map_err(|error| error.to_string())
        };
        assert_eq!(realm(&kerberos(Some("lab.test"), None), "LAB\\a").unwrap(), "LAB.TEST");
        assert_eq!(realm(&kerberos(None, Some("X")), "a@lab.test").unwrap(), "LAB.TEST");
        assert_eq!(realm(&kerberos(None, Some("X.TEST")), "a").unwrap(), "X.TEST");
        assert!(realm(&kerberos(None, None), "a").unwrap_err().contains("--realm"));
    }
}
