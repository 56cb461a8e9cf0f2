//! Stages in which namespace servers join and leave, with a gate between: at every time, each client's list has a
//! server that answers.

use super::context::{
    Context, UNCONFIRMED, any, counted, dfsutil, powershell, stage, step, target_path,
};
use super::lost::priorities_of_servers as priorities;
use super::{GateRule, Impact, Server, Stage, StageId, Step};
use crate::namespace::model::State;
use crate::namespace::waits::wait;
use crate::script::quote::{powershell as verbatim, word};

/// The stages from the first new server to the last old one.
pub(super) fn stages(context: &Context<'_>) -> Vec<Stage> {
    let mut stages = Vec::new();
    if !context.new.is_empty() {
        stages.push(add(context));
        stages.push(refresh(context));
        stages.push(wait_new(context));
    }
    if !context.old.is_empty() {
        stages.push(disable(context));
        stages.push(wait_old(context));
        stages.push(remove(context));
    }
    stages
}

/// Adds namespace servers, each in a state: its own, or offline.
pub(super) fn add_step(
    context: &Context<'_>,
    servers: &[&Server],
    all_offline: bool,
    does: &str,
) -> Step {
    let root = context.root_word();
    let is_offline = |server: &Server| all_offline || server.is_offline();
    let old = servers.iter().flat_map(|server| {
        let target = context.target(server);
        let offline =
            is_offline(server).then(|| format!("dfsutil property state offline {target}"));
        std::iter::once(format!("dfsutil target add {target}")).chain(offline)
    });
    let new = servers.iter().map(|server| {
        let state = if is_offline(server) { " -State Offline" } else { "" };
        let target = context.target(server);
        format!("New-DfsnRootTarget -Path {root} -TargetPath {target}{state}")
    });
    step(
        does,
        vec![
            dfsutil(old.collect())
                .note("if a server refuses because it still has an old root of this name: dfsutil diag clean with its target, then once more"),
            powershell(new.collect()),
        ],
    )
}

/// Removes a namespace server, and leaves its share.
fn remove_step(context: &Context<'_>, servers: &[&Server], does: &str) -> Step {
    let root = context.root_word();
    let old =
        servers.iter().map(|server| format!("dfsutil target remove {}", context.target(server)));
    let new = servers.iter().map(|server| {
        format!(
            "Remove-DfsnRootTarget -Path {root} -TargetPath {} -Confirm:$false",
            context.target(server)
        )
    });
    step(
        does,
        vec![
            dfsutil(old.collect()),
            powershell(new.collect()).note("without -Cleanup: the share and its folder stay"),
        ],
    )
}

/// Sets the state of root targets.
fn state_step(context: &Context<'_>, servers: &[&Server], state: &str, does: &str) -> Step {
    let root = context.root_word();
    let lower = state.to_lowercase();
    let old = servers
        .iter()
        .map(|server| format!("dfsutil property state {lower} {}", context.target(server)));
    let new = servers.iter().map(|server| {
        format!(
            "Set-DfsnRootTarget -Path {root} -TargetPath {} -State {state}",
            context.target(server)
        )
    });
    step(does, vec![dfsutil(old.collect()).note(UNCONFIRMED), powershell(new.collect())])
}

/// The states of servers, as a step shows them.
pub(super) fn states(servers: &[&Server]) -> String {
    let of = |server: &&Server| {
        let state = if server.is_offline() { "offline" } else { "online" };
        format!("{} {state}", target_path(server))
    };
    servers.iter().map(of).collect::<Vec<_>>().join(", ")
}

/// Shows the root targets.
pub(super) fn show_step(context: &Context<'_>, shows: String) -> Step {
    let root = context.root_word();
    step(
        "Show the namespace servers",
        vec![
            dfsutil(vec![format!("dfsutil root {root}")]),
            powershell(vec![format!(
                "Get-DfsnRootTarget -Path {root} | Format-Table TargetPath, State"
            )]),
        ],
    )
    .shows(shows)
}

fn add(context: &Context<'_>) -> Stage {
    let servers: Vec<_> = context.new.iter().collect();
    let mut stage = stage(
        StageId::Add,
        "Add the new namespace servers",
        "Clients that ask from now on get old and new servers in one list: if a server fails, they try the next.",
    );
    stage.requires.push("the new servers share the root's folder".to_owned());
    stage.steps.push(add_step(context, &servers, false, "Add each new server by its FQDN"));
    let all: Vec<_> = context.everyone().collect();
    stage.steps.push(show_step(context, states(&all)));
    stage.undo = undo_add(context, &servers);
    stage.undo_note = "The wait can be shorter where no client has got a list yet.".to_owned();
    let count = counted(servers.len(), "server");
    stage.takes(
        30 * servers.len() as u64,
        120 * servers.len() as u64,
        format!("half a minute to two minutes for each of {count}, which then reads all links"),
    )
}

/// New servers leave as old ones do: out of new lists first, then out of the lists that clients hold.
fn undo_add(context: &Context<'_>, servers: &[&Server]) -> Vec<Step> {
    let does = "Set the new servers offline, so that no client gets them any more";
    let mut steps = vec![state_step(context, servers, "Offline", does)];
    steps.extend(context.synchronise(&context.everyone().collect::<Vec<_>>()));
    let does = "Wait until no client lists a new server only";
    steps.push(
        wait_step(context, does).shows("each client lists an old server: dfsutil cache referral"),
    );
    steps.push(remove_step(context, servers, "Remove the new servers from the namespace"));
    steps
}

/// Waits until clients have the list of now.
fn wait_step(context: &Context<'_>, does: &str) -> Step {
    let wait = wait(context.moving_ttl_s, &context.wanted.assumed);
    step(does, vec![any(vec![format!("Start-Sleep -Seconds {}", wait.total_s)])])
}

fn refresh(context: &Context<'_>) -> Stage {
    let servers: Vec<_> = context.old.iter().chain(&context.kept).chain(&context.new).collect();
    let pdc = context.pdc();
    let mut stage = stage(
        StageId::Refresh,
        "Refresh the PDC emulator, the domain controllers and the namespace servers",
        "Domain controllers answer requests for the root, and read it from the PDC emulator once an hour. Without a refresh, clients get the old list for that hour.",
    );
    stage.steps.extend(context.synchronise(&servers));
    let machine = match context.wanted.pdc.as_deref() {
        Some(name) => word(&format!(r"\\{name}")),
        None => r#""\\$pdc""#.to_owned(),
    };
    stage.steps.push(
        step(
            "Restart DFS Namespaces on the PDC emulator, so that it answers with the new list at once",
            vec![
                dfsutil(vec![
                    format!("sc.exe {machine} stop Dfs"),
                    "timeout.exe /t 5".to_owned(),
                    format!("sc.exe {machine} start Dfs"),
                ]),
                powershell(vec![format!(
                    "Invoke-Command -ComputerName {pdc} -ScriptBlock {{ Restart-Service -Name Dfs }}"
                )]),
            ],
        )
        .shows("sc.exe query: STATE 4 RUNNING"),
    );
    stage.undo_note = "Nothing to undo: nothing was changed but caches.".to_owned();
    stage.takes(120, 900, "the replication between sites decides").impact(
        Impact::Pause,
        "For seconds, the PDC emulator answers no referrals, also not for SYSVOL and NETLOGON; clients ask another domain controller.",
    )
}

fn wait_new(context: &Context<'_>) -> Stage {
    let mut stage = stage(
        StageId::WaitNew,
        "Wait until each client lists a new server",
        "A client that lists old servers only would lose the namespace when these leave.",
    );
    stage.wait = Some(wait(context.moving_ttl_s, &context.wanted.assumed));
    stage.steps.push(collect_step(&context.old));
    stage.undo_note = "Nothing was changed in this stage.".to_owned();
    stage
        .takes(600, 3_600, "collecting the caches of the clients")
        .gated(GateRule::NewListed, StageId::Add)
}

/// Collects the caches for a gate, and what these servers have open for clients.
pub(super) fn collect_step(servers: &[Server]) -> Step {
    let names: Vec<_> = servers.iter().map(|server| verbatim(&server.name)).collect();
    let servers =
        if names.is_empty() { String::new() } else { format!(" -Server {}", names.join(", ")) };
    step(
        "Collect the referral caches of the clients, and let the gate judge them",
        vec![powershell(vec![
            "smbscope plan namespace gate --print-script > collect.ps1".to_owned(),
            format!(r".\collect.ps1 -Client (Get-Content clients.txt){servers} -Out caches.txt"),
            "smbscope plan namespace gate --state move.json --cache caches.txt".to_owned(),
        ])],
    )
    .shows("go; or who holds it up, and until when")
}

fn disable(context: &Context<'_>) -> Stage {
    // One that is offline already is not touched, and the undo leaves it so.
    let servers: Vec<_> = context.old.iter().filter(|server| !server.is_offline()).collect();
    let everyone: Vec<_> = context.everyone().collect();
    let mut stage = stage(
        StageId::Disable,
        "Disable the old namespace servers",
        "A target that is offline is in no referral, but its server still answers clients that have it in their list: nothing breaks, and it is undone by one command.",
    );
    stage.requires.push("the gate before says go".to_owned());
    if !servers.is_empty() {
        let does = "Set each old server offline in the namespace";
        stage.steps.push(state_step(context, &servers, "Offline", does));
        stage.steps.extend(context.synchronise(&everyone));
        let does = "Set the servers online that this stage set offline";
        stage.undo.push(state_step(context, &servers, "Online", does));
        stage.undo.extend(context.synchronise(&everyone));
        let does = "Before more is undone, wait until each client lists them";
        stage.undo.push(wait_step(context, does));
    }
    let rest = context.kept.iter().chain(&context.new).cloned();
    let old = context.old.iter().map(|server| Server { state: State::Offline, ..server.clone() });
    let after: Vec<_> = old.chain(rest).collect();
    let after: Vec<_> = after.iter().collect();
    stage.steps.push(show_step(context, states(&after)));
    stage.undo_note = "Servers that were offline before stay so.".to_owned();
    stage
}

fn wait_old(context: &Context<'_>) -> Stage {
    let mut stage = stage(
        StageId::WaitOld,
        "Wait until no client lists an old server",
        "A client that uses an old server when it leaves waits for a time-out, and its open directories and files of the root fail.",
    );
    stage.wait = Some(wait(context.moving_ttl_s, &context.wanted.assumed));
    stage.steps.push(collect_step(&context.old));
    let opens = context.old.iter().map(|server| {
        let machine = word(&server.name);
        format!("Get-SmbOpenFile -CimSession {machine} | Format-Table ClientComputerName, ClientUserName, Path")
    });
    let files = context
        .old
        .iter()
        .map(|server| format!("openfiles.exe /query /s {} /v", word(&server.name)));
    stage.steps.push(
        step(
            "See who still has files of the old servers open",
            vec![
                powershell(opens.collect()).note("for servers with Windows Server 2012 or later"),
                dfsutil(files.collect()).note("for older servers"),
            ],
        )
        .shows("nothing below the root's folder"),
    );
    stage.undo_note = "Nothing was changed in this stage.".to_owned();
    stage
        .takes(600, 3_600, "collecting the caches of the clients")
        .gated(GateRule::OldGone, StageId::Disable)
}

fn remove(context: &Context<'_>) -> Stage {
    let servers: Vec<_> = context.old.iter().collect();
    let rest: Vec<_> = context.kept.iter().chain(&context.new).collect();
    let mut stage = stage(
        StageId::Remove,
        "Remove the old namespace servers, without their shares",
        "They hold no role any more. Their shares and folders stay: they are the way back, and may be targets of links.",
    );
    stage.requires.push("the gate before says go".to_owned());
    stage.requires.push(
        "another namespace server is online: the removal of the last one deletes the namespace"
            .to_owned(),
    );
    let does = "Remove each old server from the namespace";
    stage.steps.push(remove_step(context, &servers, does));
    stage.steps.extend(context.synchronise(&rest));
    let shares = servers
        .iter()
        .map(|server| format!("net.exe view {}", word(&format!(r"\\{}", server.name))));
    let does = "See that the shares are still there";
    stage.steps.push(
        step(does, vec![any(shares.collect())]).shows("the share of the root, and all others"),
    );
    if context.remaining().count() < 2 && context.old.len() + context.kept.len() > 1 {
        stage.requires.push(
            "it is accepted that the namespace loses its redundancy: one server remains".to_owned(),
        );
    }
    let does = "Add the old servers again, offline as they were before this stage";
    stage.undo.push(add_step(context, &servers, true, does));
    stage.undo.push(priorities(context));
    stage.impact(
        Impact::Pause,
        "Clients with an old list, which the gate names, wait for a time-out of up to a minute before they try the next server.",
    )
}
