//! Makes the seeds of all targets from captures: `seeds FOLDER FILE...`; FOLDER has a folder for each target.
//! Key lists (`*.keys`), keytabs, text traces (`*.txt`) and PDB files are copied. It is not a fuzz target, but linked like one: the instrumented crates need libFuzzer.
#![no_main]
// The macro adds code after the exit.
#![allow(unreachable_code)]

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};

use libfuzzer_sys::fuzz_target;
use smbscope_capture::file::{Limits, Reader};
use smbscope_capture::frame::{TcpSegment, dissect};
use smbscope_wire::nbss;
use smbscope_wire::smb2::header::members;
use smbscope_wire::smb2::ioctl::{IoctlRequest, IoctlResponse};
use smbscope_wire::smb2::negotiate::NegotiateResponse;
use smbscope_wire::smb2::session::{SessionSetupRequest, SessionSetupResponse};

/// Seeds of one target from one capture, bytes of one seed.
const SEEDS: usize = 40;
const BYTES: usize = 4_096;

struct Seeds {
    folder: PathBuf,
    from_this: HashMap<&'static str, usize>,
}

impl Seeds {
    fn add(&mut self, target: &'static str, prefix: &[u8], bytes: &[u8]) {
        let count = self.from_this.entry(target).or_default();
        *count += 1;
        if *count > SEEDS {
            return;
        }
        let seed: Vec<u8> = prefix.iter().chain(bytes).copied().take(BYTES).collect();
        let mut hasher = DefaultHasher::new();
        seed.hash(&mut hasher);
        let folder = self.folder.join(target);
        assert!(folder.is_dir(), "seeds for {target}, which is not a target");
        let path = folder.join(format!("{:016x}", hasher.finish()));
        std::fs::write(path, seed).expect("the seed can be written");
    }

    fn capture(&mut self, path: &Path) {
        let whole = std::fs::read(path).expect("the capture can be read");
        self.add("file", &[], &whole);
        let Ok(mut reader) = Reader::open(path, Limits::default()) else { return };
        let (mut records, mut next) = (vec![0], HashMap::new());
        while let Ok(Some(chunk)) = reader.next_chunk(None) {
            for frame in &chunk.frames {
                let bytes = chunk.frame(frame);
                self.add("frame", &[0], bytes);
                self.add("links", &[0, 0], bytes);
                self.add("links", &[1, frame.number as u8], bytes);
                self.add("links", &[2, frame.number as u8], bytes.get(14..).unwrap_or_default());
                let Ok(segment) = dissect(frame.link, bytes, frame.original) else { continue };
                self.message(segment.payload);
                record(&segment, &mut records, &mut next);
                if records.len() > BYTES {
                    self.add("stream", &[], &records);
                    self.add("split", &[], &records);
                    records.truncate(1);
                }
            }
        }
        self.add("stream", &[], &records);
        self.add("split", &[], &records);
    }

    /// The message as events of the probe (crates/samba/src/bpf/event.h): as a request that is
    /// read, dispatched and done, and as a reply that is sent.
    fn probe(&mut self, message: &[u8]) {
        let head = &message[..message.len().min(600)];
        let mut dispatch = vec![0; 32 + 104];
        dispatch[0] = 1;
        dispatch[24..28].copy_from_slice(&(head.len() as u32).to_le_bytes());
        dispatch[28] = 1;
        dispatch[32 + 40..32 + 44].copy_from_slice(&(message.len() as u32).to_le_bytes());
        // The socket, IPv4, and the server's port.
        dispatch[32 + 56] = 1;
        dispatch[32 + 56 + 42..32 + 56 + 46].copy_from_slice(&[0xbd, 1, 2, 0]);
        dispatch.extend_from_slice(head);
        let mut done = vec![0; 48];
        done[0] = 1;
        done[40] = 1;
        let mut sent = vec![0; 48 + 32 * 8];
        sent[0] = 1;
        sent[36..40].copy_from_slice(&(message.len() as u32 + 4).to_le_bytes());
        sent[40] = 2;
        sent[44..48].copy_from_slice(&(head.len() as u32 + 4).to_le_bytes());
        sent[48..56].copy_from_slice(&[4, 0, 0, 0, 4, 0, 0, 0]);
        sent[56..60].copy_from_slice(&(message.len() as u32).to_le_bytes());
        sent[60..64].copy_from_slice(&(head.len() as u32).to_le_bytes());
        sent.extend_from_slice(&[0; 4]);
        sent.extend_from_slice(head);
        let mut seed = Vec::new();
        for (kind, body) in [(1, &dispatch), (2, &done), (7, &sent)] {
            seed.extend_from_slice(&[kind, 50, body.len() as u8, (body.len() >> 8) as u8]);
            seed.extend_from_slice(body);
        }
        self.add("probe", &[], &seed);
    }

    /// The message in SMB Direct (MS-SMBD section 2.2.3): as a Send of RoCE with its
    /// acknowledgement, and in a frame of iWARP behind the startup frames.
    fn rdma(&mut self, message: &[u8]) {
        let message = &message[..message.len().min(1_300)];
        let from = message.get(16).map_or(0, |flags| flags & 1);
        let mut transfer = vec![255, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 24, 0, 0, 0];
        transfer.extend_from_slice(&(message.len() as u32).to_le_bytes());
        transfer.extend_from_slice(&[0; 4]);
        transfer.extend_from_slice(message);
        let mut frame = ((transfer.len() + 18) as u16).to_be_bytes().to_vec();
        frame.extend_from_slice(&[0x41, 0x43, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0]);
        frame.extend_from_slice(&transfer);
        frame.resize(frame.len().next_multiple_of(4) + 4, 0);
        let mut seed = Vec::new();
        let mut record = |what: u8, shift: u8, body: &[u8]| {
            seed.extend_from_slice(&[what, shift, body.len() as u8, (body.len() >> 8) as u8]);
            seed.extend_from_slice(body);
        };
        record(from, 4, &transfer);
        record(1 - from, 0x11, &[0x1f, 0, 0, 1]);
        record(6, 0, b"MPA ID Req Frame\x00\x01\x00\x00");
        record(7, 0, b"MPA ID Rep Frame\x00\x01\x00\x00");
        record(6 | from, 0, &frame);
        self.add("rdma", &[0], &seed);
    }

    /// The message in NetBEUI, whole and in two parts.
    fn netbeui(&mut self, message: &[u8]) {
        let message = &message[..message.len().min(1_300)];
        let from = message.get(9).map_or(0, |flags| flags >> 7);
        let (first, last) = message.split_at(message.len() / 2);
        let whole = message.get(10..).unwrap_or_default();
        let command = message.get(4).copied().unwrap_or(0);
        let mut seed = Vec::new();
        for (what, shift, body) in [(from | 2, command, whole), (from, 0, first), (from, 1, last)] {
            seed.extend_from_slice(&[what, shift, body.len() as u8, (body.len() >> 8) as u8]);
            seed.extend_from_slice(body);
        }
        self.add("netbeui", &[2], &seed);
    }

    fn message(&mut self, payload: &[u8]) {
        if nbss::Header::parse(payload).is_none() {
            return;
        }
        let message = payload.get(4..).unwrap_or_default();
        match message.first() {
            Some(0xff) => {
                self.add("smb1", &[0], message);
                self.netbeui(message);
                if let Some(at) = message.windows(7).position(|bytes| bytes == b"NTLMSSP") {
                    self.add("auth", &[], &message[at..]);
                }
            }
            Some(0xfe) => {
                self.add("smb2", &[], message);
                self.probe(message);
                self.rdma(message);
                self.add("protect", &[7; 34], message);
                for member in members(message) {
                    let bytes = member.bytes;
                    let blobs = match (member.header.command.0, member.header.is_response()) {
                        (0, true) => NegotiateResponse(bytes).security_blob(),
                        (1, false) => SessionSetupRequest(bytes).security_blob(),
                        (1, true) => SessionSetupResponse(bytes).security_blob(),
                        (11, false) => IoctlRequest(bytes).input(),
                        (11, true) => IoctlResponse(bytes).output(),
                        _ => None,
                    };
                    if let Some(blob) = blobs.filter(|blob| !blob.is_empty()) {
                        self.add("auth", &[], blob);
                        self.add("secrets", &[], blob);
                    }
                }
            }
            Some(0xfd) => self.add("decrypt", &[7; 32], message),
            Some(0xfc) => self.add("compression", &[], message),
            _ => {}
        }
    }
}

/// A segment as the targets `stream` and `split` read it.
fn record(segment: &TcpSegment<'_>, out: &mut Vec<u8>, next: &mut HashMap<(u16, u16), u32>) {
    let from = u8::from(segment.source_port < segment.destination_port);
    let flags = segment.flags.0;
    let mut what = from | (flags >> 1 & 1) << 3 | (flags & 1) << 4 | (flags >> 2 & 1) << 5 | 0x80;
    if segment.source_port.min(segment.destination_port) == 139 {
        what |= 2;
    }
    let flow = (segment.source_port, segment.destination_port);
    let expected = next.insert(flow, segment.sequence.wrapping_add(segment.payload_len));
    // Whatever is not in order is retransmitted by the step back that a shift can express.
    let shift = match expected {
        Some(expected) if expected != segment.sequence && segment.payload_len > 0 => 0xe0,
        _ => 0,
    };
    let length = (segment.payload.len().min(BYTES) as u16).to_le_bytes();
    out.extend_from_slice(&[what, shift, length[0], length[1]]);
    out.extend_from_slice(&segment.payload[..segment.payload.len().min(BYTES)]);
}

/// Compressed messages of every form; captures hardly hold any.
fn compressed(seeds: &mut Seeds) {
    for algorithm in 0..6_u8 {
        for chained in [0, 1] {
            let mut message = b"\xfcSMB\x40\0\0\0".to_vec();
            message.extend_from_slice(&[algorithm, 0, chained, 0, 8, 0, 0, 0]);
            message.extend_from_slice(&[b'a', 0, 0, 0, 40, 0, 0, 0]);
            message.extend_from_slice(b"\x17abcd\x04\0 the same the same the same");
            seeds.add("compression", &[], &message);
        }
    }
}

/// Changes of good traces, and short good ones behind the byte that chooses.
fn binary_traces(seeds: &mut Seeds) {
    let metadata = include_bytes!("../../../tests/traces/loopback.ctf/metadata");
    let stream = include_bytes!("../../../tests/traces/loopback.ctf/channel0_0");
    let pages =
        include_bytes!("../../../tests/traces/loopback.v6.dat").get(8192..).unwrap_or_default();
    let perf = include_bytes!("../../../tests/traces/loopback.perf.data");
    seeds.add("ctf", &[0], metadata);
    seeds.add("ctf", &[1], stream);
    for choice in [6, 7] {
        seeds.add("ctf", &[choice], stream);
    }
    seeds.add("ctf", &[0], include_bytes!("../../../tests/traces/loopback.ctf2.metadata"));
    seeds.add("trace_dat", &[2], pages);
    seeds.add("perf", &[], perf);
    // Records begin behind the attributes and their numbers.
    let at = u64::from_le_bytes(perf[40..48].try_into().expect("eight bytes")) as usize;
    seeds.add("perf", &[2], perf.get(at..).unwrap_or_default());
    for choice in 0..6 {
        for place in [0_u8, 24, 72, 200] {
            for target in ["perf", "trace_dat", "ctf"] {
                seeds.add(target, &[choice], &[place, 1, 0, 0xff, place, 0, 0, 1]);
            }
        }
    }
}

fuzz_target!(
    init: {
        make();
        std::process::exit(0);
    },
    |_bytes: &[u8]| {}
);

fn make() {
    let mut args = std::env::args_os().skip(1).map(PathBuf::from);
    let folder = args.next().expect("usage: seeds FOLDER FILE...");
    let mut seeds = Seeds { folder, from_this: HashMap::new() };
    compressed(&mut seeds);
    for provider in 0..4 {
        // Requests, responses, packets, messages and sums of requests.
        for number in 0..32 {
            let head = [224, 0, provider, number << 1 | 1, 0, 2, 3];
            let fields: Vec<u8> = (0..224).map(|at| if at % 4 == 0 { at / 8 } else { 0 }).collect();
            seeds.add("windows", &[0], &[&head[..], &fields].concat());
        }
    }
    for choice in 0..8 {
        seeds.add("containers", &[choice], &[0, 0, 0, 0, 3, 0, 0, 0, 3, 0, 3, 0, 0, 0, 0, 0]);
    }
    // The file's and the record's header, Ethernet, IP and UDP are in front.
    let quic = include_bytes!("../../../tests/quic/quic.pcap").get(82..1_282).unwrap_or_default();
    seeds.add("quic", &[], quic);
    seeds.add("machine", &[], b"RX flow hash indirection table for a with 2 RX ring(s):\n 0: 0 1\nNIC statistics:\n a: 1\n");
    seeds.add(
        "machine",
        &[],
        b"   CPU0  CPU1\n  1:  2 3 PCI-MSI 1-edge a-TxRx-0\nCPU NODE SOCKET CORE\n0 0 0 0\n",
    );
    seeds.add(
        "machine",
        &[],
        b"Name : A\nNumberOfReceiveQueues : 2\nIndirectionTable : 0:0 0:2\n\nA  B\n-- --\n1  2\n",
    );
    seeds.add(
        "machine",
        &[],
        b"[{\"Name\":\"A\",\"IndirectionTable\":[{\"Group\":0,\"Number\":2}]}]",
    );
    let counters: [&[u8]; 3] = [
        b"\"(PDH-CSV 4.0) (UTC)(0)\",\"\\\\A\\Processor(_Total)\\% C2 Time\",\"\\\\A\\RDMA Activity(x)\\RDMA Inbound Bytes/sec\"\n\"11/27/2026 04:00:01.5\",\"1\",\"2.5\"\n",
        b"\"(PDH-TSV 4.0) (W. Europe Standard Time)(-60)\"\t\"\\\\A\\X(y (z))\\% Z\"\n\"1/2/2026 4:0:1\"\t\" \"\nExiting\n",
        b"1e300\",\"-0.0\"\n\"11/27/2026 04:00:02.5\",\"nan\",\"inf\"\n",
    ];
    for log in counters {
        seeds.add("counter_log", &[], log);
    }
    seeds.add("journal", &[], &[2; 176]);
    for (choice, file) in smbscope_fuzz::policies::files() {
        seeds.add("baseline", &[choice], &file);
    }
    for container in smbscope_fuzz::policies::containers() {
        seeds.add("policies_container", &[], &container);
    }
    seeds.add(
        "namespace_collected",
        &[],
        b"smbscope-client: PC1 2026-11-26T18:00:00Z\nsmbscope-address: 10.0.0.7\nsmbscope-section: referrals\na\\b c d\nsmbscope-section: opens\n\\\\c\\d\t2\nsmbscope-server: c 2026-11-26T18:00:00Z\nsmbscope-section: opens\n10.0.0.7\tx\n",
    );
    let namespaces: [&[u8]; 7] = [
        include_bytes!("../../../crates/plan/tests/namespace/export-2003.xml"),
        include_bytes!("../../../crates/plan/tests/namespace/export-2008.xml"),
        include_bytes!("../../../crates/plan/tests/namespace/view-2003-2008.txt"),
        include_bytes!("../../../crates/plan/tests/namespace/pktinfo.txt"),
        include_bytes!("../../../crates/plan/tests/namespace/targetlistv2.xml"),
        include_bytes!("../../../crates/plan/tests/namespace/Get-DfsnRoot.txt"),
        include_bytes!("../../../crates/plan/tests/namespace/Get-DfsnFolderTarget.txt"),
    ];
    for text in namespaces {
        seeds.add("namespace", &[0], text);
    }
    let texts: [&[u8]; 8] = [
        b"dn: CN=P,CN=P,CN=Dfs-Configuration,CN=System,DC=c,DC=com\nobjectClass: msDFS-Namespacev2\nmsDFS-Ttlv2: 300\nmsDFS-Propertiesv2: State=okay\nmsDFS-TargetListv2: <targets><target state=\"online\">\\\\r\\P</target></targets>\n\ndn: CN=link-1,CN=P,CN=P,CN=Dfs-Configuration,CN=System,DC=c,DC=com\nobjectClass: msDFS-Linkv2\nmsDFS-LinkPathv2: /a/b\nmsDFS-TargetListv2: <targets><target state=\"offline\" priorityClass=\"globalHigh\" priorityRank=\"1\">\\\\s\\x</target></targets>\n",
        b"[{\"Path\":\"\\\\\\\\c.com\\\\P\\\\a\",\"TargetPath\":\"\\\\\\\\s\\\\x\",\"State\":\"Online\"}]",
        b"\"Path\",\"State\"\n\"\\\\c.com\\P\",\"Online\"\n",
        b"New-DfsnFolder -Path '\\\\c.com\\P\\a' -TargetPath '\\\\s\\x' -TimeToLiveSec 60\n",
        b"# msdfs of \\\\c\\P\na/b\tmsdfs:s\\x,t\\x\nln -s 'msdfs:s\\x' c\n",
        b"[global]\nnetbios name = A\n[p]\nmsdfs root = yes\n[q]\nmsdfs proxy = \\s\\x\n",
        b"Share name   Resource                        Remark\n\n-------------------------------------------------------------------------------\na  D:\\a\n",
        b"Path   State\n----   -----\n\\\\d\\n Online\n",
    ];
    for text in texts {
        seeds.add("namespace", &[0], text);
    }
    seeds.add("namespace", &[1], b"10.0.0.1 fs1.contoso.com fs1\n");
    seeds.add("namespace", &[1], b"$ORIGIN c.com.\nfs1 IN A 10.0.0.1\nfs2 CNAME fs1\n");
    let level_4: Vec<u8> =
        [4_u16, 34, 1, 4, 300, 0, 34, 34, 34].iter().flat_map(|v| v.to_le_bytes()).collect();
    seeds.add(
        "namespace",
        &[2, 8, 0, 1, 0, 2, 0, 0, 0],
        &[&level_4[..], &[0; 16], b"\\\0s\0\\\0x\0\0\0"].concat(),
    );
    seeds.add("namespace", &[3], b"\x00\x00\x00\x00\x01\x00\x00\x00");
    seeds.add("html_tables", &[], b"<table><tr><th>Log</th><td>8 GB</td></tr></table>");
    seeds.add("secrets", &[], b"DOM\\joe:secret\n*:any\n");
    seeds.add(
        "secrets",
        &[],
        b"joe:500:aad3b435b51404eeaad3b435b51404ee:31d6cfe0d16ae931b73c59d7e0c089c0:::",
    );
    seeds.add("symbols", &[], b"ffffffff81000000 T _stext\nffffffffc0300000 t one\t[module]\n");
    let object = smbscope_fuzz::elf::object();
    let functions = smbscope_trace::symbols::elf_functions(
        std::io::Cursor::new(&object),
        smbscope_fuzz::elf::BUILD_ID,
    );
    assert!(
        functions.is_ok_and(|functions| functions.is_some_and(|it| it.find(20) == Some("outer")))
    );
    seeds.add("symbols", &[], &object);
    for choice in 0..24 {
        let buffer = smbscope_fuzz::etl::buffer();
        seeds.add("etl", &[choice], &[&buffer[..], &buffer].concat());
        seeds.add("etl", &smbscope_fuzz::etl::log_header(choice), &buffer);
    }
    binary_traces(&mut seeds);
    for path in args {
        seeds.from_this.clear();
        if path.extension().is_some_and(|extension| extension == "keys") {
            let keys = std::fs::read(&path).expect("the list can be read");
            seeds.add("keys", &[], &keys);
        } else if path.extension().is_some_and(|extension| extension == "keytab") {
            let keytab = std::fs::read(&path).expect("the keytab can be read");
            seeds.add("secrets", &[], &keytab);
        } else if path.extension().is_some_and(|extension| extension == "txt") {
            let text = std::fs::read(&path).expect("the trace can be read");
            for lines in text.chunks(BYTES) {
                seeds.add("trace", &[], lines);
                seeds.add("xperf", &[], lines);
            }
        } else if path.extension().is_some_and(|extension| extension == "pdb") {
            let file = std::fs::read(&path).expect("the file can be read");
            if file.len() <= 2 * BYTES {
                seeds.add("symbols", &[], &file);
            }
        } else {
            seeds.capture(&path);
        }
    }
}
