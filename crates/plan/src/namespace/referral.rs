//! Referrals of a capture, and the namespaces that their clients see.
//!
//! The rows come from the caller, who decodes captures (table `referrals`, or `smbscope_wire::dfs`). A referral names the
//! path that it covers, its targets in their order, and a TTL (\[MS-DFSC\] 2.2.5); states and comments are not in it.

use std::collections::HashMap;

use serde::Serialize;

use super::form::{folded, split_target, split_unc};
use super::model::{Link, Namespace, Target};

/// One answer to a request for a referral.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ReferralRow {
    pub client: String,
    /// The server that answered.
    pub server: String,
    /// When it was asked, in nanoseconds since 1970.
    pub at_ns: i64,
    /// The path asked: `\contoso.com\Public\Accounting\file.txt`.
    pub path: String,
    /// The part of it that the answer covers; empty if the answer does not say.
    pub dfs_path: String,
    /// `\server\share`, in the order of the answer.
    pub targets: Vec<String>,
    pub ttl_s: Option<u32>,
    pub elapsed_ns: Option<i64>,
}

/// The namespaces that answers describe: the last answer for each path counts. Answers without the path that they cover
/// (version 1, lists of domains) are left out.
pub fn namespaces(rows: &[ReferralRow]) -> Vec<Namespace> {
    let mut out: Vec<Namespace> = Vec::new();
    let mut by_path: HashMap<String, usize> = HashMap::new();
    let mut links: HashMap<(usize, String), usize> = HashMap::new();
    for row in rows.iter().filter(|row| !row.targets.is_empty()) {
        let Some((host, name, below)) = split_unc(&row.dfs_path) else { continue };
        let number = *by_path.entry(folded(&format!("{host}\\{name}"))).or_insert_with(|| {
            out.push(Namespace {
                host: host.to_owned(),
                name: name.to_owned(),
                ..Namespace::default()
            });
            out.len() - 1
        });
        let targets = row.targets.iter().filter_map(|path| {
            let (server, share) = split_target(path)?;
            Some(Target { server: server.to_owned(), share: share.to_owned(), ..Target::default() })
        });
        let namespace = &mut out[number];
        if below.is_empty() {
            namespace.targets = targets.collect();
            namespace.ttl_s = row.ttl_s;
            continue;
        }
        let link = *links.entry((number, folded(below))).or_insert_with(|| {
            namespace.links.push(Link { path: below.to_owned(), ..Link::default() });
            namespace.links.len() - 1
        });
        let link = &mut namespace.links[link];
        link.targets = targets.collect();
        link.ttl_s = row.ttl_s;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_become_a_namespace() {
        let row = |path: &str, targets: &[&str], ttl_s: u32| ReferralRow {
            dfs_path: path.to_owned(),
            targets: targets.iter().map(|target| (*target).to_owned()).collect(),
            ttl_s: Some(ttl_s),
            ..ReferralRow::default()
        };
        let rows = [
            row("\\c.com\\Public", &["\\root1\\Public"], 300),
            row("\\c.com\\Public\\a", &["\\old\\a"], 1800),
            row("\\C.COM\\public\\A", &["\\fs1\\a\\b", "\\fs2\\a"], 60),
            row("", &["\\x\\y"], 1),
            row("\\c.com\\Public\\b", &[], 1),
        ];
        let all = namespaces(&rows);
        let [namespace] = all.as_slice() else { panic!("one namespace") };
        assert_eq!((namespace.ttl_s, namespace.targets[0].server.as_str()), (Some(300), "root1"));
        let [link] = namespace.links.as_slice() else { panic!("one link") };
        assert_eq!((link.path.as_str(), link.ttl_s), ("a", Some(60)));
        let shares: Vec<_> = link.targets.iter().map(|target| target.share.as_str()).collect();
        assert_eq!(shares, ["a\\b", "a"]);
    }
}
