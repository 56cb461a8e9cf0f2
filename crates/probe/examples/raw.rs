//! Prints what the probe tells of the running smbd: `raw SECONDS [PORT]`.
#![allow(clippy::unwrap_used)]
use smbscope_probe::{find, loader, raw};
use std::time::{Duration, Instant};
fn main() {
    let args: Vec<String> = std::env::args().collect();
    let ports = args.get(2).map(|p| p.parse().unwrap()).into_iter().collect();
    let found = find::find(&find::Choice { ports, ..Default::default() }).unwrap();
    eprintln!("{found:?}");
    let mut probe = loader::Probe::attach(&found, loader::LoadOptions::default()).unwrap();
    eprintln!("expensive: {:?}", probe.expensive);
    let begin = Instant::now();
    let mut assembler = smbscope_probe::assemble::Assembler::default();
    while begin.elapsed() < Duration::from_secs(args[1].parse().unwrap()) {
        probe
            .read(|bytes| {
                let Some((head, event)) = raw::event(bytes) else {
                    println!("??? {}", bytes.len());
                    return;
                };
                let mut text = format!("{} {:?}", head.time % 1_000_000_000_000, event);
                text.truncate(400);
                println!("{} {text}", head.thread);
                assembler.event(head, event, &mut |told| {
                    println!(
                        "   TOLD {} {} {} {:?}",
                        told.from_client,
                        told.sequence,
                        told.length,
                        told.bytes.get(12..16)
                    )
                });
            })
            .unwrap();
        std::thread::sleep(Duration::from_millis(20));
    }
    println!("{:?} {:?}", probe.counted(), assembler.losses);
}
