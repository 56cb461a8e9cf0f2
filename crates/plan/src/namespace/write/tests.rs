//! Each form to each other and back, on generated namespaces.

use super::super::form::Form;
use super::super::model::{Flags, Kind, Link, Namespace, PriorityClass, State, Target};
use super::super::read::read;
use super::*;
use proptest::prelude::*;
use std::collections::BTreeMap;

/// A name with what administrators and other scripts put into names.
fn name() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        6 => "[a-zA-Z0-9_-]{1,6}".prop_map(String::from),
        1 => Just("R&D".to_owned()),
        1 => Just("&amp;".to_owned()),
        1 => Just("Büro".to_owned()),
        1 => Just("資料".to_owned()),
        1 => Just("\u{1f4c1}".to_owned()),
        1 => "[$%'\"`<>()\\[\\]{};=+#,~!@^]{1,3}".prop_map(String::from),
        1 => Just("\u{2019}s".to_owned()),
    ];
    proptest::collection::vec(piece, 1..4).prop_map(|pieces| pieces.join(" "))
}

fn host() -> impl Strategy<Value = String> {
    prop_oneof![
        "[A-Z][A-Z0-9-]{0,9}",
        "[a-z][a-z0-9-]{0,6}\\.[a-z]{1,6}\\.com",
        "10\\.0\\.0\\.[1-9]"
    ]
}

fn state() -> impl Strategy<Value = (State, Option<String>)> {
    prop_oneof![
        6 => Just((State::Online, None)),
        2 => Just((State::Offline, None)),
        1 => (0_u32..20).prop_map(|code| (State::Other(code), None)),
        1 => Just((State::Online, Some("4".to_owned()))),
        1 => Just((State::Online, Some("6".to_owned()))),
        1 => Just((State::Other(0), Some("STANDBY".to_owned()))),
    ]
}

fn flags() -> impl Strategy<Value = Flags> {
    let flag = || proptest::option::of(any::<bool>());
    (flag(), flag(), flag(), flag(), flag()).prop_map(|(a, b, c, d, e)| Flags {
        site_costing: a,
        insite_referrals: b,
        root_scalability: c,
        access_based_enumeration: d,
        target_failback: e,
    })
}

fn other() -> impl Strategy<Value = BTreeMap<String, String>> {
    let one = prop_oneof![
        Just(("export:Unknown", "a \"b\" & c".to_owned())),
        Just(("v2:whenCreated", "20260101000000.0Z".to_owned())),
        Just(("v2:description", "base64:/wA=".to_owned())),
        Just(("objects:NewProperty", "x".to_owned())),
        Just(("view:site", "Berlin".to_owned())),
        Just(("interlink", "yes".to_owned())),
    ];
    proptest::collection::vec(one, 0..3)
        .prop_map(|all| all.into_iter().map(|(key, value)| (key.to_owned(), value)).collect())
}

fn target() -> impl Strategy<Value = Target> {
    let class = prop_oneof![
        Just(PriorityClass::GlobalHigh),
        Just(PriorityClass::SiteCostHigh),
        Just(PriorityClass::SiteCostNormal),
        Just(PriorityClass::SiteCostLow),
        Just(PriorityClass::GlobalLow),
    ];
    let share = (name(), proptest::option::of(name()));
    let share = share.prop_map(|(share, below)| match below {
        Some(below) => format!("{share}\\{below}"),
        None => share,
    });
    (host(), share, state(), proptest::option::of(class), proptest::option::of(0_u32..34)).prop_map(
        |(server, share, (state, detail), class, rank)| Target {
            server,
            share,
            state,
            priority_class: class,
            priority_rank: rank,
            other: detail.map(|detail| ("state".to_owned(), detail)).into_iter().collect(),
        },
    )
}

fn link() -> impl Strategy<Value = Link> {
    let path = proptest::collection::vec(name(), 1..4).prop_map(|parts| parts.join("\\"));
    let ttl = proptest::option::of(any::<u32>());
    let comment = proptest::option::of(prop_oneof![name(), Just("two\nlines 50%".to_owned())]);
    let targets = proptest::collection::vec(target(), 0..4);
    let security = proptest::option::of(proptest::collection::vec(any::<u8>(), 0..40));
    (path, state(), ttl, comment, flags(), targets, security, other()).prop_map(
        |(path, (state, detail), ttl_s, comment, flags, targets, security, mut other)| {
            other.extend(detail.map(|detail| ("state".to_owned(), detail)));
            Link { path, state, ttl_s, comment, flags, targets, security, other }
        },
    )
}

pub(crate) fn namespace() -> impl Strategy<Value = Namespace> {
    let kind = proptest::option::of(prop_oneof![
        Just(Kind::Standalone),
        Just(Kind::DomainV1),
        Just(Kind::DomainV2),
        Just(Kind::Samba),
    ]);
    let ttl = proptest::option::of(any::<u32>());
    let targets = proptest::collection::vec(target(), 0..3);
    let links = proptest::collection::vec(link(), 0..6);
    let comment = proptest::option::of(name());
    (host(), name(), kind, state(), ttl, comment, flags(), targets, links, other()).prop_map(
        |(host, name, kind, (state, detail), ttl_s, comment, flags, targets, links, mut other)| {
            other.extend(detail.map(|detail| ("state".to_owned(), detail)));
            Namespace { host, name, kind, state, ttl_s, comment, flags, targets, links, other }
        },
    )
}

/// Writes what the form can hold and reads it again.
pub(crate) fn through(namespace: &Namespace, form: Form) -> Namespace {
    let written = write(namespace, form, &Allowed { all: true, some: Vec::new() }).unwrap();
    let files: Vec<(String, Vec<u8>)> = written
        .files
        .iter()
        .filter(|file| !file.name.ends_with(".sh"))
        .map(|file| (file.name.clone(), file.bytes.clone()))
        .collect();
    let reading = read(&files).unwrap_or_else(|error| {
        panic!("{form:?}: {error}\n{}", String::from_utf8_lossy(&files[0].1))
    });
    assert_eq!(reading.unknown.list, [], "{form:?}");
    assert_eq!(reading.namespaces.len(), 1, "{form:?}");
    let read = reading.namespaces.into_iter().next().unwrap();
    assert_eq!(read.form, form);
    assert_eq!(read.link_places.len(), read.namespace.links.len());
    read.namespace
}

#[test]
fn an_export_is_written_as_it_was() {
    let text = include_str!("../../../tests/namespace/export-2003.xml");
    let files = [("export.xml".to_owned(), text.as_bytes().to_vec())];
    let namespace = &read(&files).unwrap().namespaces[0].namespace;
    let written = write(namespace, Form::Export2003, &Allowed::default()).unwrap();
    assert_eq!(String::from_utf8(written.files[0].bytes.clone()).unwrap(), text);
}

#[test]
fn the_script_of_links_is_read_like_the_list() {
    let mut namespace =
        Namespace { host: "FS1".to_owned(), name: "Public".to_owned(), ..Namespace::default() };
    for (path, share) in [("a\\it's", "x"), ("b $(touch x)", "R&D"), ("-rf", "s")] {
        namespace.links.push(Link {
            path: path.to_owned(),
            targets: vec![Target {
                server: "fs1".to_owned(),
                share: share.to_owned(),
                ..Target::default()
            }],
            ..Link::default()
        });
    }
    let written = write(&namespace, Form::Msdfs, &Allowed::default()).unwrap();
    let read_one = |ending: &str| {
        let file = written.files.iter().find(|file| file.name.ends_with(ending)).unwrap();
        let files = [(file.name.clone(), file.bytes.clone())];
        read(&files).unwrap().namespaces[0].namespace.clone()
    };
    assert_eq!(read_one(".links"), read_one(".sh"));
    assert_eq!(read_one(".links").links, express(&namespace, Form::Msdfs).0.links);
}

#[test]
fn a_name_that_looks_like_a_command_does_not_change_what_a_file_is() {
    // Folded, the name begins a line of the LDIF.
    let name = format!("{} New-DfsnFolder -Path 'x", "a".repeat(68));
    let link = Link {
        path: name.clone(),
        targets: vec![Target { server: "s".to_owned(), share: name, ..Target::default() }],
        ..Link::default()
    };
    let other = Link { path: "dn: CN=a".to_owned(), ..link.clone() };
    let namespace = Namespace {
        host: "contoso.com".to_owned(),
        name: "[global]".to_owned(),
        comment: Some(format!("{}New-DfsnFolder -Path 'x", "a".repeat(59))),
        links: vec![other, link],
        ..Namespace::default()
    };
    for form in Form::WRITTEN {
        assert_eq!(through(&namespace, form), express(&namespace, form).0, "{form:?}");
    }
}

#[test]
fn losses_stop_unless_allowed() {
    let mut namespace = Namespace {
        host: "contoso.com".to_owned(),
        name: "Public".to_owned(),
        comment: Some("files".to_owned()),
        ..Namespace::default()
    };
    namespace.flags.access_based_enumeration = Some(true);
    let Err(Refusal::Losses(_, losses)) = write(&namespace, Form::Export2003, &Allowed::default())
    else {
        panic!("the flag is lost")
    };
    assert_eq!(losses.len(), 1);
    assert_eq!((losses[0].lost, losses[0].count), (Lost::Flags, 1));
    let allowed = Allowed { all: false, some: vec![Lost::Flags] };
    let written = write(&namespace, Form::Export2003, &allowed).unwrap();
    assert_eq!(written.losses, losses);
    assert_eq!(write(&namespace, Form::View, &allowed), Err(Refusal::NotWritten(Form::View)));
}

/// A namespace of a size that only mode 2008 carries.
#[test]
fn a_hundred_thousand_links_pass_through_three_forms() {
    let links = (0..100_000).map(|number: u32| Link {
        path: format!("Department {}\\R&D {number}", number % 100),
        ttl_s: Some(number),
        targets: vec![Target {
            server: format!("fs{}.contoso.com", number % 40),
            share: format!("s{number}$"),
            ..Target::default()
        }],
        ..Link::default()
    });
    let namespace = Namespace {
        host: "contoso.com".to_owned(),
        name: "Public".to_owned(),
        links: links.collect(),
        ..Namespace::default()
    };
    let mut current = namespace.clone();
    for form in [Form::Export2008, Form::DirectoryV1] {
        current = through(&current, form);
        assert_eq!(current.links.len(), namespace.links.len());
    }
    let paths = |namespace: &Namespace| {
        let links = namespace.links.iter();
        links
            .map(|link| (link.path.clone(), link.ttl_s, link.targets[0].share.clone()))
            .collect::<Vec<_>>()
    };
    assert!(paths(&current) == paths(&namespace));
    let links = through(&namespace, Form::Msdfs);
    assert_eq!(links.links.len(), namespace.links.len());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn each_form_reads_what_it_writes(namespace in namespace()) {
        for form in Form::WRITTEN {
            let (held, _) = express(&namespace, form);
            let (again, losses) = express(&held, form);
            prop_assert_eq!(&again, &held, "{:?} holds what it holds", form);
            prop_assert_eq!(losses, vec![], "{:?}", form);
            prop_assert_eq!(through(&namespace, form), held, "{:?}", form);
        }
    }

    #[test]
    fn each_form_to_each_other_and_back_keeps_what_both_hold(namespace in namespace()) {
        for one in Form::WRITTEN {
            let (first, _) = express(&namespace, one);
            for other in Form::WRITTEN {
                let (common, _) = express(&first, other);
                let back = through(&through(&first, other), one);
                prop_assert_eq!(back, express(&common, one).0, "{:?} to {:?} and back", one, other);
            }
        }
    }
}
