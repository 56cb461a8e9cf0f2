//! A slow link: its time belongs to the transfer, not to the server.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::time::Duration;

use smbscope_client::Config;

use crate::client::{Client, connect};
use crate::recorder::{Recorder, alone, column, text};
use smbscope_testing::run::operations;
use smbscope_testing::samba::samba;

/// Less than the send buffer of the server's kernel.
const BYTES: u32 = 1 << 20;
/// How many bytes the link takes at once, and how often.
const AT_ONCE: usize = 32 << 10;
const EVERY: Duration = Duration::from_millis(10);

/// Forwards between a client and the server at that port, slowly towards the client; returns its own port.
fn slow_line(server: u16) -> u16 {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        let (client, _) = listener.accept().unwrap();
        client.set_nodelay(true).unwrap();
        let server = connect(server, |socket| {
            socket.set_recv_buffer_size(AT_ONCE as u32).unwrap();
        });
        let (mut from, mut to) = (client.try_clone().unwrap(), server.try_clone().unwrap());
        std::thread::spawn(move || {
            let _ = std::io::copy(&mut from, &mut to);
            let _ = to.shutdown(std::net::Shutdown::Both);
        });
        let (mut from, mut to) = (server, client);
        let mut bytes = vec![0; AT_ONCE];
        while let Ok(count @ 1..) = from.read(&mut bytes) {
            std::thread::sleep(EVERY * count as u32 / AT_ONCE as u32);
            if to.write_all(&bytes[..count]).is_err() {
                break;
            }
        }
    });
    port
}

#[test]
fn a_reply_ends_when_its_last_byte_leaves() {
    let _alone = alone();
    let Some(lab) = samba(|_| {}) else { return };
    let Some(recorder) = Recorder::begin(&lab) else { return };
    let port = slow_line(lab.port());
    let target = lab.target.replace(&format!(":{}/", lab.port()), &format!(":{port}/"));
    let mut client = Client::connect_by(&target, &lab, Config::default());
    let file_id = client.open("large");
    client.write(file_id, 0, &vec![7; BYTES as usize]);
    assert_eq!(client.read(file_id, 0, BYTES), BYTES);
    client.close(file_id);
    client.end();
    let least = EVERY * BYTES / AT_ONCE as u32 / 2;
    let mut reads = 0;
    for batch in operations(recorder.end().parts) {
        let [transfers, turnarounds] =
            ["response_transfer_ns", "turnaround_ns"].map(|name| column(&batch, name));
        for (row, command) in text(&batch, "command").iter().enumerate() {
            if command == "Read" {
                let [transfer, turnaround] = [&transfers, &turnarounds].map(|of| of[row].unwrap());
                eprintln!("transfer {transfer} ns, turnaround {turnaround} ns");
                assert!(transfer > least.as_nanos() as i64, "{transfer} ns");
                assert!(turnaround < transfer / 2, "{turnaround} ns");
                reads += 1;
            }
        }
    }
    assert_eq!(reads, 1);
}
