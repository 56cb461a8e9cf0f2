//! Writes synthetic logs of Windows from a pcap: those of `netsh trace`, of `pktmon` and of the SMB server, in both
//! layouts, and the server's messages. `cargo run -p smbscope-testing --bin windows_logs PCAP FOLDER`

use std::path::Path;

use smbscope_testing::windows_log::{
    Layers, Layout, conversation, frames_of_pcap, netsh, pktmon, server_events, server_messages,
};

fn main() -> std::io::Result<()> {
    let arguments: Vec<_> = std::env::args_os().skip(1).collect();
    let [pcap, folder] = &arguments[..] else {
        eprintln!("usage: windows_logs PCAP FOLDER (a pcap of Ethernet with microseconds)");
        std::process::exit(2);
    };
    let frames = frames_of_pcap(&std::fs::read(pcap)?);
    let exchanges = conversation(&frames);
    let folder = Path::new(folder);
    std::fs::create_dir_all(folder)?;
    for (name, log) in [
        ("netsh.etl", netsh(&frames, Layers::default())),
        ("pktmon.etl", pktmon(&frames, 2)),
        ("smbserver-20348.etl", server_events(&exchanges, Layout::Cycles)),
        ("smbserver-26100.etl", server_events(&exchanges, Layout::Times)),
        ("smbserver-messages.etl", server_messages(&exchanges, 0)),
    ] {
        std::fs::write(folder.join(name), log)?;
        println!("{} (synthetic)", folder.join(name).display());
    }
    Ok(())
}
