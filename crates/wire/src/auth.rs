//! What a security blob of SessionSetup (or of a Negotiate response) says about the logon.
//!
//! Owns: finding the mechanism and its token in SPNEGO (RFC 4178) or bare, and the names in it:
//! NTLMSSP (MS-NLMP) shows user, domain, workstation and server; Kerberos (RFC 4120) shows the
//! service, and the client only as `kerberos` describes. [`token()`] and `ap` give the parts from
//! which `secrets` computes session keys. It does not own credentials: nothing is verified here.
//!
//! A blob that was cut by the capture gives what is there; a name that is cut is not given.

pub mod ap;
mod der;
pub mod kerberos;
pub mod ntlmssp;
mod spnego;

pub use kerberos::Kerberos;
pub use spnego::{Mechanism, Offered, State};

/// What a security blob says.
#[derive(Clone, Debug, Default)]
pub struct Auth<'a> {
    /// Whether SPNEGO is around the token.
    pub is_spnego: bool,
    /// The mechanisms offered, in the sender's order; empty after the first message.
    pub offered: Offered<'a>,
    /// The mechanism of the token, else the one chosen, else the first one offered.
    pub mechanism: Option<Mechanism<'a>>,
    /// The state that the acceptor reports.
    pub state: Option<State>,
    /// The NTLMSSP message, if that is what the token is.
    pub ntlmssp: Option<ntlmssp::Message<'a>>,
    /// The visible part of the Kerberos message, if that is what the token is.
    pub kerberos: Option<Kerberos>,
}

/// Reads a security blob: SPNEGO, or NTLMSSP or Kerberos without it. Never fails: what is not
/// recognised leaves the fields empty.
pub fn inspect(blob: &[u8]) -> Auth<'_> {
    let mut auth = Auth::default();
    let mut token = blob;
    let mut negotiated = None;
    if let Some(frame) = spnego::parse(blob) {
        auth.is_spnego = true;
        auth.offered = frame.offered;
        auth.state = frame.state;
        let mut offers = frame.offered;
        negotiated = frame.chosen.or_else(|| offers.next());
        token = frame.token;
    }
    if let Some(message) = ntlmssp::Message::parse(token) {
        auth.ntlmssp = Some(message);
        auth.mechanism = Some(Mechanism::NTLMSSP);
    } else if token.starts_with(b"NEGOEXTS") {
        auth.mechanism = Some(Mechanism::NEGOEX);
    } else if let Some((mechanism, message)) = kerberos::parse(token) {
        auth.kerberos = Some(message);
        auth.mechanism = mechanism.or(negotiated).or(Some(Mechanism::KERBEROS));
    } else {
        auth.mechanism = negotiated;
    }
    auth
}

/// The mechanism's token in a security blob: what is inside SPNEGO, or the blob itself.
pub fn token(blob: &[u8]) -> &[u8] {
    spnego::parse(blob).map_or(blob, |frame| frame.token)
}

impl Auth<'_> {
    /// The client's account as people write it: `DOMAIN\user` or `user` from NTLMSSP, `user@REALM`
    /// from the few Kerberos messages that show it. An anonymous logon is `ANONYMOUS LOGON`.
    pub fn account(&self) -> Option<String> {
        if let Some(message) = &self.ntlmssp {
            if message.is_anonymous()? {
                return Some("ANONYMOUS LOGON".to_owned());
            }
            let user = message.user()?;
            let domain = message.domain()?;
            return Some(if domain.is_empty() { user } else { format!("{domain}\\{user}") });
        }
        self.kerberos.as_ref()?.account()
    }

    /// The service that a Kerberos ticket is for: `cifs/server@REALM`.
    pub fn service(&self) -> Option<String> {
        self.kerberos.as_ref()?.service_at_realm()
    }
}

#[cfg(test)]
mod tests {
    use super::kerberos::tests::{ap_req, der};
    use super::ntlmssp::tests::{authenticate, challenge, utf16};
    use super::*;
    use proptest::prelude::*;

    fn initial(mechanisms: &[Mechanism<'_>], token: &[u8]) -> Vec<u8> {
        let list: Vec<_> = mechanisms.iter().map(|m| der(6, &[m.0])).collect();
        let list: Vec<_> = list.iter().map(Vec::as_slice).collect();
        let body = der(0x30, &[&der(0xa0, &[&der(0x30, &list)]), &der(0xa2, &[&der(4, &[token])])]);
        let oid = der(6, &[Mechanism::SPNEGO.0]);
        der(0x60, &[&oid, &der(0xa0, &[&body])])
    }

    fn response(token: &[u8]) -> Vec<u8> {
        let token = der(0xa2, &[&der(4, &[token])]);
        let state = der(0xa0, &[&[0x0a, 1, 1]]);
        der(0xa1, &[&der(0x30, &[&state, &token])])
    }

    fn samples() -> Vec<Vec<u8>> {
        let logon = authenticate(0xe288_8215, [&utf16("DOM"), &utf16("joe"), &utf16("PC")]);
        vec![
            initial(&[Mechanism::MS_KERBEROS, Mechanism::KERBEROS, Mechanism::NTLMSSP], &ap_req()),
            initial(&[Mechanism::NTLMSSP], b"NTLMSSP\0\x01\0\0\0\x15\x82\x08\x62"),
            response(&challenge()),
            response(&logon),
            logon,
            ap_req(),
        ]
    }

    #[test]
    fn kerberos_in_spnego() {
        let blob = &samples()[0];
        let auth = inspect(blob);
        assert!(auth.is_spnego);
        assert_eq!(auth.offered.count(), 3);
        assert_eq!(auth.mechanism, Some(Mechanism::KERBEROS));
        let service = auth.service();
        assert_eq!(service.as_deref(), Some("cifs/srv.example.org@EXAMPLE.ORG"));
        assert_eq!(auth.account(), None);
    }

    #[test]
    fn ntlmssp_in_spnego_and_bare() {
        let samples = samples();
        assert_eq!(inspect(&samples[3]).account().as_deref(), Some("DOM\\joe"));
        assert_eq!(inspect(&samples[3]).mechanism, Some(Mechanism::NTLMSSP));
        let bare = inspect(&samples[4]);
        assert!(!bare.is_spnego);
        assert_eq!(bare.account().as_deref(), Some("DOM\\joe"));
        let challenged = inspect(&samples[2]);
        assert_eq!(challenged.state, Some(State::ACCEPT_INCOMPLETE));
        assert_eq!(challenged.account(), None);
    }

    #[test]
    fn the_first_offer_replaces_a_missing_token() {
        let blob = initial(&[Mechanism::NEGOEX, Mechanism::NTLMSSP], b"");
        assert_eq!(inspect(&blob).mechanism, Some(Mechanism::NEGOEX));
    }

    #[test]
    fn anonymous_has_a_name_of_its_own() {
        let blob = authenticate(0x0000_0a01, [b"", b"", b""]);
        let account = inspect(&blob).account();
        assert_eq!(account.as_deref(), Some("ANONYMOUS LOGON"));
    }

    fn walk(blob: &[u8]) {
        let auth = inspect(blob);
        let _ = (auth.account(), auth.service(), format!("{auth:?}"));
        for mechanism in auth.offered {
            let _ = mechanism.to_string();
        }
        if let Some(message) = auth.ntlmssp {
            let _ = (message.version(), message.target_name());
            let _ = (message.target_info().count(), message.workstation());
        }
    }

    #[test]
    fn every_truncation_and_every_changed_byte_is_survived() {
        for sample in samples() {
            for length in 0..sample.len() {
                walk(&sample[..length]);
                let mut changed = sample.clone();
                for value in [0, 0x7f, 0x80, 0x84, 0xff] {
                    changed[length] = value;
                    walk(&changed);
                }
            }
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_survived(blob in proptest::collection::vec(any::<u8>(), 0..300), at in 0..6usize) {
            walk(&blob);
            let mut sample = samples().swap_remove(at);
            let start = sample.len() / 2;
            sample.splice(start.., blob);
            walk(&sample);
        }
    }
}
