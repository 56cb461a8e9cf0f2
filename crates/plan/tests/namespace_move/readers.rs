//! The case study with the product's readers, rewrite and writer, without help of this test.

use smbscope_plan::namespace::form::Form;
use smbscope_plan::namespace::gate::collected;
use smbscope_plan::namespace::model::{ClientCache, Kind, Namespace};
use smbscope_plan::namespace::read::read;
use smbscope_plan::namespace::rewrite::{Rules, SuffixRule, rewrite};
use smbscope_plan::namespace::stages::{StageId, plan};
use smbscope_plan::namespace::write::{Allowed, write};

use super::case;

fn export(text: &str) -> Namespace {
    let reading = read(&[("export.xml".to_owned(), text.as_bytes().to_vec())]).unwrap();
    reading.namespaces[0].namespace.clone()
}

/// The reader of caches as the gate needs it.
pub fn cache(text: &str) -> Result<ClientCache, String> {
    let reading =
        read(&[(String::new(), text.as_bytes().to_vec())]).map_err(|error| error.message)?;
    reading.caches.into_iter().next().ok_or_else(|| "no cache".to_owned())
}

#[test]
fn the_export_is_the_namespace_of_the_case() {
    let read = export(case::EXPORT);
    let made = case::namespace();
    assert_eq!((read.host, read.name, read.ttl_s), (made.host, made.name, made.ttl_s));
    let servers = |namespace: &[smbscope_plan::namespace::model::Target]| {
        namespace
            .iter()
            .map(|one| (one.server.clone(), one.share.clone(), one.state))
            .collect::<Vec<_>>()
    };
    assert_eq!(servers(&read.targets), servers(&made.targets));
    assert_eq!(read.links.len(), made.links.len());
    for (read, made) in read.links.iter().zip(&made.links) {
        assert_eq!((&read.path, read.ttl_s), (&made.path, made.ttl_s));
        assert_eq!(servers(&read.targets), servers(&made.targets));
    }
}

#[test]
fn the_rewrite_is_that_of_find_and_replace() {
    let rules = Rules {
        suffixes: vec![SuffixRule {
            names: String::new(),
            suffix: "child.corp.contoso.com".to_owned(),
        }],
        ..Rules::default()
    };
    let rewritten = rewrite(&export(case::EXPORT), &rules);
    assert!(rewritten.short_names.is_empty());
    // As a namespace, and as written: the reader of the replaced text gives the same.
    assert_eq!(rewritten.namespace, export(case::REWRITTEN));
    let written =
        write(&rewritten.namespace, Form::Export2008, &Allowed { all: true, some: Vec::new() });
    let text = String::from_utf8(written.unwrap().files[0].bytes.clone()).unwrap();
    assert_eq!(export(&text), rewritten.namespace);
    // Byte for byte, except that the & is escaped as it must be.
    assert_eq!(text.replace("R&amp;D", "R&D"), case::REWRITTEN);
}

#[test]
fn the_caches_are_read_and_planned_with() {
    for (text, servers) in [(case::BEFORE, 3), (case::DURING, 6), (case::AFTER, 3)] {
        let own = case::cache(text, 0);
        let mut read = cache(text).unwrap();
        assert_eq!(read.referrals.len(), own.referrals.len());
        assert_eq!(read.referrals[0].targets.len(), servers);
        read.client.clone_from(&own.client);
        read.read_at_s = own.read_at_s;
        for (read, own) in read.referrals.iter().zip(&own.referrals) {
            assert_eq!(
                (&read.entry, read.expires_s, read.use_count),
                (&own.entry, own.expires_s, own.use_count)
            );
            let names = |one: &smbscope_plan::namespace::model::CachedReferral| {
                one.targets
                    .iter()
                    .map(|target| (target.server.clone(), target.active))
                    .collect::<Vec<_>>()
            };
            assert_eq!(names(read), names(own));
        }
    }
    let text = format!(
        "smbscope-client: PC17 2014-06-23T11:00:00Z\nsmbscope-section: referrals\n{}\nsmbscope-section: opens\n",
        case::DURING
    );
    let all = collected::read(&text, "", cache);
    assert_eq!((all.caches.len(), all.unread.len()), (1, 0), "{:?}", all.unread);
    assert_eq!(all.caches[0].client, "PC17");
    let mut namespace = export(case::EXPORT);
    namespace.kind = Some(Kind::DomainV1);
    let made = plan(&namespace, &case::wanted()).unwrap();
    assert!(made.stage(StageId::CutOver).is_some());
}
