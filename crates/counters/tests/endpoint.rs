//! A sampler and an endpoint on loopback: the exchange over HTTP, and the errors when it fails. Parsing
//! and mapping have their tests next to the code.

#![allow(clippy::unwrap_used, missing_docs)]

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::thread;

use smbscope_counters::metrics::ANSWER_BYTES_MAX;
use smbscope_counters::{Metrics, Source};

/// Answers one request with these bytes; returns the address.
fn endpoint(status: &str, body: Vec<u8>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let head = format!("HTTP/1.1 {status}\r\nConnection: close\r\n\r\n");
    thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut request = [0; 4_096];
        let length = stream.read(&mut request).unwrap();
        assert!(request[..length].starts_with(b"GET /metrics HTTP/1.1\r\n"));
        // The client closes early when the answer is too long.
        let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(&body));
    });
    address
}

fn metrics(address: SocketAddr) -> Metrics {
    Metrics::new(&format!("http://{address}/metrics"), &[], false).unwrap()
}

#[test]
fn readings_come_over_http() {
    let address = endpoint("200 OK", b"node_filefd_allocated 1537\nnode_load1 0.5\n".to_vec());
    let readings = metrics(address).read().unwrap();
    let values: Vec<_> = readings.iter().map(|r| (r.name.as_ref(), r.value)).collect();
    assert_eq!(values, [("open_files", 1_537.0), ("load_1", 0.5)]);
}

#[test]
fn failures_are_explained() {
    let address = endpoint("404 Not Found", Vec::new());
    assert_eq!(metrics(address).read().unwrap_err(), format!("{address} answers with HTTP 404"));
    let long = b"node_load1 0.5\n".repeat(ANSWER_BYTES_MAX as usize / 15 + 2);
    let address = endpoint("200 OK", long);
    let error = metrics(address).read().unwrap_err();
    assert_eq!(error, format!("{address} answers with more than 8 MiB"));
    // The port of a closed listener refuses connections.
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let error = metrics(address).read().unwrap_err();
    assert!(error.starts_with(&format!("{address}: ")), "{error}");
}
