//! Stages after the cut-over, and the notes of a plan.

use super::context::{Context, any, counted, powershell, stage, step, target_path};
use super::servers::{collect_step, show_step};
use super::{GateRule, Impact, Stage, StageId, offline};
use crate::namespace::model::Kind;
use crate::namespace::names::{Servers, is_qualified};
use crate::namespace::waits::wait;
use crate::script::quote::word;

/// Names in a note.
const NAMED: usize = 5;

pub(super) fn verify(context: &Context<'_>) -> Stage {
    let root = context.root_word();
    let links = context.namespace.links.len();
    let after = context.file("after.xml");
    let mut stage = stage(
        StageId::Verify,
        "Verify the namespace",
        "A namespace can be complete in the directory and still be wrong for clients.",
    );
    stage.steps.push(
        step(
            "Let dfsdiag check it",
            vec![any(vec![
                format!("dfsdiag.exe /TestDFSConfig /DFSRoot:{root}"),
                format!("dfsdiag.exe /TestDFSIntegrity /DFSRoot:{root} /Recurse /Full"),
                format!("dfsdiag.exe /TestReferral /DFSPath:{root} /Full"),
            ])],
        )
        .shows("no error"),
    );
    let servers: Vec<_> = context.finally().iter().map(target_path).collect();
    stage.steps.push(show_step(context, format!("{}, all online", servers.join(", "))));
    let rewritten = if context.is_rebuilt {
        context.file("rewritten.xml")
    } else {
        context.file("original.xml")
    };
    stage.steps.push(
        step(
            "Export it again, and compare with the file that was imported",
            vec![any(vec![
                format!("dfsutil root export {root} {after}"),
                format!("smbscope plan namespace {after} --compare {rewritten}"),
            ])],
        )
        .shows(format!("{}, no difference", counted(links, "link"))),
    );
    stage.steps.push(
        step(
            "Ask for the root as a client without a cache, on one client of each site",
            vec![any(vec![
                "dfsutil cache referral flush".to_owned(),
                "dfsutil cache domain flush".to_owned(),
                format!("dir {root}"),
                "dfsutil cache referral".to_owned(),
            ])],
        )
        .at("a client of each site, as administrator")
        .shows("the new servers with their FQDNs, AccessStatus 0 ( ACTIVE"),
    );
    // A root that was created again has its TTL from the stage before.
    if context.moving_ttl_s != context.root_ttl_s && !context.is_rebuilt {
        let (root, ttl) = (context.root_word(), context.root_ttl_s);
        let line = format!("Set-DfsnRoot -Path {root} -TimeToLiveSec {ttl}");
        stage.steps.push(step("Set the TTL of the root as it was", vec![powershell(vec![line])]));
    }
    stage.undo_note = "To go back, see the stage before.".to_owned();
    stage.takes(900, 7_200, "dfsdiag asks for each target of each link")
}

/// The last wait: links that clients hold from before the cut-over.
pub(super) fn settle(context: &Context<'_>) -> Option<Stage> {
    if !context.is_rebuilt {
        return None;
    }
    let mut stage = stage(
        StageId::Settle,
        "Wait until clients have the rewritten links",
        "Until then the names and shares of the export's old form are in use. After it, the old servers may be switched off, unless they are targets of links.",
    );
    stage.requires.push("old names in the directory and in DNS still resolve".to_owned());
    stage.wait = Some(wait(context.link_ttl_s, &context.wanted.assumed));
    stage.steps.push(collect_step(&[]));
    stage.undo_note = "Nothing to undo. Keep the files of the move.".to_owned();
    let rule = GateRule::LinksRewritten;
    Some(
        stage
            .takes(600, 3_600, "collecting the caches of the clients")
            .impact(Impact::Nothing, "Users notice nothing: old names lead to the same servers.")
            .gated(rule, StageId::CutOver),
    )
}

/// What to know before the first stage.
pub(super) fn notes(context: &Context<'_>) -> Vec<String> {
    let mut notes = vec![
        "All lines are for PowerShell, also those of dfsutil. A line without quotes, $ and braces works at the command prompt as well.".to_owned(),
    ];
    let namespace = context.namespace;
    if namespace.kind.is_none() {
        let root = context.root_word();
        notes.push(format!(
            "The input does not say the mode of the namespace; the plan takes it to be Windows 2000 Server mode. See `Get-DfsnRoot -Path {root}`."
        ));
    } else if !context.is_rebuilt {
        notes.push("The namespace already has the wanted mode: only its servers change, and the root is not removed.".to_owned());
    }
    if namespace.targets.is_empty() {
        notes.push("The input has no namespace servers; those of the command line are taken. Compare with `dfsutil root`.".to_owned());
    }
    let offline: Vec<_> = offline(namespace).take(NAMED).collect();
    if !offline.is_empty() {
        notes.push(format!("Already offline: {}.", offline.join(", ")));
    }
    let old = Servers::new(context.old.iter().map(|server| server.name.as_str()));
    let targets = || namespace.links.iter().flat_map(|link| &link.targets);
    let on_old = targets().filter(|target| old.contains(&target.server)).count();
    if on_old > 0 {
        notes.push(format!(
            "{} of links {} on servers that leave: they only end their role as namespace servers, and their shares must stay.",
            counted(on_old, "target"),
            if on_old == 1 { "is" } else { "are" }
        ));
    }
    let is_short = |name: &str| !is_qualified(name);
    let short = targets().filter(|target| is_short(&target.server)).count();
    if short > 0 {
        notes.push(format!(
            "{} of links {} a short name, which the rewrite makes an FQDN.",
            counted(short, "target"),
            if short == 1 { "has" } else { "have" }
        ));
    }
    if context.remaining().count() == 1 {
        notes.push(
            "One namespace server remains: if it fails, the namespace is gone. Two are the least."
                .to_owned(),
        );
    }
    if context.suffix.is_none() {
        notes.push("The domain of short names is not known: name it, or the new servers are added by their short names.".to_owned());
    }
    let name = namespace.name.to_lowercase();
    if namespace.targets.iter().any(|target| target.share.to_lowercase() != name) {
        notes.push(format!("The root's share is not named like the namespace ({}): check the share in each command.", namespace.name));
    }
    if context.wanted.assumed.has_renewing_clients {
        notes.push("Clients before Windows XP SP2 keep a list for as long as they use it: only a pause longer than the TTL, or a restart, ends it.".to_owned());
    }
    if context.wanted.to == Kind::DomainV1 {
        notes.push("Windows 2000 Server mode has no access-based enumeration, and holds about 5,000 links.".to_owned());
    }
    let tool = word(&context.wanted.work_folder);
    notes.push(format!("Files of the move are written to {tool} on the machine where a command runs: create it there first, and keep the files."));
    notes
}
