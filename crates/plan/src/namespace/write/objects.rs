//! Objects of `Get-DfsnRoot` and its companions as JSON: one array.

use serde_json::{Map, Value, json};

use super::super::form::priority_name_powershell;
use super::super::model::{Flags, Kind, Namespace, State, Target};
use std::collections::BTreeMap;

pub(super) fn write(namespace: &Namespace) -> String {
    let root = format!("\\\\{}\\{}", namespace.host, namespace.name);
    let mut all = Vec::with_capacity(2 * namespace.links.len() + 1);
    let mut object = common(&root, namespace.state, namespace.ttl_s, namespace.comment.as_ref());
    if let Some(kind) = namespace.kind.and_then(kind_name) {
        object.insert("Type".to_owned(), json!(kind));
    }
    object.insert("Flags".to_owned(), json!(flag_names(&namespace.flags)));
    others(&mut object, &namespace.other);
    all.push(Value::Object(object));
    all.extend(namespace.targets.iter().map(|one| target(&root, one)));
    for link in &namespace.links {
        let path = format!("{root}\\{}", link.path);
        let mut object = common(&path, link.state, link.ttl_s, link.comment.as_ref());
        object.insert("Flags".to_owned(), json!(flag_names(&link.flags)));
        others(&mut object, &link.other);
        all.push(Value::Object(object));
        all.extend(link.targets.iter().map(|one| target(&path, one)));
    }
    let mut text = serde_json::to_string_pretty(&all).unwrap_or_default();
    text.push('\n');
    text
}

/// The type as PowerShell prints it.
pub(super) fn kind_name(kind: Kind) -> Option<&'static str> {
    match kind {
        Kind::Standalone => Some("Standalone"),
        Kind::DomainV1 => Some("Domain V1"),
        Kind::DomainV2 => Some("Domain V2"),
        Kind::Samba => None,
    }
}

fn state_name(state: State) -> &'static str {
    if state == State::Offline { "Offline" } else { "Online" }
}

fn common(
    path: &str,
    state: State,
    ttl_s: Option<u32>,
    comment: Option<&String>,
) -> Map<String, Value> {
    let mut object = Map::new();
    object.insert("Path".to_owned(), json!(path));
    object.insert("State".to_owned(), json!(state_name(state)));
    if let Some(ttl_s) = ttl_s {
        object.insert("TimeToLiveSec".to_owned(), json!(ttl_s));
    }
    if let Some(comment) = comment {
        object.insert("Description".to_owned(), json!(comment));
    }
    object
}

fn flag_names(flags: &Flags) -> Vec<&'static str> {
    [
        ("Target Failback", flags.target_failback),
        ("Site Costing", flags.site_costing),
        ("Insite Referrals", flags.insite_referrals),
        ("Root Scalability", flags.root_scalability),
        ("AccessBased Enumeration", flags.access_based_enumeration),
    ]
    .into_iter()
    .filter(|(_, flag)| *flag == Some(true))
    .map(|(name, _)| name)
    .collect()
}

fn target(path: &str, target: &Target) -> Value {
    let mut object = Map::new();
    object.insert("Path".to_owned(), json!(path));
    object
        .insert("TargetPath".to_owned(), json!(format!("\\\\{}\\{}", target.server, target.share)));
    object.insert("State".to_owned(), json!(state_name(target.state)));
    if let Some(class) = target.priority_class {
        object.insert("ReferralPriorityClass".to_owned(), json!(priority_name_powershell(class)));
    }
    if let Some(rank) = target.priority_rank {
        object.insert("ReferralPriorityRank".to_owned(), json!(rank));
    }
    others(&mut object, &target.other);
    Value::Object(object)
}

/// Properties that are kept from objects that were read.
fn others(object: &mut Map<String, Value>, other: &BTreeMap<String, String>) {
    for (key, value) in other {
        if let Some(name) = key.strip_prefix("objects:") {
            object.insert(name.to_owned(), json!(value));
        }
    }
}
