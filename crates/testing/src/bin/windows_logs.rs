//! Writes synthetic logs of Windows from a pcap: those of `netsh trace`, of `pktmon` (each packet at one component, as with
//! `--comp nics`, and at two), and of the SMB server, in both
//! layouts, and the server's messages; or one of them.
//! `cargo run -p smbscope-testing --bin windows_logs PCAP FOLDER [NAME]`

// A tool for tests and benchmarks: it may panic.
#![allow(clippy::exit, clippy::unwrap_used)]

use std::path::Path;

use smbscope_testing::windows_log::{
    Layers, Layout, conversation, frames_of_pcap, netsh, pktmon, server_events, server_messages,
};

const NAMES: [&str; 6] =
    ["netsh", "pktmon-nics", "pktmon", "smbserver-20348", "smbserver-26100", "smbserver-messages"];

fn main() -> std::io::Result<()> {
    let arguments: Vec<_> = std::env::args_os().skip(1).collect();
    let [pcap, folder, only @ ..] = &arguments[..] else {
        eprintln!("usage: windows_logs PCAP FOLDER [NAME] (a pcap of Ethernet with microseconds)");
        std::process::exit(2);
    };
    let frames = frames_of_pcap(&std::fs::read(pcap)?);
    let folder = Path::new(folder);
    std::fs::create_dir_all(folder)?;
    for name in NAMES.iter().filter(|name| only.first().is_none_or(|only| only == **name)) {
        let exchanges = || conversation(&frames);
        let log = match *name {
            "netsh" => netsh(&frames, Layers::default()),
            "pktmon-nics" => pktmon(&frames, 1),
            "pktmon" => pktmon(&frames, 2),
            "smbserver-20348" => server_events(&exchanges(), Layout::Cycles),
            "smbserver-26100" => server_events(&exchanges(), Layout::Times),
            _ => server_messages(&exchanges(), 0),
        };
        let path = folder.join(format!("{name}-synthetic.etl"));
        std::fs::write(&path, log)?;
        println!("{}", path.display());
    }
    Ok(())
}
