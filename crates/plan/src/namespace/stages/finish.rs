//! Stages after the cut-over, and the notes of a plan.

use super::context::{Context, any, counted, powershell, stage, step};
use super::servers::{collect_step, show_step, states};
use super::{GateRule, Impact, Stage, StageId, Step};
use crate::namespace::model::{Kind, Link, State, Target};
use crate::namespace::names::{Servers, is_qualified};
use crate::namespace::waits::wait;
use crate::script::names::is_powershell_only;
use crate::script::quote::{powershell as verbatim, word};

/// Links to other namespaces that are opened.
const INTERLINKS_MAX: usize = 20;

/// Names in a note.
const NAMED: usize = 5;

pub(super) fn verify(context: &Context<'_>) -> Stage {
    let root = context.root_word();
    let (dfs_root, dfs_path) = (context.option("/DFSRoot:"), context.option("/DFSPath:"));
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
                format!("dfsdiag.exe /TestDFSConfig {dfs_root}"),
                format!("dfsdiag.exe /TestDFSIntegrity {dfs_root} /Recurse /Full"),
                format!("dfsdiag.exe /TestReferral {dfs_path} /Full"),
            ])],
        )
        .shows("no error"),
    );
    let servers = context.finally();
    stage.steps.push(show_step(context, states(&servers.iter().collect::<Vec<_>>())));
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
                format!("smbscope plan namespace {after} --resolve"),
            ])],
        )
        .shows(format!(
            "{}: no difference but the namespace servers, and no name that does not resolve",
            counted(links, "link")
        )),
    );
    stage.steps.extend(interlinks(context));
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
    stage.undo_note = "To go back, see the stage before.".to_owned();
    stage.takes(900, 7_200, "dfsdiag asks for each target of each link")
}

/// Links that lead through another namespace: the comparison cannot see whether they do.
fn interlinks(context: &Context<'_>) -> Option<Step> {
    let is_open = |target: &Target| {
        target.state == State::Online && context.domain_hosts.contains(target.server.as_str())
    };
    let leads_on = |link: &&Link| link.state == State::Online && link.targets.iter().any(is_open);
    let links = context.namespace.links.iter().filter(leads_on).take(INTERLINKS_MAX);
    let lines: Vec<_> = links
        .map(|link| {
            let path = verbatim(&format!(r"{}\{}", context.root, link.path));
            format!("Test-Path -LiteralPath {path}")
        })
        .collect();
    (!lines.is_empty()).then(|| {
        step("Open the links that lead to another namespace", vec![powershell(lines)])
            .at("a client")
            .shows("True for each")
    })
}

/// The last change: clients may keep lists for as long as before.
pub(super) fn raise_ttl(context: &Context<'_>) -> Option<Stage> {
    let (now, after) = (context.last_ttl_s(), context.root_ttl_s);
    if now == after {
        return None;
    }
    let mut stage = stage(
        StageId::RaiseTtl,
        "Set the TTL of the root as it was",
        "Until here a step back reaches clients soon. From here on they keep a list for the whole TTL.",
    );
    stage.requires.push(match context.is_rebuilt {
        true => "the gate of stage settle says go: nothing is taken back any more".to_owned(),
        false => "stage verify found nothing: nothing is taken back any more".to_owned(),
    });
    stage.steps.push(context.set_ttl(after, &format!("Set the TTL from {now} s to {after} s")));
    stage.undo.push(context.set_ttl(now, "Set the short TTL again"));
    // Clients that asked meanwhile keep their list that long.
    let wait = wait(after, &context.wanted.assumed);
    let does = "Before more is undone, wait until no client has a list with the long TTL";
    stage.undo.push(step(does, vec![any(vec![format!("Start-Sleep -Seconds {}", wait.total_s)])]));
    Some(stage)
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
    if let Some(condition) = context.mode_condition() {
        let why = match namespace.needed_kind() {
            Some(_) => {
                "it has what only Windows Server 2008 mode has (access-based enumeration), so that it is likely in this mode already"
            }
            None => "the plan takes it to be in Windows 2000 Server mode",
        };
        notes.push(format!("The input does not say the mode of the namespace: {why}. Before anything else: {condition}."));
    } else if !context.is_rebuilt {
        notes.push("The namespace already has the wanted mode: only its servers change, and the root is not removed.".to_owned());
    }
    if namespace.targets.is_empty() {
        notes.push("The input has no namespace servers; those of the command line are taken. Compare with `dfsutil root`.".to_owned());
    }
    let offline = context.everyone().filter(|server| server.is_offline());
    let offline: Vec<_> = offline.map(|server| server.name.as_str()).take(NAMED).collect();
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
    let is_short = |name: &str| !is_qualified(name) && !context.domain_hosts.contains(name);
    let short = targets().filter(|target| is_short(&target.server)).count();
    let on_domains =
        targets().filter(|target| context.domain_hosts.contains(target.server.as_str())).count();
    if on_domains > 0 {
        notes.push(format!(
            "{} of links {} to another namespace: the rewrite leaves {} as {}.",
            counted(on_domains, "target"),
            if on_domains == 1 { "leads" } else { "lead" },
            if on_domains == 1 { "it" } else { "them" },
            if on_domains == 1 { "it is" } else { "they are" },
        ));
    }
    if short > 0 && context.is_rebuilt {
        notes.push(format!(
            "{} of links {} a short name, which the rewrite makes an FQDN.",
            counted(short, "target"),
            if short == 1 { "has" } else { "have" }
        ));
    }
    if context.remaining().count() == 1 {
        let before = context.old.len() + context.kept.len();
        notes.push(match before {
            0 | 1 => "One namespace server remains: if it fails, the namespace is gone. Two are the least.".to_owned(),
            _ => format!("The namespace loses its redundancy: of {before} servers one remains, and if it fails, the namespace is gone. Two are the least."),
        });
    }
    if is_powershell_only(&namespace.name) {
        notes.push("The name of the namespace has both & or ^ and one of $ ` % !: its commands work in PowerShell only, never at the command prompt.".to_owned());
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
