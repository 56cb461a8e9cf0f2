//! Stages before a server joins: what is saved, TTLs, FQDNs, the copy of roots and shares, the export.
//!
//! KB 244380 has the FQDNs; robocopy and the shares in the registry are the way of the published move.

use super::context::{
    Context, any, counted, dfsutil, powershell, restart_cmdlet, restart_sc, stage, step,
};
use super::{GateRule, Impact, LOWERED_TO_S, Server, Stage, StageId, Step, lost};
use crate::namespace::model::Kind;
use crate::namespace::waits::wait;
use crate::script::quote::{powershell as verbatim, word};

/// Everything that is needed to go back, and the preconditions.
pub(super) fn save(context: &Context<'_>) -> Stage {
    let host = word(&context.namespace.host);
    let root = context.root_word();
    let mut stage = stage(
        StageId::Save,
        "Check the preconditions and save what an export loses",
        "An import brings back links and targets only. What it does not bring back must be saved before the root is removed.",
    );
    if context.wanted.to == Kind::DomainV2 {
        stage.requires.push("the domain's functional level is Windows Server 2008 or higher, the forest's Windows Server 2003 or higher".to_owned());
        stage.requires.push(
            "each namespace server that remains runs Windows Server 2008 or later".to_owned(),
        );
    }
    stage
        .requires
        .push("the names of all new servers resolve for all clients, short and as FQDN".to_owned());
    stage
        .requires
        .push("the role service DFS Namespaces is installed on the new servers".to_owned());
    let forest = "$domain = Get-ADDomain -Identity ".to_owned() + &host;
    stage.steps.push(
        step(
            "Show the functional levels",
            vec![
                dfsutil(vec![
                    "dsquery.exe * domainroot -scope base -attr msDS-Behavior-Version".to_owned(),
                    "dsquery.exe * forestroot -scope base -attr msDS-Behavior-Version".to_owned(),
                ])
                .note("of the domain and forest of this machine"),
                powershell(vec![
                    forest,
                    "$domain.DomainMode".to_owned(),
                    "(Get-ADForest -Identity $domain.Forest).ForestMode".to_owned(),
                ]),
            ],
        )
        .shows("domain: 3 (Windows2008Domain) or higher; forest: 2 (Windows2003Forest) or higher"),
    );
    let new = context.new.iter().map(|server| {
        format!(
            "Install-WindowsFeature -ComputerName {} -Name FS-DFS-Namespace",
            word(&server.name)
        )
    });
    if !context.new.is_empty() {
        let does = "Install the role service on the new servers";
        stage.steps.push(step(does, vec![powershell(new.collect())]).shows("Success True"));
    }
    stage.steps.push(
        step(
            "Let dfsdiag check the namespace as it is",
            vec![any(vec![
                format!("dfsdiag.exe /TestDCs /Domain:{host}"),
                format!("dfsdiag.exe /TestDFSConfig /DFSRoot:{root}"),
                format!("dfsdiag.exe /TestDFSIntegrity /DFSRoot:{root} /Recurse /Full"),
            ])],
        )
        .shows("no error; repair what it finds before the move"),
    );
    stage.steps.extend(lost::lost(context).into_iter().map(|one| one.save));
    let files = context.file("settings.csv");
    stage.undo_note =
        format!("Nothing was changed; keep the files (such as {files}) until the move is over.");
    stage.takes(900, 3_600, "dfsdiag asks each server and each target")
}

/// A long TTL is lowered before the servers move: each later wait is then short.
pub(super) fn lower_ttl(context: &Context<'_>) -> Option<Stage> {
    let root = context.root_word();
    let (old, new) = (context.root_ttl_s, context.moving_ttl_s);
    if old <= new {
        return None;
    }
    let set = |seconds: u32, does: &str| {
        step(
            does,
            vec![
                dfsutil(vec![format!("dfsutil property ttl {root} {seconds}")])
                    .note(super::context::UNCONFIRMED),
                powershell(vec![format!("Set-DfsnRoot -Path {root} -TimeToLiveSec {seconds}")]),
            ],
        )
    };
    let mut stage = stage(
        StageId::LowerTtl,
        "Lower the TTL of the root",
        "Clients keep the list of namespace servers for this time after each change. With a short one, the waits of the move follow from open files alone.",
    );
    let does = format!("Set the TTL of the root from {old} s to {LOWERED_TO_S} s");
    stage.steps.push(set(new, &does));
    stage.steps.extend(context.synchronise(&all_current(context)));
    stage.undo.push(set(old, "Set the TTL as it was"));
    stage.wait = Some(wait(old, &context.wanted.assumed));
    let users =
        "Clients ask for the root more often: one small request each 300 s for each active client.";
    Some(stage.impact(Impact::Nothing, users).gated(GateRule::ShortTtl, StageId::LowerTtl))
}

/// Namespace servers of today.
fn all_current<'a>(context: &'a Context<'_>) -> Vec<&'a Server> {
    context.old.iter().chain(&context.kept).collect()
}

/// Makes servers answer with FQDNs.
fn fqdn_steps(servers: &[&Server]) -> Vec<Step> {
    let mut steps = Vec::new();
    let set = |server: &&Server| {
        format!("dfsutil server registry dfsdnsconfig set {}", word(&format!(r"\\{}", server.name)))
    };
    let cmdlet = |server: &&Server| {
        format!("Set-DfsnServerConfiguration -ComputerName {} -UseFqdn $true", word(&server.name))
    };
    steps.push(step(
        "Set the registry value DfsDnsConfig, so that the servers use FQDNs",
        vec![
            dfsutil(servers.iter().map(set).collect()),
            powershell(servers.iter().map(cmdlet).collect())
                .note("for servers with Windows Server 2012 or later; use the other one for older servers"),
        ],
    ));
    steps
}

/// Restarts a service on each server, in both dialects.
fn restart_steps(servers: &[&Server], services: &[&str], does: &str) -> Step {
    let sc = servers.iter().flat_map(|server| restart_sc(&server.name, services));
    let cmdlets = servers.iter().flat_map(|server| {
        services.iter().rev().flat_map(|service| restart_cmdlet(&server.name, service))
    });
    step(
        does,
        vec![
            dfsutil(sc.collect())
                .note("sc.exe asks the other machine's service manager (RPC over TCP 445); `sc.exe \\\\SERVER query Dfs` must show STOPPED before the start"),
            powershell(cmdlets.collect())
                .note("Invoke-Command needs WinRM (TCP 5985) on the other machine"),
        ],
    )
}

/// The inverse of [`fqdn_steps`] and the restart.
fn short_steps(servers: &[&Server]) -> Vec<Step> {
    let reg = servers.iter().map(|server| {
        let key = format!(r"\\{}\HKLM\SYSTEM\CurrentControlSet\Services\Dfs", server.name);
        format!("reg.exe add {} /v DfsDnsConfig /t REG_DWORD /d 0 /f", word(&key))
    });
    let cmdlet = servers.iter().map(|server| {
        format!("Set-DfsnServerConfiguration -ComputerName {} -UseFqdn $false", word(&server.name))
    });
    vec![
        step(
            "Let the servers use short names again, unless they used FQDNs before (server settings of the first stage)",
            vec![dfsutil(reg.collect()), powershell(cmdlet.collect())],
        ),
        restart_steps(servers, &["Dfs"], "Restart DFS Namespaces on them, one after the other"),
    ]
}

/// FQDNs on the servers of today.
pub(super) fn old_fqdn(context: &Context<'_>) -> Stage {
    let servers = all_current(context);
    let mut stage = stage(
        StageId::OldFqdn,
        "FQDNs in referrals of the present servers",
        "Referrals with short names fail for clients of other domains and without NetBIOS, and authenticate differently. Root targets keep the form in which they were added, so that the new ones will be FQDNs.",
    );
    stage.steps.extend(fqdn_steps(&servers));
    stage.steps.push(restart_steps(
        &servers,
        &["Dfs"],
        "Restart DFS Namespaces on each server, one after the other",
    ));
    let count = counted(servers.len(), "server");
    stage.undo = short_steps(&servers);
    let users = match servers.len() {
        1 => {
            "The only namespace server gives no referrals for seconds: new accesses wait, and may fail once."
        }
        _ => {
            "A client whose server restarts asks another one: an access waits for seconds. Open files are not affected, for they are on the file servers."
        }
    };
    stage
        .takes(
            30 * servers.len() as u64,
            120 * servers.len() as u64,
            format!("half a minute to two minutes for each of {count}"),
        )
        .impact(Impact::Pause, users)
}

/// Roots and shares with their permissions.
pub(super) fn copy(context: &Context<'_>) -> Option<Stage> {
    let from = context.old.first().or_else(|| context.kept.first())?;
    if context.new.is_empty() {
        return None;
    }
    let folder = &context.wanted.root_folder;
    let name = &from.share;
    let local = format!(r"{folder}\{name}");
    let mut stage = stage(
        StageId::Copy,
        "Copy the root's folder and share with their permissions",
        "A namespace server needs the folder and the share before it can be added. Permissions of both decide what users see at the root.",
    );
    stage
        .requires
        .push(format!("the root's folder is {local} on {} (net share shows it)", from.name));
    let copies = context.new.iter().map(|server| {
        let [source, target] =
            [&from.name, &server.name].map(|machine| word(&administrative(machine, &local)));
        format!("robocopy.exe {source} {target} /COPYALL /E /XJ /R:1 /W:1")
    });
    stage.steps.push(
        step(
            "Copy the folder with its permissions, without the links, which DFS creates itself",
            vec![
                any(copies.collect()).note(
                    "/XJ leaves out the links (reparse points); exit codes below 8 are success",
                ),
            ],
        )
        .shows("Failed 0"),
    );
    let registry: Vec<_> = context.new.iter().flat_map(|to| share_lines(from, to)).collect();
    let shares = r"HKLM\SYSTEM\CurrentControlSet\Services\LanmanServer\Shares";
    let reg = context.new.iter().map(|to| {
        let [source, target] =
            [&from.name, &to.name].map(|machine| word(&format!(r"\\{machine}\{shares}")));
        format!("reg.exe copy {source} {target} /s /f")
    });
    stage.steps.push(step(
        format!("Copy the share `{name}` with its permissions"),
        vec![
            powershell(registry).note("copies this share only"),
            dfsutil(reg.collect())
                .note("copies ALL shares of the machine and replaces those of the same name: only for servers without shares of their own"),
        ],
    ));
    let undo = context.new.iter().map(|server| {
        let machine = word(&server.name);
        format!("Invoke-Command -ComputerName {machine} -ScriptBlock {{ Remove-SmbShare -Name {} -Force }}", verbatim(name))
    });
    let undo_old = context.new.iter().map(|server| {
        format!("net.exe share {} {} /delete", word(name), word(&format!(r"\\{}", server.name)))
    });
    stage.undo.push(step(
        "Remove the share from the new servers; the folder can stay",
        vec![powershell(undo.collect()), dfsutil(undo_old.collect())],
    ));
    let count = counted(context.new.len(), "new server");
    Some(stage.takes(
        60 * context.new.len() as u64,
        300 * context.new.len() as u64,
        format!("one to five minutes for each of {count}: the folder has no data of users"),
    ))
}

/// `\\SERVER\C$\DFSRoots\Public` of a local folder.
fn administrative(server: &str, folder: &str) -> String {
    match folder.split_once(':') {
        Some((drive, rest)) => format!(r"\\{server}\{drive}${rest}"),
        None => format!(r"\\{server}\{folder}"),
    }
}

/// Copies one share in the registry from machine to machine.
fn share_lines(from: &Server, to: &Server) -> Vec<String> {
    let share = verbatim(&from.share);
    vec![
        format!(
            "$from = [Microsoft.Win32.RegistryKey]::OpenRemoteBaseKey('LocalMachine', {}); $to = [Microsoft.Win32.RegistryKey]::OpenRemoteBaseKey('LocalMachine', {})",
            verbatim(&from.name),
            verbatim(&to.name)
        ),
        format!(
            "foreach ($key in 'Shares', 'Shares\\Security') {{ $key = \"SYSTEM\\CurrentControlSet\\Services\\LanmanServer\\$key\"; $source = $from.OpenSubKey($key); $value = $source.GetValue({share}); if ($null -ne $value) {{ $to.OpenSubKey($key, $true).SetValue({share}, $value, $source.GetValueKind({share})) }} }}"
        ),
    ]
}

/// FQDNs on the new servers, and the restart that makes them share the copied folder.
pub(super) fn new_fqdn(context: &Context<'_>) -> Option<Stage> {
    if context.new.is_empty() {
        return None;
    }
    let servers: Vec<_> = context.new.iter().collect();
    let mut stage = stage(
        StageId::NewFqdn,
        "FQDNs in referrals of the new servers, and their restart",
        "The service Server reads shares from the registry when it starts, and DFS Namespaces its settings. No client uses the new servers as namespace servers yet.",
    );
    stage.requires.push("the new servers have no other users, or it is outside their hours: the restart of the service Server closes all their files".to_owned());
    stage.steps.extend(fqdn_steps(&servers));
    stage.steps.push(restart_steps(
        &servers,
        &["Dfs", "LanmanServer"],
        "Restart the service Server and, because it depends on it, DFS Namespaces",
    ));
    let shares = servers
        .iter()
        .map(|server| format!("net.exe view {}", word(&format!(r"\\{}", server.name))));
    let does = "See that the new servers share the root's folder";
    let share = context.old.first().or_else(|| context.kept.first()).map_or("", |one| &one.share);
    stage.steps.push(step(does, vec![any(shares.collect())]).shows(format!("a line with {share}")));
    stage.undo = short_steps(&servers);
    let count = counted(servers.len(), "server");
    Some(
        stage
            .takes(
                60 * servers.len() as u64,
                300 * servers.len() as u64,
                format!("one to five minutes for each of {count}"),
            )
            .impact(
                Impact::Nothing,
                "Users of the namespace notice nothing. Other users of the new servers lose their open files.",
            ),
    )
}

/// The export and its rewritten form.
pub(super) fn export(context: &Context<'_>) -> Stage {
    let (original, rewritten) = (context.file("original.xml"), context.file("rewritten.xml"));
    let root = context.root_word();
    let mut stage = stage(
        StageId::Export,
        "Export the namespace and rewrite it",
        "The export is what the new root is made of, and the way back. Link targets get FQDNs in its rewritten form.",
    );
    stage.requires.push("from here on, links and targets are not changed by other administrators: a later change is lost in the cut-over".to_owned());
    let export = format!("dfsutil root export {root} {original}");
    stage.steps.push(step("Export the namespace", vec![any(vec![export])]).shows("Done"));
    if let Some(name) = context.distinguished_name() {
        let dn = verbatim(&name);
        let file = context.file("directory.ldf");
        let pdc = context.pdc();
        stage.steps.push(
            step(
                "Export the objects of the directory, the only form without losses",
                context.with_pdc(&[format!("ldifde.exe -f {file} -s {pdc} -d {dn} -p subtree")]),
            )
            .shows("entries exported"),
        );
    }
    let suffix = context.suffix.map(|suffix| format!(" --suffix {}", word(suffix)));
    stage.steps.push(
        step(
            "Rewrite the targets to FQDNs",
            vec![any(vec![format!(
                "smbscope plan namespace rewrite {original}{} --out {rewritten}",
                suffix.unwrap_or_default()
            )])],
        )
        .at("any machine with smbscope")
        .shows("the difference: read it before the import"),
    );
    let links = context.namespace.links.len() as u64;
    stage.undo_note = format!("Nothing was changed. The original is {original}.");
    stage.takes(
        30 + links / 100,
        120 + links / 20,
        "dfsutil reads each link from the directory; an estimate, not measured",
    )
}
