//! Fields of all kinds, and damaged fragments.

use super::super::decode::{Cursor, Decoded, Values};
use super::*;
use crate::linux::Fields as _;

/// Reads the bytes by the field classes of a structure's members.
fn read(members: &str, bytes: &[u8]) -> Option<(Metadata, Values, u64)> {
    let alias = r#"{"type": "field-class-alias", "name": "byte", "field-class":
        {"type": "fixed-length-unsigned-integer", "length": 8, "alignment": 8, "byte-order": "little-endian"}}"#;
    let members: Vec<_> = members
        .split('|')
        .map(|member| {
            let (name, class) = member.split_once(':').unwrap();
            format!(r#"{{"name": "{}", "field-class": {class}}}"#, name.trim())
        })
        .collect();
    let members = members.join(",");
    let class = format!(r#"{{"type": "structure", "member-classes": [{members}]}}"#);
    let event = format!(r#"{{"type": "event-record-class", "payload-field-class": {class}}}"#);
    let preamble = r#"{"type": "preamble", "version": 2}"#;
    let metadata = parse(&format!("\x1e{preamble}\n\x1e{alias}\n\x1e{event}\n"));
    assert_eq!(metadata.damaged, [""; 0], "{event}");
    let root = metadata.events[&(0, 0)].fields.unwrap();
    let mut cursor = Cursor { bytes, at_bits: 0, end_bits: 8 * bytes.len(), time: 100 };
    let mut values = Values::default();
    cursor.read(&metadata.types, root, &mut values)?;
    assert_eq!(cursor.at_bits, 8 * bytes.len(), "all is read");
    Some((metadata, values, cursor.time))
}

#[test]
fn fields_of_each_kind_are_read() {
    let members = r#"
        n: "byte" |
        many: {"type": "dynamic-length-array", "element-field-class": "byte", "length-field-location": {"path": ["n"]}} |
        bits: {"type": "fixed-length-bit-array", "length": 4, "byte-order": "little-endian"} |
        flag: {"type": "fixed-length-boolean", "length": 1, "byte-order": "little-endian"} |
        flags: {"type": "fixed-length-bit-map", "length": 3, "byte-order": "little-endian", "flags": {"a": [[0, 1]]}} |
        comm: {"type": "static-length-string", "length": 4} |
        name: {"type": "null-terminated-string"} |
        text: {"type": "dynamic-length-string", "length-field-location": {"origin": "event-record-payload", "path": ["n"]}} |
        blob: {"type": "static-length-blob", "length": 4} |
        more: {"type": "dynamic-length-blob", "length-field-location": {"path": ["n"]}} |
        real: {"type": "fixed-length-floating-point-number", "length": 32, "alignment": 8, "byte-order": "big-endian"} |
        pairs: {"type": "static-length-array", "length": 2, "minimum-alignment": 32, "element-field-class":
            {"type": "structure", "member-classes": [{"name": "a", "field-class": "byte"}]}} |
        last: {"type": "fixed-length-unsigned-integer", "length": 16, "alignment": 8, "byte-order": "big-endian",
            "bit-order": "last-to-first"}"#;
    let bytes = b"\x02\x07\x08\xd5ab\0\0eth0\0xyBBBBMM\0\0\0\0\0\0\0\x01\x02\x12\x34";
    let (metadata, values, _) = read(members, bytes).unwrap();
    let fields = Decoded { types: &metadata.types, values: &values, bytes, is_before_4_14: false };
    let numbers = ["n", "bits", "flag", "flags", "a", "last"].map(|name| fields.number(name));
    assert_eq!(numbers, [2, 5, 1, 6, 2, 0x1234].map(Some));
    let texts = ["comm", "name", "text"].map(|name| fields.text(name).unwrap().into_owned());
    assert_eq!(texts, ["ab", "eth0", "xy"]);
    assert!(fields.text("blob").is_none() && fields.number("more").is_none());
    for cut in 0..bytes.len() {
        assert!(read(members, &bytes[..cut]).is_none(), "{cut}");
    }
}

#[test]
fn integers_of_variable_length_are_read() {
    let members = r#"
        small: {"type": "variable-length-unsigned-integer"} |
        large: {"type": "variable-length-unsigned-integer"} |
        minus: {"type": "variable-length-signed-integer"} |
        time: {"type": "variable-length-unsigned-integer", "roles": ["default-clock-timestamp"]}"#;
    let mut bytes = vec![0x05, 0xe5, 0x8e, 0x26, 0x7b];
    let (metadata, values, time) = read(members, &[&bytes[..], &[0x05]].concat()).unwrap();
    let number = |name| values.number(&metadata.types, name);
    let minus = number("minus").map(|minus| minus as i64);
    assert_eq!((number("small"), number("large"), minus), (Some(5), Some(624_485), Some(-5)));
    // Seven bits of a time continue a hundred: the next one that ends so.
    assert_eq!((time, number("timestamp_begin")), (128 + 5, Some(5)));
    bytes.extend([0xff; 9]);
    assert!(read(members, &[&bytes[..], &[0x7f]].concat()).is_some());
    assert!(read(members, &[&bytes[..], &[0xff, 0x7f]].concat()).is_none(), "more than 64 bits");
}

#[test]
fn variants_and_optional_fields_are_chosen_by_numbers() {
    let signed = r#"{"type": "fixed-length-signed-integer", "length": 8, "alignment": 8, "byte-order": "little-endian"}"#;
    let members = format!(
        r#"tag: {signed} |
        v: {{"type": "variant", "selector-field-location": {{"path": ["tag"]}}, "options": [
            {{"selector-field-ranges": [[-2, -1], [7, 9]], "field-class": {{"type": "structure", "member-classes":
                [{{"name": "a", "field-class": "byte"}}]}}}},
            {{"selector-field-ranges": [[1, 1]], "field-class": {{"type": "null-terminated-string"}}}}]}} |
        some: {{"type": "optional", "selector-field-location": {{"path": ["tag"]}},
            "selector-field-ranges": [[-1, -1]], "field-class": "byte"}} |
        any: {{"type": "optional", "selector-field-location": ["a", null, "n"], "field-class": "byte"}} |
        last: "byte""#
    );
    let members = format!("n: \"byte\" | {members}");
    let numbers = |bytes: &[u8]| {
        let (metadata, values, _) = read(&members, bytes)?;
        Some(["a", "some", "any", "last"].map(|name| values.number(&metadata.types, name)))
    };
    assert_eq!(numbers(&[0, 0xff, 5, 6, 9]), Some([Some(5), Some(6), None, Some(9)]));
    assert_eq!(numbers(&[1, 8, 5, 7, 9]), Some([Some(5), None, Some(7), Some(9)]));
    assert_eq!(numbers(&[0, 1, b'x', 0, 9]), Some([None, None, None, Some(9)]));
    assert_eq!(numbers(&[0, 3, 5, 6, 9]), None, "no option has 3");
}

#[test]
fn fragments_that_cannot_be_read_are_left_out() {
    let stream = r#"{"type": "data-stream-class", "id": 4}"#;
    let class = |class: &str| {
        let event = r#"{"type": "event-record-class", "payload-field-class": "#;
        let text = format!("\x1e{event}{class}}}\x1e{stream}");
        let metadata = parse(&text);
        assert!(metadata.streams.contains_key(&4));
        metadata.damaged == ["fragment 1"] && metadata.events.is_empty()
    };
    let integer = r#""type": "fixed-length-unsigned-integer", "byte-order": "little-endian""#;
    assert!(!class(&format!(r#"{{{integer}, "length": 7}}"#)));
    for bad in [
        format!(r#"{{{integer}, "length": 0}}"#),
        format!(r#"{{{integer}, "length": 65}}"#),
        format!(r#"{{{integer}, "length": 8, "alignment": 3}}"#),
        format!(r#"{{{integer}, "length": 8, "alignment": 1048576}}"#),
        format!(r#"{{{integer}, "length": 8, "bit-order": "last-to-first"}}"#),
        r#"{"type": "fixed-length-unsigned-integer", "length": 8}"#.to_owned(),
        r#"{"type": "static-length-blob", "length": -1}"#.to_owned(),
        r#"{"type": "null-terminated-string", "encoding": "utf-16le"}"#.to_owned(),
        r#"{"type": "dynamic-length-blob", "length-field-location": {"path": [null]}}"#.to_owned(),
        r#"{"type": "variant", "selector-field-location": {"path": ["x"]}, "options": [{}]}"#
            .to_owned(),
        r#"{"type": "structure", "member-classes": {}}"#.to_owned(),
        r#"{"type": "unknown"}"#.to_owned(),
        r#""unknown""#.to_owned(),
        "[".repeat(100_000),
        r#"{"type": "optional", "field-class": "#.repeat(1_000),
    ] {
        assert!(class(&bad), "{bad:.100}");
    }
    let deep = r#"{"type": "structure", "member-classes": ["#.repeat(1_000_000);
    assert!(class(&deep));
    for text in
        ["\x1e", "\x1e{}", "\x1e{\"type\": \"preamble\", \"version\": 3}", "\x1e[]", "\x1e\x1e"]
    {
        assert!(!parse(text).damaged.is_empty(), "{text}");
    }
    assert_eq!(parse(&"\x1e{".repeat(100)).damaged.len(), DAMAGED_MAX);
    let clock = r#"{"type": "clock-class", "frequency": 0}"#;
    assert_eq!(parse(&format!("\x1e{clock}")).damaged, ["fragment 1"]);
}
