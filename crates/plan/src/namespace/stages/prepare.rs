//! Stages before a server joins: what is saved, TTLs, FQDNs, the copy of roots and shares, the export.
//!
//! KB 244380 has the FQDNs. The published move copies shares in the registry and restarts the service Server, which cannot be
//! started through itself; a share that is created with the other one's security descriptor needs no restart.

use super::context::cmdlet_kind;
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
    let dfs_root = context.option("/DFSRoot:");
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
    stage.requires.extend([
        "the names of all new servers resolve for all clients, short and as FQDN".to_owned(),
        "the role service DFS Namespaces is installed on the new servers".to_owned(),
    ]);
    stage.requires.extend(context.mode_condition());
    stage.requires.extend(context.wanted.accepted.iter().map(|one| format!("accepted: {one}")));
    stage.steps.push(
        step(
            "Show the mode of the namespace",
            vec![
                dfsutil(vec![format!("dfsutil root {root}")]).note("its first line has the mode"),
                powershell(vec![format!("Get-DfsnRoot -Path {root} | Format-List Path, Type")]),
            ],
        )
        .shows(match context.is_rebuilt {
            true => format!("Type other than {}", cmdlet_kind(context.wanted.to)),
            false => format!("Type {}", cmdlet_kind(context.wanted.to)),
        }),
    );
    let forest = "$domain = Get-ADDomain -Identity ".to_owned() + &host;
    let level = "-scope base -attr msDS-Behavior-Version";
    stage.steps.push(
        step(
            "Show the functional levels",
            vec![
                // The level of the forest is on the container of its partitions, not on its root domain.
                dfsutil(vec![
                    format!("dsquery.exe * domainroot {level}"),
                    "$configuration = ([ADSI]'LDAP://RootDSE').configurationNamingContext"
                        .to_owned(),
                    format!("dsquery.exe * \"CN=Partitions,$configuration\" {level}"),
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
                format!("dfsdiag.exe /TestDFSConfig {dfs_root}"),
                format!("dfsdiag.exe /TestDFSIntegrity {dfs_root} /Recurse /Full"),
            ])],
        )
        .shows("no error; repair what it finds before the move"),
    );
    stage.steps.extend(lost::lost(context, context.wanted.to).into_iter().map(|one| one.save));
    let files = context.file("settings.csv");
    stage.undo_note = format!(
        "Only the role service was added, which has no effect without a namespace and can stay. Keep the files (such as {files}) until the move is over."
    );
    stage.takes(900, 3_600, "dfsdiag asks each server and each target")
}

/// A long TTL is lowered before the servers move: each later wait is then short.
pub(super) fn lower_ttl(context: &Context<'_>) -> Option<Stage> {
    let (old, new) = (context.root_ttl_s, context.moving_ttl_s);
    if old <= new {
        return None;
    }
    let mut stage = stage(
        StageId::LowerTtl,
        "Lower the TTL of the root",
        "Clients keep the list of namespace servers for this time after each change. With a short one, the waits of the move follow from open files alone.",
    );
    let does = format!("Set the TTL of the root from {old} s to {LOWERED_TO_S} s");
    stage.steps.push(context.set_ttl(new, &does));
    stage.steps.extend(context.synchronise(&all_current(context)));
    stage.undo.push(context.set_ttl(old, "Set the TTL as it was"));
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

/// Restarts DFS Namespaces on each server, in both dialects.
fn restart_steps(servers: &[&Server], does: &str) -> Step {
    let sc = servers.iter().flat_map(|server| restart_sc(&server.name));
    let cmdlets = servers.iter().map(|server| restart_cmdlet(&server.name));
    step(
        does,
        vec![
            dfsutil(sc.collect())
                .note("sc.exe asks the other machine's service manager through its service Server (TCP 445), which keeps running; `sc.exe \\\\SERVER query Dfs` must show STOPPED before the start"),
            powershell(cmdlets.collect())
                .note("Invoke-Command needs WinRM (TCP 5985) on the other machine"),
        ],
    )
    .shows("STATE 4 RUNNING on each server before the next one is restarted")
}

/// The inverse of [`fqdn_steps`] and the restart: the settings that the first stage saved.
fn short_steps(context: &Context<'_>, servers: &[&Server]) -> Vec<Step> {
    let reg = servers.iter().map(|server| {
        let key = format!(r"\\{}\HKLM\SYSTEM\CurrentControlSet\Services\Dfs", server.name);
        format!("reg.exe add {} /v DfsDnsConfig /t REG_DWORD /d 0 /f", word(&key))
    });
    let file = context.file("server-settings.csv");
    let names: Vec<_> = servers.iter().map(|server| verbatim(&server.name)).collect();
    let cmdlet = format!(
        "Import-Csv -LiteralPath {file} | Where-Object {{ @({}) -contains $_.ComputerName }} | ForEach-Object {{ Set-DfsnServerConfiguration -ComputerName $_.ComputerName -UseFqdn ($_.UseFqdn -eq 'True') }}",
        names.join(", ")
    );
    vec![
        step(
            "Let the servers use the names that they used before",
            vec![
                dfsutil(reg.collect()).note("only for servers whose saved settings have no DfsDnsConfig of 1 (TCP 445, service RemoteRegistry)"),
                powershell(vec![cmdlet]),
            ],
        ),
        restart_steps(servers, "Restart DFS Namespaces on them, one after the other"),
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
        "Restart DFS Namespaces on each server, one after the other",
    ));
    let count = counted(servers.len(), "server");
    stage.undo = short_steps(context, &servers);
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
    stage.requires.push(format!("no new server has a share `{name}` of its own"));
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
    let cmdlets = context.new.iter().map(|to| share_cmdlet(from, to, &local));
    let wmi = context.new.iter().flat_map(|to| share_wmi(from, to, &local));
    stage.steps.push(step(
        format!("Share the folder as `{name}`, with the permissions of the share of {}", from.name),
        vec![
            dfsutil(wmi.collect()).note("WMI, also for servers before Windows Server 2012: Windows PowerShell 5.1, TCP 135 and dynamic RPC ports; ReturnValue must be 0"),
            powershell(cmdlets.collect()).note("for Windows Server 2012 and later: WinRM (TCP 5985) on both machines"),
        ],
    ));
    let shares = context
        .new
        .iter()
        .map(|server| format!("net.exe view {}", word(&format!(r"\\{}", server.name))));
    stage.steps.push(
        step("See that the new servers share the root's folder", vec![any(shares.collect())])
            .shows(format!("a line with {name}; a name that ends in $ is not listed")),
    );
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

/// Creates a share with the security descriptor of another one. It takes effect at once.
fn share_cmdlet(from: &Server, to: &Server, local: &str) -> String {
    format!(
        "New-SmbShare -CimSession {} -Name {} -Path {} -SecurityDescriptor (Get-SmbShare -CimSession {} -Name {}).SecurityDescriptor",
        word(&to.name),
        verbatim(&from.share),
        verbatim(local),
        word(&from.name),
        verbatim(&from.share),
    )
}

/// Likewise by WMI: `Create` takes path, name, type (0, a disk), the most users, comment, password and descriptor.
fn share_wmi(from: &Server, to: &Server, local: &str) -> [String; 2] {
    let share = verbatim(&from.share);
    let class = verbatim(&format!(r"\\{}\root\cimv2:Win32_Share", to.name));
    [
        format!(
            "$access = (Get-WmiObject -ComputerName {} -Class Win32_LogicalShareSecuritySetting | Where-Object {{ $_.Name -eq {share} }}).GetSecurityDescriptor().Descriptor",
            word(&from.name)
        ),
        format!(
            "([WMIClass]{class}).Create({}, {share}, 0, $null, '', $null, $access)",
            verbatim(local)
        ),
    ]
}

/// FQDNs on the new servers.
pub(super) fn new_fqdn(context: &Context<'_>) -> Option<Stage> {
    if context.new.is_empty() {
        return None;
    }
    let servers: Vec<_> = context.new.iter().collect();
    let mut stage = stage(
        StageId::NewFqdn,
        "FQDNs in referrals of the new servers",
        "DFS Namespaces reads its settings when it starts. No client uses the new servers as servers of this namespace yet.",
    );
    stage.steps.extend(fqdn_steps(&servers));
    stage.steps.push(restart_steps(&servers, "Restart DFS Namespaces on the new servers"));
    stage.undo = short_steps(context, &servers);
    let count = counted(servers.len(), "server");
    Some(
        stage
            .takes(
                30 * servers.len() as u64,
                120 * servers.len() as u64,
                format!("half a minute to two minutes for each of {count}"),
            )
            .impact(
                Impact::Nothing,
                "Users of the namespace notice nothing. Users of other namespaces on the new servers wait for seconds.",
            ),
    )
}

/// The export and its rewritten form.
pub(super) fn export(context: &Context<'_>) -> Stage {
    let original = context.file("original.xml");
    let root = context.root_word();
    let mut stage = stage(
        StageId::Export,
        if context.is_rebuilt {
            "Export the namespace and rewrite it"
        } else {
            "Export the namespace"
        },
        "The export is what a new root is made of, and the way back.",
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
    if context.is_rebuilt {
        stage.steps.push(
            step(
                "Make the files of the way there and of the way back",
                vec![any(rewrites(context))],
            )
            .at("any machine with smbscope")
            .shows("the difference: read it before the import"),
        );
    }
    let links = context.namespace.links.len() as u64;
    stage.undo_note = format!("Nothing was changed. The original is {original}.");
    stage.takes(
        30 + links / 100,
        120 + links / 20,
        "dfsutil reads each link from the directory; an estimate, not measured",
    )
}

/// Writes the file to import, in which targets have FQDNs, and the one for the way back. Both have a short TTL of the root,
/// and both can be imported: dfsutil writes an `&` as it is, which its import refuses.
fn rewrites(context: &Context<'_>) -> Vec<String> {
    let original = context.file("original.xml");
    let ttl = format!("--root-ttl {}s", context.creation_ttl_s());
    let mut options = String::new();
    if let Some(suffix) = context.suffix {
        options.push_str(&format!(" --suffix {}", word(suffix)));
        if !context.wanted.domains.is_empty() {
            // Without quotes, PowerShell makes words of what a comma separates.
            options.push_str(&format!(" --domain {}", word(&context.wanted.domains.join(","))));
        }
    }
    let line = |options: &str, file: &str| {
        format!(
            "smbscope plan namespace rewrite {original}{options} {ttl} --out {}",
            context.file(file)
        )
    };
    vec![line(&options, "rewritten.xml"), line("", "back.xml")]
}
