//! What an export does not carry or an import does not bring back, with the commands that save and restore it.
//!
//! The page on the migration says it of namespace servers; for delegation, permissions, priorities and settings of
//! the root the export has no attributes, or no public sample shows any. Everything is saved, whether or not the
//! installed version carries it.

use serde::{Deserialize, Serialize};

use super::Step;
use super::context::{Context, UNCONFIRMED, any, dfsutil, powershell, step};
use crate::namespace::model::Kind;
use crate::script::quote::{powershell as verbatim, word};

/// One thing that an import does not bring back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lost {
    pub what: String,
    pub why: String,
    pub save: Step,
    /// None where a stage of its own brings it back.
    pub restore: Option<Step>,
}

/// All of them for this namespace; brought back to a root in a mode.
pub(super) fn lost(context: &Context<'_>, kind: Kind) -> Vec<Lost> {
    let mut all = vec![servers(context), settings(context, kind), priorities(context)];
    all.extend(delegation(context));
    all.push(view_permissions(context, kind));
    all.push(folder_permissions(context));
    all.push(server_settings(context));
    // Where nothing is known or no server is new, there is nothing to set; the comparison with the saved values is left.
    for one in &mut all {
        one.restore = one.restore.take().filter(|step| !step.commands.is_empty());
    }
    all
}

/// Writes the output of a cmdlet to a file.
fn csv(from: &str, file: &str) -> String {
    format!("{from} | Export-Csv -NoTypeInformation -Encoding UTF8 -LiteralPath {file}")
}

fn servers(context: &Context<'_>) -> Lost {
    let (root, file) = (context.root_word(), context.file("servers.csv"));
    Lost {
        what: "Namespace servers, with their state and priority".to_owned(),
        why: "dfsutil cannot import namespace servers: the cut-over adds them again".to_owned(),
        // Later steps read the table, whichever tool they are run with.
        save: step(
            "Save the namespace servers",
            vec![any(vec![csv(&format!("Get-DfsnRootTarget -Path {root}"), &file)])],
        ),
        restore: Some(priorities_of_servers(context)),
    }
}

/// The first label of the server of a target path, which the rewrite does not change.
fn label(row: &str) -> String {
    format!("(({row}.TargetPath.TrimStart('\\') -split '\\\\')[0] -split '\\.')[0]")
}

/// Gives namespace servers that the first stage saved their priority.
pub(super) fn priorities_of_servers(context: &Context<'_>) -> Step {
    let (root, file) = (context.root_word(), context.file("servers.csv"));
    step(
        "Set the priorities of the namespace servers that the first stage saved",
        vec![powershell(vec![format!(
            "Import-Csv -LiteralPath {file} | ForEach-Object {{ $was = $_; Get-DfsnRootTarget -Path {root} | Where-Object {{ {} -eq {} }} | ForEach-Object {{ Set-DfsnRootTarget -Path {root} -TargetPath $_.TargetPath -ReferralPriorityClass $was.ReferralPriorityClass -ReferralPriorityRank $was.ReferralPriorityRank }} }}",
            label("$_"),
            label("$was")
        )])],
    )
}

fn settings(context: &Context<'_>, kind: Kind) -> Lost {
    let (root, file) = (context.root_word(), context.file("settings.csv"));
    let flags = &context.namespace.flags;
    let known = [
        ("EnableSiteCosting", "sitecosting", flags.site_costing),
        ("EnableInsiteReferrals", "insite", flags.insite_referrals),
        ("EnableRootScalability", "rootscalability", flags.root_scalability),
        ("EnableTargetFailback", "targetfailback", flags.target_failback),
    ];
    let on = |value: bool| if value { "enable" } else { "disable" };
    let old = known.iter().filter_map(|(_, property, value)| {
        value.map(|value| format!("dfsutil property {property} {} {root}", on(value)))
    });
    let mut old: Vec<_> = old.collect();
    let mut parameters: Vec<_> = known
        .iter()
        .filter_map(|(name, _, value)| value.map(|value| format!("-{name} ${value}")))
        .collect();
    // A v1 namespace cannot have it, and v1 cannot get it back.
    if let (Some(value), Kind::DomainV2) = (flags.access_based_enumeration, kind) {
        parameters.push(format!("-EnableAccessBasedEnumeration ${value}"));
        old.push(format!("dfsutil property abe {} {root}", on(value)));
    }
    let comment = context.namespace.comment.as_deref().filter(|text| !text.is_empty());
    // A comment is text for people: control characters have no meaning in it.
    let comment = comment.map(|text| text.replace(|c: char| c.is_control(), " "));
    parameters.extend(comment.as_ref().map(|text| format!("-Description {}", verbatim(text))));
    // No property of dfsutil is published for the description.
    let old = if comment.is_some() { Vec::new() } else { old };
    let set = match parameters.is_empty() {
        true => Vec::new(),
        false => vec![format!("Set-DfsnRoot -Path {root} {}", parameters.join(" "))],
    };
    let all_known = known.iter().all(|(.., value)| value.is_some());
    let does = if all_known {
        "Set them as they were"
    } else {
        "Set them as they were; add those that the saved file has and the input did not say"
    };
    Lost {
        what: "Settings of the root: site costing, in-site referrals, root scalability, target failback, access-based enumeration, description".to_owned(),
        why: "exports differ in what they carry; the new root begins with defaults".to_owned(),
        save: step(
            "Save the settings of the root",
            vec![any(vec![csv(&format!("Get-DfsnRoot -Path {root}"), &file)])],
        ),
        restore: Some(step(does, vec![dfsutil(old).note(UNCONFIRMED), powershell(set)])),
    }
}

fn priorities(context: &Context<'_>) -> Lost {
    let (links, file) = (context.all_links(), context.file("targets.csv"));
    // The server's first label and the rest of the path: the rewrite changes the domain only.
    let key = |row: &str| {
        format!(
            "({row}.NamespacePath + '|' + (({row}.TargetPath.TrimStart('\\') -split '\\\\', 2)[0] -split '\\.')[0] + '|' + ({row}.TargetPath.TrimStart('\\') -split '\\\\', 2)[1])"
        )
    };
    Lost {
        what: "Priority class and rank of folder targets".to_owned(),
        why: "no published export shows them".to_owned(),
        save: step(
            "Save the targets of all folders with their priorities",
            vec![powershell(vec![csv(
                &format!("Get-DfsnFolder -Path {links} | Get-DfsnFolderTarget"),
                &file,
            )])],
        ),
        restore: Some(step(
            "Set the priorities as they were",
            vec![
                powershell(vec![
                    format!(
                        "$saved = @{{}}; Import-Csv -LiteralPath {file} | ForEach-Object {{ $saved[{}] = $_ }}",
                        key("$_")
                    ),
                    format!(
                        "Get-DfsnFolder -Path {links} | Get-DfsnFolderTarget | ForEach-Object {{ $was = $saved[{}]; if ($was -and ($was.ReferralPriorityClass -ne $_.ReferralPriorityClass -or $was.ReferralPriorityRank -ne $_.ReferralPriorityRank)) {{ Set-DfsnFolderTarget -Path $_.NamespacePath -TargetPath $_.TargetPath -ReferralPriorityClass $was.ReferralPriorityClass -ReferralPriorityRank $was.ReferralPriorityRank }} }}",
                        key("$_")
                    ),
                ])
                .note("targets whose server or share the rewrite changed keep the default: see the difference of the rewrite"),
            ],
        )),
    }
}

fn delegation(context: &Context<'_>) -> Option<Lost> {
    let name = context.distinguished_name()?;
    let (text, sddl) = (context.file("delegation.txt"), context.file("delegation.sddl"));
    let object = verbatim(&name);
    let drive = verbatim(&format!("AD:\\{name}"));
    Some(Lost {
        what: "Delegated management of the namespace".to_owned(),
        why: "it is in the access list of the directory's object, which is removed with the root"
            .to_owned(),
        save: step(
            "Save who may manage the namespace",
            vec![any(vec![
                format!("dsacls.exe {object} > {text}"),
                "Import-Module ActiveDirectory".to_owned(),
                format!(
                    "(Get-Acl -Path {drive}).Sddl | Set-Content -Encoding UTF8 -LiteralPath {sddl}"
                ),
            ])],
        ),
        restore: Some(step(
            "Grant it again to each explicit account of the saved list",
            vec![
                dfsutil(vec![format!("dsacls.exe {object} /I:T /G \"DOMAIN\\Group:GA\"")]).note(
                    "write the account of the list instead of DOMAIN\\Group, one line for each",
                ),
                powershell(vec![
                    "Import-Module ActiveDirectory".to_owned(),
                    format!(
                        "$acl = Get-Acl -Path {drive}; $was = New-Object System.DirectoryServices.ActiveDirectorySecurity; $was.SetSecurityDescriptorSddlForm((Get-Content -LiteralPath {sddl}))"
                    ),
                    format!(
                        "$was.Access | Where-Object {{ -not $_.IsInherited }} | ForEach-Object {{ $acl.AddAccessRule($_) }}; Set-Acl -Path {drive} -AclObject $acl"
                    ),
                ]),
            ],
        )),
    })
}

fn view_permissions(context: &Context<'_>, kind: Kind) -> Lost {
    let (links, file) = (context.all_links(), context.file("access.csv"));
    let is_possible = kind == Kind::DomainV2;
    let restore = step(
        "Grant the view permissions again",
        vec![powershell(vec![format!(
            "Import-Csv -LiteralPath {file} | ForEach-Object {{ Grant-DfsnAccess -Path $_.NamespacePath -AccountName $_.AccountName }}"
        )])],
    );
    Lost {
        what: "View permissions of folders (access-based enumeration)".to_owned(),
        why: "they are security descriptors of links in the directory, which the export does not have; a v1 namespace has none".to_owned(),
        save: step(
            "Save the view permissions of folders",
            vec![powershell(vec![csv(
                &format!("Get-DfsnFolder -Path {links} | Get-DfsnAccess"),
                &file,
            )])
            .note("empty, or an error for each folder, in Windows 2000 Server mode")],
        ),
        restore: is_possible.then_some(restore),
    }
}

fn folder_permissions(context: &Context<'_>) -> Lost {
    let folder = &context.wanted.root_folder;
    let share = context.old.first().or_else(|| context.kept.first());
    let share = share.map_or(context.namespace.name.as_str(), |server| server.share.as_str());
    let local = word(&format!(r"{folder}\{share}"));
    let (parent, file) = (word(folder), context.file("folders.acl"));
    let place = share_place(context);
    Lost {
        what: "Permissions on the folders of links below the root's folder".to_owned(),
        why: "before access-based enumeration, they were set on these folders of each server; the folders are created again with the links".to_owned(),
        save: step(
            "Save the permissions of the root's folder and its links",
            vec![any(vec![format!("icacls.exe {local} /save {file} /T /C")])],
        )
        .at(place.clone()),
        restore: Some(
            step(
                "Bring back the permissions",
                vec![any(vec![format!("icacls.exe {parent} /restore {file} /C")])],
            )
            .at(format!("each namespace server, with the file from {place}")),
        ),
    }
}

/// A server whose folders are the model.
fn share_place(context: &Context<'_>) -> String {
    let server = context.old.first().or_else(|| context.kept.first());
    server.map_or_else(|| "a present namespace server".to_owned(), |server| server.name.clone())
}

fn server_settings(context: &Context<'_>) -> Lost {
    let servers: Vec<_> = context.everyone().collect();
    let file = context.file("server-settings.csv");
    let text = context.file("server-settings.txt");
    let names: Vec<_> = servers.iter().map(|server| verbatim(&server.name)).collect();
    let names = if names.is_empty() { "@()".to_owned() } else { names.join(", ") };
    let reg = servers.iter().map(|server| {
        let key = format!(r"\\{}\HKLM\SYSTEM\CurrentControlSet\Services\Dfs", server.name);
        format!("reg.exe query {} /s >> {text}", word(&key))
    });
    let new = context.new.iter().map(|server| {
        format!("Get-DfsnServerConfiguration -ComputerName {} | Format-List *", word(&server.name))
    });
    Lost {
        what: "Settings of each namespace server: interval of synchronisation, LDAP time-out, preference of the logon DC, FQDNs".to_owned(),
        why: "they are in the registry of the servers, and new servers have the defaults".to_owned(),
        save: step(
            "Save the settings of the namespace servers",
            // The first lines are for servers before Windows Server 2012.
            vec![any(reg.chain([csv(
                &format!("{names} | ForEach-Object {{ Get-DfsnServerConfiguration -ComputerName $_ }}"),
                &file,
            )])
            .collect())],
        ),
        restore: Some(step(
            "Set them on the new servers where they differ from the defaults",
            vec![powershell(new.collect())],
        )
        .shows("the values of the saved file; Set-DfsnServerConfiguration changes them")),
    }
}
