//! Damaged files: what was read before the damage is kept, and the damage says where it is.

use super::*;

#[test]
fn truncated_registry_pol_keeps_what_is_before() {
    let first = record("A", "B", 4, &1_u32.to_le_bytes());
    let bytes = registry_pol(&[first.clone(), record("A", "C", 1, &utf16("text\0"))]);
    let whole = one("machine/x", &bytes);
    assert_eq!(whole.damage, []);
    for length in 8 + first.len() + 1..bytes.len() {
        let baseline = one("machine/x", &bytes[..length]);
        assert_eq!(pairs(&baseline), pairs(&whole)[..1], "{length}");
        let [damage] = baseline.damage.as_slice() else { panic!("{:?}", baseline.damage) };
        assert!(
            damage.position >= 8 + first.len() as u64 && damage.position <= length as u64,
            "{damage}"
        );
        assert!(
            damage.message.contains(&format!("in the record at {}", 8 + first.len())),
            "{damage}"
        );
    }
    // Without a setting there is nothing to keep.
    for length in 4..8 + first.len() {
        if length == 8 {
            continue;
        }
        let error = read(&[NamedBytes { name: "machine/x", bytes: &bytes[..length] }]).unwrap_err();
        assert!(error.to_string().starts_with("machine/x: at "), "{error}");
    }
}

#[test]
fn wrong_sizes_and_versions_are_named() {
    let mut bytes = registry_pol(&[record("A", "B", 4, &1_u32.to_le_bytes())]);
    let size = bytes.len() - 2 - 4 - 2 - 4;
    bytes[size..size + 4].copy_from_slice(&u32::MAX.to_le_bytes());
    let error = read(&[NamedBytes { name: "x", bytes: &bytes }]).unwrap_err();
    assert_eq!(error.position, (size + 6) as u64);
    assert!(
        error.message.contains("the data has 4294967295 bytes, but only 6 are left"),
        "{error}"
    );
    let error = read(&[NamedBytes { name: "x", bytes: b"PReg\x02\0\0\0" }]).unwrap_err();
    assert_eq!(error.message, "version 2 of registry.pol is not known: expected 1");
    let error = read(&[NamedBytes { name: "x", bytes: b"PReg\x01\0\0\0garbage!" }]).unwrap_err();
    assert!(error.message.starts_with("expected `[`, found 0x6167"), "{error}");
}

#[test]
fn cut_xml_keeps_whole_elements() {
    let item = |name: &str| {
        format!(
            "<ComputerConfig><Key>A</Key><Value>{name}</Value><RegType>REG_DWORD</RegType><RegData>1</RegData></ComputerConfig>\n"
        )
    };
    let xml = format!("<PolicyRules>\n{}{}", item("one"), item("two"));
    let cut = &xml[..xml.len() - 30];
    let baseline = one("x", cut.as_bytes());
    assert_eq!(pairs(&baseline), [(computer("A", "one"), Value::Dword(1))]);
    assert_eq!(baseline.damage[0].position, 3);
    let wrong = format!("{}</Other>", xml);
    let baseline = one("x", wrong.as_bytes());
    assert_eq!(baseline.settings.len(), 2);
    assert_eq!(baseline.damage[0].position, 4);
}

#[test]
fn entities_are_not_expanded_and_depth_is_limited() {
    let bomb = "<!DOCTYPE x [<!ENTITY a \"aaaaaaaaaa\"><!ENTITY b \"&a;&a;&a;&a;\">]><PolicyRules><ComputerConfig><Key>&b;&lt;&#65;</Key>\
        <Value>v</Value><RegType>REG_SZ</RegType><RegData>&b;</RegData></ComputerConfig></PolicyRules>";
    let baseline = one("x", bomb.as_bytes());
    assert_eq!(pairs(&baseline), [(computer("&b;<A", "v"), text("&b;"))]);
    let deep = format!("<PolicyRules>{}", "<a>".repeat(100_000));
    let error = read(&[NamedBytes { name: "x", bytes: deep.as_bytes() }]).unwrap_err();
    assert!(error.message.contains("more than 64 elements within each other"), "{error}");
}

#[test]
fn damaged_json_and_unknown_files_are_errors() {
    let error = read(&[NamedBytes { name: "x", bytes: b"{\n\"EncryptData\": nul" }]).unwrap_err();
    assert_eq!(error.position, 2);
    for bytes in
        [b"".as_slice(), b"hello\n", b"\0\0\0\0", b"<html></html>", b"[Unit]\nDescription=x\n"]
    {
        let error = read(&[NamedBytes { name: "dir/x", bytes }]).unwrap_err();
        assert!(error.message.contains("not a known form of settings"), "{error}");
    }
    assert!(read(&[]).is_err());
}

#[test]
fn unknown_text_is_clean_and_short() {
    let line = format!("\u{1b}[31mred\u{202e}gnitset\u{0}{}", "x".repeat(1_000));
    let conf = format!("[global]\nworkgroup = A\n{line}\n");
    let baseline = one("x", conf.as_bytes());
    let shown = &baseline.unknown.list[0].text;
    assert!(shown.starts_with(" [31mredgnitset x"), "{shown}");
    assert_eq!(shown.chars().count(), 200);
}

#[test]
fn lists_are_limited_and_counted() {
    let conf = format!("[global]\n{}", "nonsense\n".repeat(Unknowns::MAX + 5));
    let baseline = one("x", conf.as_bytes());
    assert_eq!(baseline.unknown.list.len(), Unknowns::MAX);
    assert_eq!(baseline.unknown.omitted, 5);
    let conf = format!("[global]\n{}", "workgroup=A\n".repeat(SETTINGS_MAX + 3));
    let baseline = one("x", conf.as_bytes());
    assert_eq!((baseline.settings.len(), baseline.settings_omitted), (SETTINGS_MAX, 3));
    assert_eq!(baseline.damage.len(), 1);
}

/// Inputs for which work that grows with the square of their size would take minutes.
#[test]
fn work_grows_with_the_bytes() {
    let text = format!("REGEDIT4\n[HKEY_LOCAL_MACHINE\\A]\n\"B\"=\"{}", "x\n".repeat(200_000));
    assert_eq!(one("x", text.as_bytes()).settings.len(), 0);
    let wide =
        format!("Name ScopeName\n{}\n{}\n", "- ".repeat(100_000) + "--", "x ".repeat(100_000));
    let known = format!("EncryptData : True\nServerHidden : True\n\n{wide}");
    assert_eq!(one("x", known.as_bytes()).settings.len(), 2);
    let conf =
        format!("[a]\n{}[b]\n{}", "fruit:x = 1\n".repeat(2_000), "copy = a\n".repeat(20_000));
    let many: String = (0..5_000).map(|number| format!("vfs:{number} = 1\n")).collect();
    let conf = format!("[global]\n[a]\n{many}{conf}");
    assert!(one("x", conf.as_bytes()).settings.len() < 150_000);
    let names: Vec<String> =
        (0..1_000).map(|number| format!("{}{number}.xml", "d/".repeat(200))).collect();
    let files: Vec<NamedBytes<'_>> =
        names.iter().map(|name| NamedBytes { name, bytes: b"<GPO><Name>n</Name></GPO>" }).collect();
    assert_eq!(read(&files).unwrap().policies.len(), 1);
    let include = "include = x.conf\n".repeat(200);
    let names: Vec<String> = (0..500).map(|number| format!("{number}/x.conf")).collect();
    let conf = format!("[global]\n{include}");
    let files: Vec<NamedBytes<'_>> =
        names.iter().map(|name| NamedBytes { name, bytes: conf.as_bytes() }).collect();
    assert!(read(&files).unwrap_err().message.contains("too many files include each other"));
}
