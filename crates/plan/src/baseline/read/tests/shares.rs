//! Output of Get-Smb* and what the wire shows.

use super::*;

fn smb(object: SmbObject, property: &str) -> Place {
    Place::Smb { object, property: property.to_owned() }
}

#[test]
fn lists_are_objects_by_their_properties() {
    let output = "\r\nEncryptData              : False\r\nRejectUnencryptedAccess  : True\r\nNullSessionPipes         :\r\n\r\n\
        EnableLargeMtu           : True\r\nRequireSecuritySignature : False\r\n";
    let baseline = one("x", output.as_bytes());
    assert_eq!(
        pairs(&baseline),
        [
            (smb(SmbObject::Server, "EncryptData"), text("False")),
            (smb(SmbObject::Server, "RejectUnencryptedAccess"), text("True")),
            (smb(SmbObject::Server, "NullSessionPipes"), text("")),
            (smb(SmbObject::Client, "EnableLargeMtu"), text("True")),
            (smb(SmbObject::Client, "RequireSecuritySignature"), text("False")),
        ]
    );
    assert_eq!(baseline.settings[4].origin.position, 7);
}

#[test]
fn command_decides_where_properties_do_not() {
    let output = "PS C:\\> Get-SmbServerConfiguration | fl *sign*\nRequireSecuritySignature : True\nEnableSecuritySignature : True\n\n\
        Get-SmbClientConfiguration | fl *sign*\nRequireSecuritySignature : False\n\nEnableSMB1Protocol : False\n";
    let baseline = one("x", output.as_bytes());
    assert_eq!(
        pairs(&baseline),
        [
            (smb(SmbObject::Server, "RequireSecuritySignature"), text("True")),
            (smb(SmbObject::Server, "EnableSecuritySignature"), text("True")),
            (smb(SmbObject::Client, "RequireSecuritySignature"), text("False")),
            (smb(SmbObject::Server, "EnableSMB1Protocol"), text("False")),
        ]
    );
}

#[test]
fn tables_of_shares() {
    let output = "Get-SmbShare\nName   ScopeName Path      Description\n----   --------- ----      -----------\n\
        ADMIN$ *         C:\\Win    Remote...\nIT dep *         D:\\IT dep über\n\n";
    let baseline = one("x", output.as_bytes());
    let share = |name: &str, property: &str| smb(SmbObject::Share(name.to_owned()), property);
    assert_eq!(
        pairs(&baseline),
        [
            (share("ADMIN$", "ScopeName"), text("*")),
            (share("ADMIN$", "Path"), text("C:\\Win")),
            (share("IT dep", "ScopeName"), text("*")),
            (share("IT dep", "Path"), text("D:\\IT dep")),
            (share("IT dep", "Description"), text("über")),
        ]
    );
    assert!(reasons(&baseline)[0].starts_with("cut at the width"));
}

#[test]
fn json_of_all_three() {
    let json = r#"{"server": {"EncryptData": false, "Smb2CreditsMax": 8192,
        "EncryptionCiphers": "AES_128_GCM"}, "Get-SmbShare": [
        {"Name": "A", "ScopeName": "*", "CachingMode": 1, "FolderEnumerationMode": 0, "CimClass": {"X": 1}},
        {"Name": "B", "CachingMode": 4, "EncryptData": true}], "note": 1}"#;
    let baseline = one("x", json.as_bytes());
    let share = |name: &str, property: &str| smb(SmbObject::Share(name.to_owned()), property);
    let mut found = pairs(&baseline);
    found.sort();
    let mut expected = vec![
        (smb(SmbObject::Server, "EncryptData"), text("False")),
        (smb(SmbObject::Server, "EncryptionCiphers"), text("AES_128_GCM")),
        (smb(SmbObject::Server, "Smb2CreditsMax"), text("8192")),
        (share("A", "CachingMode"), text("Manual")),
        (share("A", "FolderEnumerationMode"), text("AccessBased")),
        (share("A", "ScopeName"), text("*")),
        (share("B", "CachingMode"), text("BranchCache")),
        (share("B", "EncryptData"), text("True")),
    ];
    expected.sort();
    assert_eq!(found, expected);
    let line = |name: &str| {
        let setting = baseline
            .settings
            .iter()
            .find(|one| matches!(&one.place, Place::Smb { property, .. } if property == name));
        setting.unwrap().origin.position
    };
    assert_eq!((line("EncryptData"), line("EncryptionCiphers"), line("ScopeName")), (1, 2, 3));
    assert_eq!(baseline.unknown.list.len(), 2, "{:?}", baseline.unknown.list);
}

#[test]
fn shared_outputs_are_read() {
    let default = || std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared");
    let shared = std::env::var_os("SMBSCOPE_SHARED").map_or_else(default, std::path::PathBuf::from);
    let folder = shared.join("outputs/windows");
    if !folder.is_dir() {
        return smbscope_testing::skip!("{} is not there (set SMBSCOPE_SHARED)", folder.display());
    }
    let counts =
        ["Get-SmbServerConfiguration.txt", "Get-SmbClientConfiguration.txt", "Get-SmbShare.txt"]
            .map(|name| {
                let bytes = std::fs::read(folder.join(name)).unwrap();
                let lines = String::from_utf8_lossy(&bytes)
                    .lines()
                    .filter(|line| line.contains(" : ") || line.ends_with(" :"))
                    .count();
                let baseline = one(name, &bytes);
                (lines, baseline.settings.len(), baseline.unknown.list.len())
            });
    // Each line of a list is a property; the shares' tables have three columns more for each of 22 rows.
    assert_eq!(counts[0], (46, 46, 0));
    assert_eq!(counts[1], (25, 25, 0));
    assert_eq!(counts[2].1 + counts[2].2, 25 - 1 + 22 * 3 + 8);
}

#[test]
fn wire_shows_settings() {
    let server = ServerOnWire {
        file: "//host".to_owned(),
        security_mode: Some(3),
        dialect: Some(0x0311),
        capabilities: Some(0x2f),
        max_read_bytes: Some(1 << 20),
        cipher: Some(2),
        compression: Some(vec![1, 3, 77]),
        session_flags: Some(4),
        shares: vec![ShareOnWire { name: "data".to_owned(), flags: 0x8030, capabilities: 0x10 }],
        ..ServerOnWire::default()
    };
    let settings = wire_settings(&server);
    let value = |share: Option<&str>, property: &str| {
        let place = Place::Wire { share: share.map(str::to_owned), property: property.to_owned() };
        settings.iter().find(|one| one.place == place).map(|one| one.value.clone())
    };
    assert_eq!(value(None, "SigningRequired"), Some(Value::Dword(1)));
    assert_eq!(value(None, "Dialect"), Some(Value::Dword(785)));
    assert_eq!(value(None, "Cipher"), Some(text("AES-128-GCM")));
    // Without a context of signing the dialect says which algorithm it is.
    assert_eq!(value(None, "SigningAlgorithm"), Some(text("AES-128-CMAC")));
    assert_eq!(value(None, "PersistentHandles"), Some(Value::Dword(0)));
    assert_eq!(value(None, "DirectoryLeasing"), Some(Value::Dword(1)));
    assert_eq!(value(None, "Compression"), Some(text("LZNT1, LZ77+Huffman, 0x004d")));
    assert_eq!(value(None, "SessionEncryption"), Some(Value::Dword(1)));
    assert_eq!(value(None, "MaxWriteSize"), None);
    assert_eq!(value(Some("data"), "ShareEncryption"), Some(Value::Dword(1)));
    assert_eq!(value(Some("data"), "ContinuouslyAvailable"), Some(Value::Dword(1)));
    assert_eq!(value(Some("data"), "CachingMode"), Some(text("None")));
    assert_eq!(wire_settings(&ServerOnWire::default()), []);
}
