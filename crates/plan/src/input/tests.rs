//! The same text in each encoding, read by the decoder and by each planner.

use super::text::decode;
use crate::baseline::read::NamedBytes;

fn encodings(text: &str) -> Vec<(&'static str, Vec<u8>)> {
    let le: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
    let be: Vec<u8> = text.encode_utf16().flat_map(u16::to_be_bytes).collect();
    vec![
        ("UTF-8", text.as_bytes().to_vec()),
        ("UTF-8 with a mark", [&[0xef, 0xbb, 0xbf], text.as_bytes()].concat()),
        ("UTF-16 LE with a mark", [&[0xff, 0xfe], &le[..]].concat()),
        ("UTF-16 BE with a mark", [&[0xfe, 0xff], &be[..]].concat()),
        ("UTF-16 LE", le),
        ("UTF-16 BE", be),
        ("code page 1252", encoding_rs::WINDOWS_1252.encode(text).0.into_owned()),
    ]
}

#[test]
fn each_encoding_gives_the_same_text() {
    for text in ["<Root Name=\"\\\\d\\Büro\"/>", "Name : Straße €", "ab"] {
        for (encoding, bytes) in encodings(text) {
            assert_eq!(decode(&bytes).text, text, "{encoding}");
        }
    }
    for (encoding, bytes) in encodings("dn: Жуковский, Жуковка").iter().take(6) {
        assert_eq!(decode(bytes).text, "dn: Жуковский, Жуковка", "{encoding}");
    }
    let declared = b"<?xml version=\"1.0\" encoding=\"windows-1250\"?>\xb9";
    assert!(decode(declared).text.ends_with('ą'));
    assert!(decode(b"\xff\xfea\0\0\xd8").is_damaged);
}

/// What a planner reads in a text of the given bytes: a name with letters beyond ASCII, and a value.
type Reader = fn(Vec<u8>) -> (String, String);

#[test]
fn a_pasted_file_reads_the_same_in_each_encoding_and_planner() {
    let cases: [(&str, Reader, &str); 3] = [
        (
            "Name         : Büro\r\nScopeName    : *\r\nEncryptData  : Größe\r\n",
            |bytes| {
                let read = crate::baseline::read::read(&[NamedBytes { name: "x", bytes: &bytes }]);
                let settings = read.unwrap().settings;
                let of = |name: &str| {
                    settings.iter().find(|one| format!("{:?}", one.place).contains(name)).unwrap()
                };
                let name = format!("{:?}", of("EncryptData").place);
                let name = name.split("Share(\"").nth(1).unwrap().split('"').next().unwrap();
                (name.to_owned(), format!("{:?}", of("EncryptData").value))
            },
            "Text(\"Größe\")",
        ),
        (
            "Name                 : Büro\r\nInterfaceDescription : Größe\r\nNumberOfReceiveQueues : 2\r\n",
            |bytes| {
                let read = crate::cores::read::read(&bytes).unwrap();
                let [crate::cores::read::Piece::AdapterRss(rss)] = &read.pieces[..] else {
                    panic!("{read:?}")
                };
                (rss.name.clone(), rss.description.clone().unwrap())
            },
            "Größe",
        ),
        (
            "Path        : \\\\c.com\\Büro\r\nDescription : Größe\r\n",
            |bytes| {
                let read = crate::namespace::read::read(&[("x".to_owned(), bytes)]).unwrap();
                let namespace = &read.namespaces[0].namespace;
                (namespace.name.clone(), namespace.comment.clone().unwrap())
            },
            "Größe",
        ),
    ];
    for (text, read, value) in cases {
        for (encoding, bytes) in encodings(text) {
            assert_eq!(read(bytes), ("Büro".to_owned(), value.to_owned()), "{encoding}: {text}");
        }
    }
}
