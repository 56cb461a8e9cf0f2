//! Referrals of a recorded Samba: what the views read equals tshark's fields `smb.dfs.*`, and the encoder writes the
//! same bytes again where Samba places strings like Windows does.
//!
//! Skips without tshark, and without the capture (`dfs/samba417-referrals.pcap` in the folder that `SMBSCOPE_SHARED`
//! names, else `../shared` next to the repository).

// A test may panic.
#![allow(clippy::unwrap_used)]

use smbscope_wire::dfs::encode::{Entry, Target, request, response};
use smbscope_wire::dfs::{EntryFlags, HeaderFlags, Request, Response, ServerType};
use std::path::PathBuf;
use std::process::Command;

fn shared() -> Option<PathBuf> {
    let shared = std::env::var_os("SMBSCOPE_SHARED").map_or_else(
        || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared"),
        PathBuf::from,
    );
    let path = shared.join("dfs/samba417-referrals.pcap");
    if !path.is_file() {
        smbscope_testing::skip!("{} is not there", path.display());
        return None;
    }
    Some(path)
}

/// tshark's values of these fields for each packet that has the filter's field; several values of one field are joined.
fn tshark(pcap: &PathBuf, filter: &str, fields: &[&str]) -> Option<Vec<Vec<String>>> {
    let mut command = Command::new("tshark");
    command.arg("-r").arg(pcap).args(["-d", "tcp.port==14451,nbss", "-Y", filter, "-T", "fields"]);
    command.args(["-E", "aggregator=|"]);
    for field in fields {
        command.args(["-e", field]);
    }
    let Ok(output) = command.output() else {
        smbscope_testing::skip!("tshark is not installed");
        return None;
    };
    let text = String::from_utf8(output.stdout).unwrap();
    Some(text.lines().map(|line| line.split('\t').map(str::to_owned).collect()).collect())
}

fn hex(text: &str) -> Vec<u8> {
    text.as_bytes()
        .chunks(2)
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap())
        .collect()
}

/// The IOCTL's input or output: its offset and length from the SMB2 message in the TCP payload.
fn ioctl_bytes(payload: &[u8], is_response: bool) -> Vec<u8> {
    let u32_at = |at: usize| u32::from_le_bytes(payload[at..at + 4].try_into().unwrap()) as usize;
    // NetBIOS header 4, SMB2 header 64; MS-SMB2 2.2.31 and 2.2.32.
    let body = 68;
    let (offset, length) = if is_response {
        (u32_at(body + 32), u32_at(body + 36))
    } else {
        (u32_at(body + 24), u32_at(body + 28))
    };
    payload[4 + offset..4 + offset + length].to_vec()
}

#[test]
fn answers_equal_tsharks_fields() {
    let Some(pcap) = shared() else { return };
    let fields = [
        "tcp.payload",
        "smb.dfs.path_consumed",
        "smb.dfs.num_referrals",
        "smb.dfs.flags",
        "smb.dfs.referral.version",
        "smb.dfs.referral.server.type",
        "smb.dfs.referral.flags",
        "smb.dfs.referral.ttl",
        "smb.dfs.referral.path",
        "smb.dfs.referral.alt_path",
        "smb.dfs.referral.node",
    ];
    let Some(rows) = tshark(&pcap, "smb.dfs.num_referrals", &fields) else { return };
    assert!(!rows.is_empty(), "the capture has referrals");
    let number = |text: &str| -> u32 {
        text.strip_prefix("0x")
            .map_or_else(|| text.parse().unwrap(), |hex| u32::from_str_radix(hex, 16).unwrap())
    };
    let mut targets = 0;
    for row in &rows {
        let bytes = ioctl_bytes(&hex(&row[0]), true);
        let read = Response::new(&bytes);
        assert_eq!(read.path_consumed().map(u32::from), Some(number(&row[1])));
        assert_eq!(read.referral_count().map(u32::from), Some(number(&row[2])));
        assert_eq!(read.flags().map(|flags| flags.0), Some(number(&row[3])));
        let all: Vec<_> = read.referrals().collect();
        let list = |index: usize| row[index].split('|').map(str::to_owned).collect::<Vec<_>>();
        let numbers =
            |index: usize| list(index).iter().map(|text| number(text)).collect::<Vec<_>>();
        let ours = |value: &dyn Fn(usize) -> u32| (0..all.len()).map(value).collect::<Vec<_>>();
        assert_eq!(ours(&|at| all[at].version().unwrap().into()), numbers(4));
        assert_eq!(ours(&|at| all[at].server_type().unwrap().0.into()), numbers(5));
        assert_eq!(ours(&|at| all[at].flags().unwrap().0.into()), numbers(6));
        assert_eq!(ours(&|at| all[at].time_to_live_s().unwrap()), numbers(7));
        let texts = |value: &dyn Fn(usize) -> Option<String>| {
            (0..all.len()).map(|at| value(at).unwrap()).collect::<Vec<_>>()
        };
        assert_eq!(texts(&|at| all[at].dfs_path()), list(8));
        assert_eq!(texts(&|at| all[at].alternate_path()), list(9));
        assert_eq!(texts(&|at| all[at].network_address()), list(10));
        targets += all.len();
        // The encoder's form of the same answer means the same.
        let paths: Vec<_> = (0..all.len())
            .map(|at| {
                (
                    all[at].dfs_path().unwrap(),
                    all[at].alternate_path().unwrap(),
                    all[at].network_address().unwrap(),
                )
            })
            .collect();
        let entries: Vec<_> = all
            .iter()
            .zip(&paths)
            .map(|(entry, (path, alternate, target))| {
                Entry::Target(Target {
                    version: entry.version().unwrap(),
                    server_type: ServerType(entry.server_type().unwrap().0),
                    flags: EntryFlags(entry.flags().unwrap().0),
                    time_to_live_s: entry.time_to_live_s().unwrap(),
                    dfs_path: path,
                    alternate_path: alternate,
                    network_address: target,
                })
            })
            .collect();
        let flags = HeaderFlags(read.flags().unwrap().0);
        let written = response(read.path_consumed().unwrap(), flags, &entries).unwrap();
        let again: Vec<_> = Response::new(&written).referrals().collect();
        assert_eq!(again.len(), all.len());
        for (again, entry) in again.iter().zip(&all) {
            assert_eq!(again.dfs_path(), entry.dfs_path());
            assert_eq!(again.alternate_path(), entry.alternate_path());
            assert_eq!(again.network_address(), entry.network_address());
            assert_eq!(again.time_to_live_s(), entry.time_to_live_s());
        }
    }
    println!("{} answers with {targets} targets agree with tshark", rows.len());
}

#[test]
fn requests_are_written_as_the_client_wrote_them() {
    let Some(pcap) = shared() else { return };
    let filter = "smb2.ioctl.function == 0x00060194 && smb2.flags.response == 0";
    let Some(rows) = tshark(&pcap, filter, &["tcp.payload"]) else { return };
    assert!(!rows.is_empty(), "the capture has requests");
    for row in &rows {
        let bytes = ioctl_bytes(&hex(&row[0]), false);
        let read = Request::new(&bytes);
        let written = request(read.max_referral_level().unwrap(), &read.path().unwrap());
        assert_eq!(written, bytes);
    }
}
