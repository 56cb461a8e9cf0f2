//! The file itself, and that what is written to a place is read back.

use std::collections::HashSet;

use super::value::canonical;
use super::*;

#[test]
fn the_file_is_read_and_each_row_is_whole() {
    let rows = parse(TEXT).unwrap();
    assert!(rows.len() >= 80, "{}", rows.len());
    let (mut ids, mut keys) = (HashSet::new(), HashSet::new());
    for row in &rows {
        assert!(ids.insert(&row.id), "{} is there twice", row.id);
        for (name, text) in [
            ("allowed or unit", &format!("{}{}", row.allowed, row.unit)),
            ("meaning", &row.meaning),
            ("performance", &row.performance),
            ("security", &row.security),
            ("compatibility", &row.compatibility),
            ("source", &row.source),
        ] {
            assert!(!text.is_empty(), "{}: no {name}", row.id);
        }
        assert_eq!(row.defaults.len(), System::ALL.len());
        assert!(row.no_effect.is_empty() || row.cost == CostKey::None, "{}", row.id);
        for place in &row.places {
            assert!(keys.insert(place.key.clone()), "{}: {:?} is there twice", row.id, place.key);
        }
    }
}

#[test]
fn settings_of_the_issue_are_there_with_their_costs() {
    for (id, cost, has_effect) in [
        ("server-signing", CostKey::Signing, true),
        ("client-signing", CostKey::Signing, true),
        ("server-encryption", CostKey::Encryption, true),
        ("share-encryption", CostKey::Encryption, true),
        ("hardened-path", CostKey::Hardened, true),
        ("server-signing-if-agreed", CostKey::None, false),
        ("client-signing-if-agreed", CostKey::None, false),
        ("max-commands", CostKey::None, false),
        ("request-buffer", CostKey::None, false),
        ("tcp-window", CostKey::None, false),
        ("credits-least", CostKey::None, false),
        ("sync-always", CostKey::WriteThrough, true),
        ("directory-cache-lifetime", CostKey::CacheLifetime, true),
        ("audit-detailed-share", CostKey::Auditing, true),
    ] {
        let row = row(id).unwrap();
        assert_eq!((row.cost, row.no_effect.is_empty()), (cost, has_effect), "{id}");
    }
}

#[test]
fn defaults_are_in_the_spelling_of_their_row() {
    for row in rows() {
        for system in System::ALL {
            let Preset::Value(value) = row.default_of(system) else { continue };
            let place =
                row.places.iter().find(|place| !place.is_inverted && place.words.is_empty());
            let Some(place) = place else { continue };
            let text = super::super::setting::Value::Text(value.to_owned());
            assert_eq!(canonical(row, place, &text).as_deref(), Some(value), "{}", row.id);
        }
    }
}

#[test]
fn what_is_written_is_read_back_and_found() {
    let values = |row: &Row| match row.kind {
        Kind::Flag => vec!["0", "1"],
        Kind::Number | Kind::Choice => vec!["0", "1", "10"],
        Kind::List => vec!["aes-128-gcm,aes-128-ccm"],
        Kind::Dialect => vec!["514", "528", "768", "770", "785"],
        Kind::Audit => vec!["none", "success", "success and failure"],
        Kind::Hardened | Kind::Text => vec!["text"],
    };
    let mut written = 0;
    for row in rows() {
        for place in &row.places {
            let Some(target) = place.place(Some("home")) else { continue };
            let (found, pattern) = find(&target).unwrap();
            let of_share = matches!(place.key, PlaceKey::Samba { of_share: false, .. });
            // The parameter of a share may be another row.
            if !of_share {
                assert_eq!(found.id, row.id);
                assert_eq!(pattern, place);
            }
            for value in values(row) {
                let known = place.words.is_empty() || place.words.iter().any(|one| one.1 == value);
                let Some(text) = place.write(row, value).filter(|_| known) else { continue };
                assert_eq!(canonical(row, place, &text).as_deref(), Some(value), "{}", row.id);
                written += 1;
            }
        }
    }
    assert!(written > 300, "{written}");
}

#[test]
fn values_of_all_spellings_are_the_same() {
    use super::super::setting::Value;
    let value = |id: &str, place: usize, value: Value| {
        let row = row(id).unwrap();
        canonical(row, &row.places[place], &value).unwrap()
    };
    let text = |text: &str| Value::Text(text.to_owned());
    assert_eq!(value("server-signing", 0, Value::Dword(1)), "1");
    assert_eq!(value("server-signing", 1, text("True")), "1");
    assert_eq!(value("server-signing", 2, text("Mandatory")), "1");
    assert_eq!(value("server-signing", 2, text("default")), "0");
    assert_eq!(value("server-dialect-least", 0, Value::Dword(785)), "785");
    for name in ["SMB3_11", "SMB311", "3.1.1", "0x311", "SMB3"] {
        assert_eq!(value("server-dialect-least", 3, text(name)), "785", "{name}");
    }
    assert_eq!(
        value("server-ciphers", 0, text("AES_128_GCM, AES_128_CCM")),
        "aes-128-gcm,aes-128-ccm"
    );
    assert_eq!(value("audit-file-share", 1, text("Success and Failure")), "success and failure");
    assert_eq!(value("audit-file-share", 1, Value::Dword(1)), "success");
    assert_eq!(
        value("null-session-pipes", 0, Value::MultiText(vec!["a ".into(), String::new()])),
        "a"
    );
}

#[test]
fn a_parameter_of_a_share_is_not_that_of_all() {
    let place = |share: Option<&str>, parameter: &str| Place::Samba {
        share: share.map(str::to_owned),
        parameter: parameter.to_owned(),
    };
    let id = |place: &Place| find(place).unwrap().0.id.as_str();
    assert_eq!(id(&place(None, "server smb encrypt")), "server-encryption");
    assert_eq!(id(&place(Some("x"), "server smb encrypt")), "share-encryption");
    assert_eq!(id(&place(Some("x"), "strict sync")), "strict-sync");
    assert!(find(&place(None, "netbios name")).is_none());
}

#[test]
fn damaged_files_say_where() {
    let head = TEXT.lines().next().unwrap();
    let tail = ",,,,,,,,,,,a,b,c,d,e,none,,,s";
    for (row, says) in [
        (format!("x,nobody,conf:x,flag{tail}"), "line 2: `nobody` is not a side"),
        (format!("x,server,conf:x,flog{tail}"), "line 2: `flog` is not a kind"),
        (format!("x,server,nowhere,flag{tail}"), "line 2: `nowhere` is not a place"),
        (format!("x,server,conf:x{{a,flag{tail}"), "line 2: `conf:x{a` is not a place"),
    ] {
        let error = parse(&format!("{head}\n{row}\n")).unwrap_err();
        assert_eq!(error, says);
    }
}
