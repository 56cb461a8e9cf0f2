//! Any bytes as a file about a DFS namespace (0), as names of servers (1), as a referral (2), as a blob in LDIF (3). What
//! was read is checked, and what each form holds of it is read back from that form.
#![no_main]

use std::fmt::Write as _;
use std::hint::black_box;

use libfuzzer_sys::fuzz_target;
use smbscope_plan::namespace::check::{Context, check};
use smbscope_plan::namespace::form::Form;
use smbscope_plan::namespace::read::read;
use smbscope_plan::namespace::resolution::Resolution;
use smbscope_plan::namespace::write::{Allowed, express, write};
use smbscope_wire::dfs::encode::{Entry, Target, response};
use smbscope_wire::dfs::{EntryFlags, HeaderFlags, Response, ServerType};

fuzz_target!(|bytes: &[u8]| {
    let Some((choice, bytes)) = bytes.split_first() else { return };
    match choice % 4 {
        0 => file(bytes.to_vec()),
        1 => {
            if let Ok(names) = Resolution::read("hosts", bytes) {
                black_box(names.resolve("fs1"));
            }
        }
        2 => referral(bytes),
        _ => file(ldif(bytes)),
    }
});

/// The bytes as the blob of an object. Base64 by hand: the crate of the targets has no encoder.
fn ldif(blob: &[u8]) -> Vec<u8> {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text =
        String::from("dn: CN=P,CN=Dfs-Configuration,CN=System,DC=c\nobjectClass: fTDfs\npKT:: ");
    for piece in blob.chunks(3) {
        let number = piece.iter().fold(0_u32, |sum, byte| sum << 8 | u32::from(*byte));
        let number = number << (8 * (3 - piece.len()));
        for at in 0..4 {
            let digit = DIGITS[(number >> (18 - 6 * at) & 63) as usize];
            let _ = write!(text, "{}", if at > piece.len() { '=' } else { char::from(digit) });
        }
    }
    text.push('\n');
    text.into_bytes()
}

fn file(bytes: Vec<u8>) {
    let length = bytes.len();
    let Ok(reading) = read(&[("fs1.txt".to_owned(), bytes)]) else { return };
    black_box(check(&reading, &Context::default()));
    for read_one in &reading.namespaces {
        assert_eq!(read_one.link_places.len(), read_one.namespace.links.len());
        assert!(read_one.namespace.links.len() <= length);
        for form in Form::WRITTEN {
            let (held, _) = express(&read_one.namespace, form);
            let written = write(&held, form, &Allowed { all: true, some: Vec::new() });
            let Ok(written) = written else { panic!("everything is allowed to be lost") };
            let files: Vec<(String, Vec<u8>)> = written
                .files
                .into_iter()
                .filter(|file| !file.name.ends_with(".sh"))
                .map(|file| (file.name, file.bytes))
                .collect();
            let again = match read(&files) {
                Ok(again) => again,
                Err(error) => panic!("{form:?}: {error}"),
            };
            let [again] = again.namespaces.as_slice() else { panic!("{form:?}: one namespace") };
            assert_eq!(again.namespace, held, "{form:?}");
        }
    }
}

/// What the views read, the encoder writes, and the views read it again.
fn referral(bytes: &[u8]) {
    let all: Vec<_> = Response::new(bytes).referrals().collect();
    let mut targets = Vec::new();
    for one in &all {
        black_box((one.special_name(), one.expanded_names().count(), one.service_site_guid()));
        if let (Some(version @ 1..=4), Some(network_address)) =
            (one.version(), one.network_address())
        {
            targets.push((
                version,
                one.time_to_live_s().unwrap_or_default(),
                one.dfs_path().unwrap_or_default(),
                one.alternate_path().unwrap_or_default(),
                network_address,
            ));
        }
    }
    let entries: Vec<_> = targets
        .iter()
        .map(|(version, ttl, path, alternate, address)| {
            Entry::Target(Target {
                version: *version,
                server_type: ServerType::NON_ROOT,
                flags: EntryFlags(0),
                time_to_live_s: *ttl,
                dfs_path: path,
                alternate_path: alternate,
                network_address: address,
            })
        })
        .collect();
    let Ok(written) = response(0, HeaderFlags::STORAGE_SERVERS, &entries) else { return };
    let again: Vec<_> = Response::new(&written).referrals().collect();
    assert_eq!(again.len(), targets.len());
    for (again, (_, _, _, _, address)) in again.iter().zip(&targets) {
        assert_eq!(again.network_address().as_ref(), Some(address));
    }
}
