//! The `smb` crate in the table of bench-load: a program of its own, see `Cargo.toml`.
//!
//! smb-transport leaves Nagle's algorithm on and sends length and message by two writes, so that
//! each request would wait for a delayed acknowledgement; TCP_NODELAY is set on its sockets from
//! outside.

#[path = "../../src/measure.rs"]
mod measure;

use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use measure::{Gate, closed_loop};
use smb::FileNetworkOpenInformation;
use smb::connection::EncryptionMode;
use smb::{Client, ClientConfig, ConnectionConfig, FileAccessMask, FileCreateArgs, UncPath};

fn main() {
    measure::raise_files();
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let sessions: usize = arguments[2].parse().unwrap();
    let runtime = measure::runtime();
    let gate = Gate::new(8);
    let opened = gate.clone();
    let looped = async move {
        closed_loop(sessions, 3, Duration::from_millis(400), opened, move |number, counter| {
            tokio::spawn(live(arguments.clone(), number, gate.clone(), counter));
        })
        .await
    };
    runtime.block_on(runtime.spawn(looped)).unwrap().print();
    std::process::exit(0);
}

async fn live(arguments: Vec<String>, number: usize, gate: Arc<Gate>, counter: Arc<AtomicU64>) {
    let turn = gate.logon().await;
    let (address, share) = arguments[5].trim_start_matches('/').split_once('/').unwrap();
    let (host, port) = address.split_once(':').unwrap();
    let connection = ConnectionConfig {
        port: Some(port.parse().unwrap()),
        encryption_mode: EncryptionMode::Disabled,
        compression_enabled: false,
        timeout: Some(Duration::from_secs(30)),
        ..ConnectionConfig::default()
    };
    let client = Client::new(ClientConfig { connection, ..ClientConfig::default() });
    let share = UncPath::from_str(&format!(r"\\{host}\{share}")).unwrap();
    let password = std::env::var("BENCH_PASSWORD").unwrap_or_default();
    let user = format!("user{:05}", number % 100 + 1);
    client.share_connect(&share, &user, password).await.unwrap();
    no_delay();
    drop(turn);
    gate.pass().await;
    let path = share.with_path("bench.bin");
    let access = FileAccessMask::new().with_generic_read(true);
    let wish = FileCreateArgs::make_open_existing(access);
    let file = client.create_file(&path, &wish).await.unwrap().unwrap_file();
    loop {
        match arguments[1].as_str() {
            "pair" => {
                let file = client.create_file(&path, &wish).await.unwrap().unwrap_file();
                counter.fetch_add(1, Ordering::Relaxed);
                file.close().await.unwrap();
            }
            _ => {
                file.query_info::<FileNetworkOpenInformation>().await.unwrap();
            }
        }
        counter.fetch_add(1, Ordering::Relaxed);
    }
}

/// Sets TCP_NODELAY on all sockets of this process.
fn no_delay() {
    for entry in std::fs::read_dir("/proc/self/fd").into_iter().flatten().flatten() {
        let Some(fd) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        let on: libc::c_int = 1;
        // SAFETY: the option is an int; on anything but a TCP socket the call fails.
        unsafe {
            let (value, length) = ((&raw const on).cast(), size_of_val(&on) as libc::socklen_t);
            libc::setsockopt(fd, libc::IPPROTO_TCP, libc::TCP_NODELAY, value, length);
        }
    }
}
