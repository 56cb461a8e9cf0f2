//! Keytabs made here: whole, cut and broken; keytabs of MIT's own tools are in `tests/kerberos.rs`.

use proptest::prelude::*;

use super::*;

fn counted(bytes: &[u8]) -> Vec<u8> {
    let length = u16::try_from(bytes.len()).unwrap().to_be_bytes();
    [length.as_slice(), bytes].concat()
}

/// An entry; a version of more than 8 bits follows the key.
fn entry_bytes(principal: &str, version: u32, encryption_type: u16, key: &[u8]) -> Vec<u8> {
    let (name, realm) = principal.rsplit_once('@').unwrap();
    let components: Vec<&str> = name.split('/').collect();
    let mut body = u16::try_from(components.len()).unwrap().to_be_bytes().to_vec();
    body.extend(counted(realm.as_bytes()));
    body.extend(components.iter().flat_map(|component| counted(component.as_bytes())));
    body.extend([0, 0, 0, 1, 0, 0, 0, 9, version as u8]);
    body.extend(encryption_type.to_be_bytes());
    body.extend(counted(key));
    if version > 255 {
        body.extend(version.to_be_bytes());
    }
    [u32::try_from(body.len()).unwrap().to_be_bytes().as_slice(), &body].concat()
}

fn file(entries: &[Vec<u8>]) -> Vec<u8> {
    [vec![5, 2], entries.concat()].concat()
}

fn parse(bytes: &[u8]) -> Result<Keytab, KeytabError> {
    Keytab::parse(Path::new("users.keytab"), bytes)
}

fn sample() -> Vec<u8> {
    let hole = [(-6_i32).to_be_bytes().as_slice(), &[0xff; 6]].concat();
    file(&[
        entry_bytes("alice@LAB.TEST", 2, 17, &[2; 16]),
        entry_bytes("alice@LAB.TEST", 300, 17, &[3; 16]),
        hole,
        entry_bytes("alice@LAB.TEST", 300, 18, &[4; 32]),
        entry_bytes("alice@LAB.TEST", 44, 18, &[5; 32]),
        entry_bytes("cifs/fs.lab.test@LAB.TEST", 1, 17, &[6; 16]),
        entry_bytes("old@LAB.TEST", 1, 23, &[7; 16]),
    ])
}

#[test]
fn the_strongest_key_of_the_highest_version_is_taken() {
    let keytab = parse(&sample()).unwrap();
    let key = keytab.key("alice", "LAB.TEST").unwrap();
    assert_eq!((key.encryption_type, key.value.as_slice()), (18, [4; 32].as_slice()));
    let key = keytab.key("cifs/fs.lab.test", "LAB.TEST").unwrap();
    assert_eq!((key.encryption_type, key.value.as_slice()), (17, [6; 16].as_slice()));
    let shown = format!("{keytab:?} {key:?}");
    assert_eq!(shown, "Keytab(users.keytab, 3 principals) LongTermKey(aes128-cts-hmac-sha1-96)");
}

#[test]
fn a_missing_key_is_reported_with_the_known_ones() {
    let keytab = parse(&sample()).unwrap();
    let error = keytab.key("bob", "LAB.TEST").unwrap_err().to_string();
    assert_eq!(
        error,
        "users.keytab: no key for bob@LAB.TEST; it holds alice@LAB.TEST, \
         cifs/fs.lab.test@LAB.TEST, old@LAB.TEST"
    );
    let error = keytab.key("old", "LAB.TEST").unwrap_err().to_string();
    assert!(error.contains("arcfour-hmac") && error.contains("aes256"), "{error}");
    assert!(parse(&[5, 2]).unwrap().key("a", "B").unwrap_err().to_string().contains("no key at"));
    let many: Vec<_> =
        (0..20).map(|number| entry_bytes(&format!("u{number:02}@R"), 1, 18, &[1; 32])).collect();
    let error = parse(&file(&many)).unwrap().key("x", "R").unwrap_err().to_string();
    assert!(error.ends_with("it holds u00@R, u01@R, u02@R, u03@R, u04@R and 15 more"), "{error}");
}

#[test]
fn a_key_of_the_wrong_length_is_ignored() {
    let keytab = parse(&file(&[entry_bytes("a@R", 1, 18, &[1; 31])])).unwrap();
    assert!(keytab.key("a", "R").is_err());
}

#[test]
fn invalid_keytabs_are_refused() {
    for (bytes, reason) in [
        (b"".as_slice(), "0x0502"),
        (b"\x05\x01\0", "length of an entry"),
        (b"BEGIN", "0x0502"),
        (b"\x05\x02\0\0", "length of an entry"),
        (b"\x05\x02\x7f\xff\xff\xff\0", "beyond the end"),
        (b"\x05\x02\x80\0\0\0", "beyond the end"),
    ] {
        let error = parse(bytes).unwrap_err().to_string();
        assert!(
            error.starts_with("users.keytab: not a valid keytab: ") && error.contains(reason),
            "{error}"
        );
    }
    let error = Keytab::read(Path::new("/nowhere/x.keytab")).unwrap_err().to_string();
    assert!(error.starts_with("/nowhere/x.keytab: cannot be read"), "{error}");
}

/// A cut file is an error, or yields its complete entries if the cut is between two entries.
#[test]
fn every_cut_is_an_error_or_between_entries() {
    let whole = sample();
    let mut starts = vec![2];
    while let Some(length) = whole.get(starts[starts.len() - 1]..).and_then(<[u8]>::first_chunk) {
        let length = i32::from_be_bytes(*length).unsigned_abs() as usize;
        starts.push(starts[starts.len() - 1] + 4 + length);
    }
    for cut in 0..=whole.len() {
        assert_eq!(parse(&whole[..cut]).is_ok(), starts.contains(&cut), "{cut}");
    }
}

proptest! {
    /// Whatever the bytes are: no panic, and never more keys than the bytes could hold.
    #[test]
    fn any_bytes_are_read(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        let bytes = [[5, 2].as_slice(), &bytes].concat();
        if let Ok(keytab) = parse(&bytes) {
            prop_assert!(keytab.principals.len() <= bytes.len() / 15);
        }
    }

    #[test]
    fn a_changed_byte_is_read(place in 2..sample().len(), byte in any::<u8>()) {
        let mut bytes = sample();
        bytes[place] = byte;
        if let Ok(keytab) = parse(&bytes) {
            prop_assert!(keytab.principals.len() <= bytes.len() / 15);
        }
    }
}
