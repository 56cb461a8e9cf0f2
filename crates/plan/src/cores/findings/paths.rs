//! Rules about the paths of SMB Multichannel: tunnels, and interfaces without RSS and RDMA.
//!
//! Sources: RFC 6598 (100.64.0.0/10, which carriers and overlay networks use), tailscale/tailscale#17707,
//! `Get-SmbMultichannelConnection`, `New-SmbMultichannelConstraint`.

use std::net::{IpAddr, Ipv4Addr};

use serde_json::json;
use smbscope_findings::KindInfo;

use super::super::read::MultichannelConnection;
use super::super::topology::Machine;
use super::{FindingKind, Findings, Severity};

pub(super) const TUNNEL_PATH: KindInfo =
    KindInfo::new("tunnel-path", "SMB Multichannel uses a path through a tunnel");
pub(super) const PATH_WITHOUT_RSS: KindInfo =
    KindInfo::new("path-without-rss", "A path of SMB has neither RSS nor RDMA");

pub(super) fn find(machine: &Machine, findings: &mut Findings) {
    for path in machine.multichannel.iter().filter(|path| path.is_selected != Some(false)) {
        if is_tunnel(path) {
            tunnel(machine, path, findings);
        } else if path.is_client_rss_capable == Some(false)
            && path.is_client_rdma_capable == Some(false)
        {
            without_rss(path, findings);
        }
    }
}

/// Whether an end has an address of an overlay network, or the server does not list the interface.
fn is_tunnel(path: &MultichannelConnection) -> bool {
    let address = |text: &Option<String>| text.as_deref()?.parse::<IpAddr>().ok();
    let is_shared = |ip: IpAddr| match ip {
        IpAddr::V4(ip) => u32::from(ip) & 0xffc0_0000 == u32::from(Ipv4Addr::new(100, 64, 0, 0)),
        IpAddr::V6(_) => false,
    };
    let mut ends = [&path.client_address, &path.server_address].into_iter().filter_map(address);
    ends.any(is_shared) || path.server_index == Some(u32::MAX)
}

fn tunnel(machine: &Machine, path: &MultichannelConnection, findings: &mut Findings) {
    let others = machine.multichannel.iter().filter(|other| {
        other.server == path.server && other.client_index != path.client_index && !is_tunnel(other)
    });
    let others: Vec<u32> = others.filter_map(|other| other.client_index).collect();
    let remedy = match &others[..] {
        [] => "give the client a path without a tunnel".to_owned(),
        indexes => format!(
            "New-SmbMultichannelConstraint with the name of the server and -InterfaceIndex {} keeps SMB on the other interface (undo: Remove-SmbMultichannelConstraint)",
            indexes.iter().map(u32::to_string).collect::<Vec<_>>().join(", ")
        ),
    };
    let address = |text: &Option<String>| text.clone().unwrap_or_else(|| "?".to_owned());
    let sentence = format!(
        "SMB to {} goes from {} to {}, which is a tunnel or an overlay network (100.64.0.0/10, or an interface that the server does not list): {remedy}.",
        path.server,
        address(&path.client_address),
        address(&path.server_address)
    );
    let evidence =
        json!({ "server": path.server, "interface": path.client_index, "others": others });
    findings.add(None, FindingKind::TunnelPath, Severity::High, sentence, evidence);
}

fn without_rss(path: &MultichannelConnection, findings: &mut Findings) {
    let index = path.client_index.map_or(String::new(), |index| format!(" (interface {index})"));
    let sentence = format!(
        "The path to {}{index} has neither RSS nor RDMA: SMB uses one connection on it, and one CPU receives. On a fast adapter something switched both off, or the server does not offer them: see Get-NetAdapter, Get-NetAdapterRss and Get-SmbServerNetworkInterface.",
        path.server
    );
    let evidence = json!({ "server": path.server, "interface": path.client_index });
    findings.add(None, FindingKind::PathWithoutRss, Severity::Medium, sentence, evidence);
}

#[cfg(test)]
mod tests {
    use super::super::super::assemble::assemble;
    use super::super::super::read::read;
    use super::super::find;
    use super::*;

    fn found(rows: &str) -> Vec<(FindingKind, String)> {
        let text = format!(
            "PS C:\\> Get-SmbMultichannelConnection -IncludeNotSelected\n\n\
             Server Name   Selected Client IP     Server IP      Client Interface Index Server Interface Index Client RSS Capable Client RDMA Capable\n\
             -----------   -------- ---------     ---------      ---------------------- ---------------------- ------------------ -------------------\n{rows}"
        );
        let machine = assemble(&read(text.as_bytes()).unwrap().pieces);
        find(&machine).into_iter().map(|one| (one.kind, one.what)).collect()
    }

    #[test]
    fn a_tunnel_is_named_with_the_interface_beside_it() {
        let found = found(
            "nas.local     True     100.87.12.3   100.101.4.9    19                     4294967295             False              False\n\
             nas.local     False    192.168.1.20  192.168.1.10   7                      2                      True               False\n",
        );
        let [(FindingKind::TunnelPath, sentence)] = &found[..] else { panic!("{found:?}") };
        assert!(sentence.contains("-InterfaceIndex 7"), "{sentence}");
    }

    #[test]
    fn a_path_without_rss_and_rdma_is_named() {
        let found = found(
            "ksmbd01       True     10.0.0.2      10.0.0.1       12                     3                      False              False\n",
        );
        let [(FindingKind::PathWithoutRss, sentence)] = &found[..] else { panic!("{found:?}") };
        assert!(
            sentence.contains("interface 12") && sentence.contains("Get-NetAdapterRss"),
            "{sentence}"
        );
    }
}
