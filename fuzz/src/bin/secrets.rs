//! Any bytes as a file of passwords, of NT hashes, as a keytab, and as the messages of a logon.
#![no_main]

use std::hint::black_box;

use libfuzzer_sys::fuzz_target;
use smbscope_wire::auth::ap::{ApReq, ap_rep};
use smbscope_wire::auth::{ntlmssp, token};
use smbscope_wire::secrets::{Secrets, Unlocked};

/// Made by Samba and a KDC for the fixtures.
const KEYTAB: &[u8] = include_bytes!("../../../tests/fixtures/encrypted-kerberos-128.keytab");

fuzz_target!(|bytes: &[u8]| {
    let mut secrets = Secrets::default();
    let _ = black_box(secrets.add_passwords(bytes).map_err(|error| error.to_string()));
    let _ = black_box(secrets.add_nt_hashes(bytes).map_err(|error| error.to_string()));
    let _ = black_box(secrets.add_keytab(bytes).map_err(|error| error.to_string()));
    secrets.add_passwords(b"*:Pass-w0rd").expect("a good line");
    secrets.add_keytab(KEYTAB).expect("a good keytab");
    black_box(format!("{secrets:?}"));
    let token = token(bytes);
    if let Some(message) = ntlmssp::Message::parse(token) {
        black_box((message.server_challenge(), message.encrypted_session_key()));
        black_box(secrets.ntlm(&[7; 8], &message));
    }
    if let Some(request) = ApReq::parse(token)
        && let Unlocked::With(ticket) = secrets.ticket(&request)
    {
        black_box(ticket.session_keys(ap_rep(token)));
        black_box(ticket.session_keys(None));
    }
});
