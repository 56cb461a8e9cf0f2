//! The cut-over: the root is removed, created in the other mode, and filled from the rewritten export.
//!
//! "Migrate a domain-based namespace to Windows Server 2008 mode" (windowsserverdocs): the import before the other
//! servers join, on a namespace server. The new root has a short TTL until the move is over: while its first server is the
//! only one, clients get lists of one server.

use super::context::{Context, any, counted, dfsutil, mode, powershell, stage, step};
use super::servers::{add_step, show_step, states};
use super::{Impact, Server, Stage, StageId, Step, lost};
use crate::namespace::model::Kind;
use crate::script::quote::word;

/// No import is estimated to take longer.
const IMPORT_S_MAX: u64 = 30 * 86_400;
/// Seconds for the removal, the new root and each other server.
const ROOT_S: u64 = 60;

pub(super) fn cut_over(context: &Context<'_>) -> Stage {
    let wanted = context.wanted;
    let [original, rewritten, back] =
        ["original.xml", "rewritten.xml", "back.xml"].map(|file| context.file(file));
    let before = context.file("before.xml");
    let root = context.root_word();
    let servers = context.finally();
    let servers: Vec<&Server> = servers.iter().collect();
    let mut stage = stage(
        StageId::CutOver,
        &format!("Create the root again in {}", mode(wanted.to)),
        "The mode of a namespace cannot be changed: its root is removed and created again. This is the only stage in which accesses fail.",
    );
    let Some(first) = servers.first() else { return stage };
    let machine = first.name.clone();
    stage.requires.extend([
        "the gate before says go, and the old servers are removed".to_owned(),
        format!(
            "{original}, {rewritten} and {back} are on {machine}, and the difference between them was read"
        ),
        "everything of the list of what is not imported is saved".to_owned(),
        "the rewritten export was imported into a namespace for trial, and the time was taken"
            .to_owned(),
    ]);
    stage.requires.extend(context.mode_condition());
    let at = |step: Step| {
        step.at(format!("{machine}, locally: an import over the network takes longer"))
    };
    stage.steps.push(
        at(step(
            "Export once more, and compare with the original: nothing may have changed meanwhile",
            vec![
                any(vec![
                    format!("dfsutil root export {root} {before}"),
                    format!("fc.exe /u {original} {before}"),
                ])
                .note("root targets differ, because servers joined and left"),
            ],
        ))
        .shows("no difference in links"),
    );
    let remove = at(step(
        "Remove the root. From here on new accesses fail",
        vec![
            dfsutil(vec![format!("dfsutil root remove {root}")]),
            powershell(vec![format!("Remove-DfsnRoot -Path {root} -Force")]),
        ],
    ));
    stage.steps.push(remove.clone());
    stage.steps.push(at(create(context, first, wanted.to)));
    stage.steps.push(
        at(step(
            "Import the rewritten export. With its end accesses work again",
            vec![any(vec![format!("dfsutil root import merge {rewritten} {root}")])],
        ))
        .shows(created(context)),
    );
    let others: Vec<_> = servers.iter().skip(1).copied().collect();
    if !others.is_empty() {
        let does =
            "Add the other namespace servers, after the import: each then reads all links at once";
        stage.steps.push(at(add_step(context, &others, false, does)));
    }
    stage.steps.extend(context.synchronise(&servers));
    stage.steps.push(show_step(context, states(&servers)));
    stage.undo = undo(context, remove).into_iter().map(at).collect();
    stage.undo.extend(context.synchronise(&context.remaining().collect::<Vec<_>>()));
    stage.undo_note =
        "Going back takes as long as the cut-over, and accesses fail meanwhile as well.".to_owned();
    let import = context.namespace.links.len() as f64 / wanted.import_links_per_s;
    let import = (import.ceil() as u64).min(IMPORT_S_MAX);
    let (least, most) =
        (2 * ROOT_S + import / 2, 2 * ROOT_S + 2 * import + ROOT_S * servers.len() as u64);
    let away = most + u64::from(wanted.assumed.replication_s);
    stage
        .takes(
            least,
            most,
            format!(
                "the import of {} at {} a second, an assumption: take the time of a trial import",
                counted(context.namespace.links.len(), "link"),
                wanted.import_links_per_s
            ),
        )
        .impact(
            Impact::Failures,
            format!(
                "New accesses fail from the removal until the import has reached the client's domain controller: at most about {}. Open files stay open, and a client that has a link in its cache uses it for the rest of its TTL (up to {}).",
                minutes(away),
                minutes(u64::from(context.link_ttl_s))
            ),
        )
}

/// The way back to the root of before, with its servers, settings and TTL.
fn undo(context: &Context<'_>, remove: Step) -> Vec<Step> {
    let (root, back) = (context.root_word(), context.file("back.xml"));
    let kind = context.from.unwrap_or(Kind::DomainV1);
    let mut servers: Vec<_> = context.remaining().collect();
    servers.sort_by_key(|server| server.is_offline());
    let mut steps = vec![remove];
    let Some((first, others)) = servers.split_first() else { return steps };
    steps.push(create(context, first, kind));
    steps.push(step(
        "Import the export for the way back",
        vec![any(vec![format!("dfsutil root import merge {back} {root}")])],
    ));
    if !others.is_empty() {
        let does = "Add the other namespace servers, in their states";
        steps.push(add_step(context, others, false, does));
    }
    steps.extend(lost::lost(context, kind).into_iter().filter_map(|one| one.restore));
    if context.moving_ttl_s != context.creation_ttl_s() {
        steps
            .push(context.set_ttl(context.moving_ttl_s, "Set the TTL as it was before this stage"));
    }
    steps
}

/// What the import must report.
fn created(context: &Context<'_>) -> String {
    let links = counted(context.namespace.links.len(), "link");
    match context.wanted.accepted.is_empty() {
        true => format!("{links} created, no error"),
        false => format!("{links} less those of the accepted findings; no other error"),
    }
}

/// Creates the root on a server.
fn create(context: &Context<'_>, server: &Server, kind: Kind) -> Step {
    let root = context.root_word();
    let target = context.target(server);
    let (old, new) = match kind {
        Kind::DomainV1 => ("v1", "DomainV1"),
        _ => ("v2", "DomainV2"),
    };
    let ttl = context.creation_ttl_s();
    step(
        format!("Create the root in {}", mode(kind)),
        vec![
            // Its TTL is the usual one, 300 s.
            dfsutil(vec![format!("dfsutil root adddom {target} {old}")]),
            powershell(vec![format!(
                "New-DfsnRoot -Path {root} -TargetPath {target} -Type {new} -TimeToLiveSec {ttl}"
            )]),
        ],
    )
}

/// `about 12 minutes`, or hours.
pub(super) fn minutes(seconds: u64) -> String {
    match seconds {
        0..=119 => format!("{seconds} seconds"),
        120..=7_199 => format!("{} minutes", seconds.div_ceil(60)),
        _ => format!("{} hours", seconds.div_ceil(3_600)),
    }
}

/// Brings back what an import does not.
pub(super) fn restore(context: &Context<'_>) -> Stage {
    let mut stage = stage(
        StageId::Restore,
        "Restore what the import does not bring back",
        "Links and targets are there again. Settings of the root, priorities, permissions and delegation are not.",
    );
    stage.requires.push("the files of the first stage".to_owned());
    let restores = lost::lost(context, context.wanted.to).into_iter();
    stage.steps.extend(restores.filter_map(|one| one.restore));
    let root = context.root_word();
    stage.steps.push(
        step(
            "Show the settings of the root, and compare with the saved ones",
            vec![powershell(vec![format!("Get-DfsnRoot -Path {root} | Format-List *")])],
        )
        .shows(format!(
            "the values of {}, except for the TTL, which the last stage raises",
            word(&format!(
                r"{}\{}.settings.csv",
                context.wanted.work_folder, context.namespace.name
            ))
        )),
    );
    stage.undo_note = "Nothing to undo: these are the settings of before, and the undo of the cut-over sets them again.".to_owned();
    let links = context.namespace.links.len() as u64;
    stage
        .takes(
            600 + links / 20,
            3_600 + links / 2,
            "one call for each folder with priorities or permissions",
        )
        .impact(
            Impact::Nothing,
            "Until priorities and site costing are back, clients may use a target in another site.",
        )
}
