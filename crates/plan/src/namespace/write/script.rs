//! Commands of PowerShell that make a namespace (module DFSN), with every name quoted.
//!
//! The file has a byte order mark: Windows PowerShell takes UTF-8 without it for the code page of the machine.

use std::fmt::Write as _;

use super::super::form::priority_name_powershell;
use super::super::model::{Kind, Namespace, State, Target};
use crate::script::quote::powershell;

pub(super) fn write(namespace: &Namespace) -> Vec<u8> {
    let root = format!("\\\\{}\\{}", namespace.host, namespace.name);
    let path = powershell(&root);
    let mut out = String::from(
        "\u{feff}# Makes the namespace; the shares of its servers must exist.\n$ErrorActionPreference = 'Stop'\n",
    );
    let mut line = |text: String| {
        out.push_str(&text);
        out.push('\n');
    };
    // Without a server the namespace is there already: nothing could make it.
    let mut targets = namespace.targets.iter();
    if let Some(first) = targets.next() {
        let kind = match namespace.kind {
            Some(Kind::Standalone) => "Standalone",
            Some(Kind::DomainV1) => "DomainV1",
            _ => "DomainV2",
        };
        line(format!("New-DfsnRoot -Path {path} -Type {kind} -TargetPath {}", unc(first)));
        line(format!("Set-DfsnRootTarget -Path {path}{}", of_target(first)));
    }
    let mut set = format!("Set-DfsnRoot -Path {path} -State {}", state(namespace.state));
    if let Some(ttl_s) = namespace.ttl_s {
        let _ = write!(set, " -TimeToLiveSec {ttl_s}");
    }
    if let Some(comment) = &namespace.comment {
        let _ = write!(set, " -Description {}", powershell(comment));
    }
    let flags = &namespace.flags;
    for (name, flag) in [
        ("EnableSiteCosting", flags.site_costing),
        ("EnableInsiteReferrals", flags.insite_referrals),
        ("EnableRootScalability", flags.root_scalability),
        ("EnableAccessBasedEnumeration", flags.access_based_enumeration),
        ("EnableTargetFailback", flags.target_failback),
    ] {
        if let Some(flag) = flag {
            let _ = write!(set, " -{name} ${flag}");
        }
    }
    line(set);
    for target in targets {
        line(format!("New-DfsnRootTarget -Path {path}{}", of_target(target)));
    }
    for link in &namespace.links {
        let path = powershell(&format!("{root}\\{}", link.path));
        let mut targets = link.targets.iter();
        let Some(first) = targets.next() else { continue };
        let mut new = format!("New-DfsnFolder -Path {path} -State {}", state(link.state));
        let first = of_target(first).replacen(" -State ", " -TargetState ", 1);
        new.push_str(&first);
        if let Some(ttl_s) = link.ttl_s {
            let _ = write!(new, " -TimeToLiveSec {ttl_s}");
        }
        if let Some(comment) = &link.comment {
            let _ = write!(new, " -Description {}", powershell(comment));
        }
        for (name, flag) in [
            ("EnableInsiteReferrals", link.flags.insite_referrals),
            ("EnableTargetFailback", link.flags.target_failback),
        ] {
            if let Some(flag) = flag {
                let _ = write!(new, " -{name} ${flag}");
            }
        }
        line(new);
        for target in targets {
            line(format!("New-DfsnFolderTarget -Path {path}{}", of_target(target)));
        }
    }
    out.into_bytes()
}

fn state(state: State) -> &'static str {
    if state == State::Offline { "Offline" } else { "Online" }
}

fn unc(target: &Target) -> String {
    powershell(&format!("\\\\{}\\{}", target.server, target.share))
}

/// Parameters of a target; its path is last, so that a name in it is not taken for a parameter.
fn of_target(target: &Target) -> String {
    let mut out = format!(" -State {}", state(target.state));
    if let Some(class) = target.priority_class {
        let _ = write!(out, " -ReferralPriorityClass {}", priority_name_powershell(class));
    }
    if let Some(rank) = target.priority_rank {
        let _ = write!(out, " -ReferralPriorityRank {rank}");
    }
    let _ = write!(out, " -TargetPath {}", unc(target));
    out
}
