//! Any bytes: no panic, and positions within the file.

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

/// Beginnings that lead into each reader.
const BEGINNINGS: [&str; 20] = [
    "PReg\u{1}\0\0\0",
    "[Registry Values]\nMACHINE\\A\\B=",
    "[Service General Setting]\n\"",
    "<PolicyRules><ComputerConfig><Key>A</Key><Value>",
    "<policyDefinitions><policy name=\"a\" key=\"b\">",
    "<policyDefinitionResources><string id=\"a\">",
    "<GPO><Computer><ExtensionData><Extension type=\"SecuritySettings\">",
    "<GPO><Computer><ExtensionData><Extension type=\"RegistrySettings\"><Policy>",
    "<GroupPolicyBackupScheme>",
    "<BackupInst>",
    "<RegistrySettings><Registry><Properties ",
    "Computer\nA\nB\nDWORD:1\n",
    "Machine Name,Policy Target,Subcategory,Subcategory GUID,Inclusion Setting,Exclusion Setting,Setting Value\n",
    "ID,Category,Name,Method,MethodArgument,RegistryPath,RegistryItem,RecommendedValue,Operator\n",
    "REGEDIT4\n[HKEY_LOCAL_MACHINE\\A]\n",
    "Windows Registry Editor Version 5.00\n[HKEY_LOCAL_MACHINE\\A]\n",
    "EncryptData : True\nRejectUnencryptedAccess : ",
    "Name ScopeName\n---- ---------\n",
    "[{\"EncryptData\": true, \"ServerHidden\": ",
    "[global]\nworkgroup = A\ninclude = x\n",
];

fn bytes() -> impl Strategy<Value = Vec<u8>> {
    let rest = prop_oneof![
        vec(any::<u8>(), 0..200),
        "[ -~\n\r\t]{0,200}".prop_map(String::into_bytes),
        "[<>/a-cA-C\"=\\\\\\[\\];,:0-9\n ]{0,200}".prop_map(String::into_bytes),
    ];
    (0..BEGINNINGS.len() + 1, rest, any::<bool>()).prop_map(|(beginning, rest, is_wide)| {
        let beginning = BEGINNINGS.get(beginning).copied().unwrap_or_default();
        if is_wide && !beginning.starts_with("PReg") {
            let text = format!("\u{feff}{beginning}{}", String::from_utf8_lossy(&rest));
            return utf16(&text);
        }
        [beginning.as_bytes(), &rest].concat()
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_bytes_are_read(bytes in bytes()) {
        let Ok(baseline) = read(&[NamedBytes { name: "x", bytes: &bytes }]) else { return Ok(()) };
        let positions = baseline.settings.iter().map(|one| one.origin.position)
            .chain(baseline.unknown.list.iter().map(|one| one.position))
            .chain(baseline.damage.iter().map(|one| one.position));
        for position in positions {
            prop_assert!(position <= bytes.len() as u64 + 1);
        }
        for unknown in &baseline.unknown.list {
            prop_assert!(unknown.text.chars().count() <= 200);
            prop_assert!(!unknown.text.chars().any(char::is_control));
        }
        // A bound on what is kept: no reader multiplies its input.
        prop_assert!(baseline.settings.len() <= bytes.len());
        prop_assert!(baseline.unknown.list.len() <= bytes.len() + 1);
        // The result survives being stored.
        let stored = serde_json::to_string(&baseline).unwrap();
        let again: Baseline = serde_json::from_str(&stored).unwrap();
        prop_assert_eq!(again.settings, baseline.settings);
    }
}
