//! smb.conf: synonyms, shares, includes, `copy`, and what is not a setting.

use super::*;

fn at(share: Option<&str>, parameter: &str) -> Place {
    Place::Samba { share: share.map(str::to_owned), parameter: parameter.to_owned() }
}

#[test]
fn names_and_values_are_canonical() {
    let conf = "workgroup = X\n[ GlObAl ]\n# comment\n; comment\n  Server   SIGNING = Mandatory\nmax protocol = smb3_11\nsmb2maxread = 8M\n\
        fruit:metadata = stream\nnonsense = 1\n[Data]\n\tpath = /srv/a\\\n  b\nwriteable = no\npublic=yes\nserver signing = required\n\
        vfs objects = a b\nLoaded services file OK.\n[]\n";
    let baseline = one("any.txt", conf.as_bytes());
    let data = Some("Data");
    assert_eq!(
        pairs(&baseline),
        [
            (at(None, "workgroup"), text("X")),
            (at(None, "server signing"), text("required")),
            (at(None, "server max protocol"), text("SMB3")),
            (at(None, "smb2 max read"), text("8388608")),
            (at(None, "fruit:metadata"), text("stream")),
            (at(data, "path"), text("/srv/ab")),
            (at(data, "read only"), text("Yes")),
            (at(data, "guest ok"), text("Yes")),
            (at(data, "vfs objects"), text("a b")),
        ]
    );
    assert_eq!(
        reasons(&baseline),
        [
            "Samba 4.17 and 4.22 do not know this parameter",
            "a global parameter has no effect in a share",
            "a message, or a line without `=`",
            "a section without a name",
        ]
    );
    assert_eq!(baseline.settings[5].origin.position, 11);
}

#[test]
fn includes_are_read_in_their_place() {
    let main = "[global]\ninclude = /etc/samba/common.conf\nstrict sync = no\n[a]\npath = /a\ninclude = share.inc\nread only = no\n\
        include = /etc/samba/%m.conf\ninclude = registry\ninclude = /etc/missing.conf\n";
    let files = [
        NamedBytes { name: "etc/smb.conf", bytes: main.as_bytes() },
        NamedBytes { name: "etc/samba/common.conf", bytes: b"strict sync = yes\n[b]\npath = /b\n" },
        NamedBytes { name: "etc/share.inc", bytes: b"guest ok = yes\n" },
    ];
    let baseline = read(&files).unwrap();
    assert_eq!(
        pairs(&baseline),
        [
            (at(None, "strict sync"), text("Yes")),
            (at(Some("b"), "path"), text("/b")),
            (at(None, "strict sync"), text("No")),
            (at(Some("a"), "path"), text("/a")),
            (at(Some("a"), "guest ok"), text("Yes")),
            (at(Some("a"), "read only"), text("No")),
        ]
    );
    assert_eq!(baseline.settings[0].origin.file, "etc/samba/common.conf");
    assert_eq!(baseline.settings[0].origin.position, 1);
    assert_eq!(baseline.unknown.list.len(), 3, "{:?}", baseline.unknown.list);
    assert!(reasons(&baseline)[2].contains("not part of the input"));
}

#[test]
fn files_that_include_each_other_end() {
    let files = [
        NamedBytes { name: "a.conf", bytes: b"[global]\ninclude = b.conf\nworkgroup = A\n" },
        NamedBytes { name: "b.conf", bytes: b"[global]\ninclude = a.conf\nworkgroup = B\n" },
        NamedBytes { name: "self.conf", bytes: b"[global]\ninclude = self.conf\nworkgroup = C\n" },
    ];
    let baseline = read(&files).unwrap();
    let values: Vec<Value> = baseline.settings.iter().map(|one| one.value.clone()).collect();
    assert_eq!(values, ["B", "A", "C"].map(text));
    assert_eq!(baseline.unknown.list.len(), 2, "{:?}", baseline.unknown.list);

    // 30 levels, each of which includes the next one many times.
    let contents: Vec<String> = (1..31)
        .map(|level| {
            format!(
                "[global]\n{}workgroup = {level}\n",
                format!("include = {level}.conf\n").repeat(50)
            )
        })
        .collect();
    let names: Vec<String> = (0..30).map(|level| format!("{level}.conf")).collect();
    let files: Vec<NamedBytes<'_>> = names
        .iter()
        .zip(&contents)
        .map(|(name, text)| NamedBytes { name, bytes: text.as_bytes() })
        .collect();
    let baseline = read(&files).unwrap();
    assert!(!baseline.damage.is_empty());
    assert!(baseline.settings.len() <= 1_100, "{}", baseline.settings.len());
}

#[test]
fn copy_takes_the_settings_of_a_share() {
    let conf = "[global]\nworkgroup = A\n[one]\npath = /1\nstrict sync = no\n[two]\ncopy = ONE\npath = /2\n[three]\ncopy = none\n";
    let baseline = one("x", conf.as_bytes());
    let of_two: Vec<(Place, Value)> = pairs(&baseline)
        .into_iter()
        .filter(
            |(place, _)| matches!(place, Place::Samba { share: Some(share), .. } if share == "two"),
        )
        .collect();
    let two = |parameter: &str| at(Some("two"), parameter);
    assert_eq!(
        of_two,
        [
            (two("path"), text("/1")),
            (two("strict sync"), text("No")),
            (two("copy"), text("ONE")),
            (two("path"), text("/2")),
        ]
    );
    assert_eq!(reasons(&baseline), ["copies a share that is not known here"]);
}

#[test]
fn table_of_parameters_is_whole() {
    let parameters = samba_parameters::parameters();
    assert_eq!(parameters.len(), 497);
    for parameter in parameters {
        assert!(
            parameter.default_4_17.is_some() || parameter.default_4_22.is_some(),
            "{}",
            parameter.name
        );
        let enumerated = parameter.kind == samba_parameters::Kind::Enum;
        assert_eq!(enumerated, !parameter.values.is_empty(), "{}", parameter.name);
    }
    let signing = parameters.iter().find(|one| one.name == "server signing").unwrap();
    assert_eq!(signing.default_4_17, Some("default"));
    assert!(!signing.is_of_share);
}
