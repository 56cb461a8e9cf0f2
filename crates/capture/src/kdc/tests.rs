//! Users by what KDCs tell, from the recorded fixture and, where it is, a capture of other people.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use proptest::prelude::*;

use super::*;
use crate::Part;
use crate::decoder::Decoder;
use crate::file::{self, Reader};
use crate::frame::{NotTcp, dissect};
use crate::options::{Input, Options};

fn fixture() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/kerberos.pcapng")
}

/// Users of the sessions and how many operations each has, with this many threads.
fn users(path: &Path, threads: usize) -> BTreeMap<Option<String>, u64> {
    let options = Options { threads, ..Options::default() };
    let mut users = BTreeMap::new();
    for part in Decoder::open(vec![Input::Path(path.to_owned())], options).unwrap() {
        if let Part::Sessions(rows) = part.unwrap() {
            for row in rows {
                *users.entry(row.user).or_default() += row.operations;
            }
        }
    }
    users
}

#[test]
fn a_ticket_that_the_kdc_gave_names_the_user() {
    for threads in [1, 4] {
        let users = users(&fixture(), threads);
        let names: Vec<_> = users.keys().flatten().collect();
        assert_eq!(names, ["alice@LAB.TEST", "bob@LAB.TEST"], "over UDP, and over TCP");
        assert!(!users.contains_key(&None), "{users:?}");
    }
}

#[test]
fn in_a_capture_of_other_people() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../../shared/captures/smb311-tso-async.pcapng");
    if !path.exists() {
        smbscope_testing::skip!("{} is not there", path.display());
        return;
    }
    // As `tshark -Y kerberos` shows them; the ticket of the fourth session was fetched before.
    let expected = [
        (None, 6),
        (Some("Administrator@TEST.LOCAL".to_owned()), 70),
        (Some("DESKTOP-RBDMVVA$@TEST.LOCAL".to_owned()), 16),
    ];
    assert_eq!(users(&path, 1), BTreeMap::from(expected));
}

/// What is sent on the first connection to port 88 of the fixture: both ways, in runs.
fn said() -> Vec<(bool, Vec<u8>)> {
    let mut said: Vec<(bool, Vec<u8>)> = Vec::new();
    let mut reader = Reader::open(fixture(), file::Limits::default()).unwrap();
    while let Some(chunk) = reader.next_chunk(None).unwrap() {
        for frame in &chunk.frames {
            let Ok(segment) = dissect(frame.link, chunk.frame(frame), frame.original) else {
                continue;
            };
            let ports = [segment.source_port, segment.destination_port];
            if !ports.contains(&PORT) || segment.payload.is_empty() {
                continue;
            }
            let answers = segment.source_port == PORT;
            match said.last_mut().filter(|(way, _)| *way == answers) {
                Some((_, run)) => run.extend_from_slice(segment.payload),
                None => said.push((answers, segment.payload.to_vec())),
            }
        }
    }
    said
}

/// A part of what one side sends.
#[derive(Clone, Debug)]
struct Sent {
    answers: bool,
    sequence: u32,
    bytes: Vec<u8>,
    /// Bytes on the wire.
    length: u32,
}

/// All of it on one connection, in segments of `size` bytes.
fn sent(size: usize, start: u32) -> Vec<Sent> {
    let mut next = [start, start.wrapping_add(77)];
    let mut out = Vec::new();
    for (answers, run) in said() {
        for piece in run.chunks(size) {
            let sequence = next[usize::from(answers)];
            let length = piece.len() as u32;
            next[usize::from(answers)] = sequence.wrapping_add(length);
            out.push(Sent { answers, sequence, bytes: piece.to_vec(), length });
        }
    }
    out
}

/// Whose tickets are known after these segments.
fn accounts(sent: &[Sent]) -> Vec<String> {
    let (mut kdc, mut out, mut tickets) = (Kdc::default(), Output::default(), Tickets::default());
    for one in sent {
        let mut frame = vec![0x45, 0, 0, 0, 0, 0, 0, 0, 64, 6, 0, 0];
        let (mut ends, mut ports) = ([[10, 0, 0, 1], [10, 0, 0, 2]], [[0xc3, 0x50], [0, 88]]);
        if one.answers {
            ends.reverse();
            ports.reverse();
        }
        frame.extend(ends.concat());
        frame.extend(ports.concat());
        frame.extend(one.sequence.to_be_bytes());
        frame.extend([0, 0, 0, 0, 0x50, 0x10, 1, 0, 0, 0, 0, 0]);
        let original = frame.len() as u32 + one.length;
        frame[2..4].copy_from_slice(&(original as u16).to_be_bytes());
        frame.extend(&one.bytes);
        let segment = dissect(file::LinkType::RAW, &frame, original).unwrap();
        kdc.segment(FlowKey::from_segment(&segment).0, &segment, 0, &mut out);
    }
    out.details.tickets.drain(..).for_each(|ticket| tickets.learn(ticket));
    let mut accounts: Vec<_> = tickets.accounts.into_values().collect();
    accounts.sort();
    accounts
}

/// The ticket for the KDC and the one for the file server, of which the KDC hides whose it is.
const BOTH: [&str; 2] = ["bob@LAB.TEST"; 2];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_split_and_repetition_gives_the_same(size in 1_usize..1_500, start in any::<u32>()) {
        let mut sent = sent(size, start);
        prop_assert_eq!(accounts(&sent), BOTH);
        sent = sent.into_iter().flat_map(|one| [one.clone(), one]).collect();
        prop_assert_eq!(accounts(&sent), BOTH);
    }

    #[test]
    fn neighbours_may_overtake_each_other(size in 200_usize..1_500, at in any::<usize>()) {
        let mut sent = sent(size, 0);
        // Of one side: the first segment says where its stream begins.
        let pairs: Vec<usize> = (2..sent.len() - 1)
            .filter(|&at| sent[at].answers == sent[at + 1].answers)
            .collect();
        if !pairs.is_empty() {
            let at = pairs[at % pairs.len()];
            if sent[..at].iter().any(|one| one.answers == sent[at].answers) {
                sent.swap(at, at + 1);
            }
        }
        prop_assert_eq!(accounts(&sent), BOTH);
    }

    #[test]
    fn nothing_that_arrives_is_too_much(
        pieces in prop::collection::vec(
            (any::<bool>(), any::<u32>(), prop::collection::vec(any::<u8>(), 0..64), 0_u32..1_400),
            0..64,
        )
    ) {
        let sent: Vec<_> = pieces
            .into_iter()
            .map(|(answers, sequence, bytes, more)| {
                Sent { answers, sequence, length: bytes.len() as u32 + more, bytes }
            })
            .collect();
        accounts(&sent);
    }
}

#[test]
fn a_capture_cut_to_headers_has_the_whole_name_or_no_name() {
    // Ethernet, IP and TCP take 66 bytes of a snap length of 512 and of 256.
    for (snap, expected) in [(446, &BOTH[..]), (190, &[])] {
        let mut sent = sent(1_460, 0);
        for one in &mut sent {
            one.bytes.truncate(snap);
        }
        assert_eq!(accounts(&sent), *expected, "{snap} bytes of each segment");
    }
}

#[test]
fn a_lost_end_costs_no_name_and_a_lost_start_makes_none_up() {
    let sent = sent(500, 0);
    let answers: Vec<usize> = (0..sent.len()).filter(|&at| sent[at].answers).collect();
    for (lost, at) in answers.iter().enumerate() {
        let mut rest = sent.clone();
        rest.remove(*at);
        let accounts = accounts(&rest);
        assert!(accounts.iter().all(|name| name == "bob@LAB.TEST"), "answer {lost}: {accounts:?}");
    }
}

#[test]
fn without_the_reply_to_the_first_request_no_user_is_named() {
    let mut sent = sent(1_460, 0);
    let request = sent.iter().rposition(|one| !one.answers).unwrap();
    assert!(accounts(&sent.split_off(request)).is_empty());
}

#[test]
fn a_datagrams_place_is_found_behind_every_header() {
    let datagram = [0, 88, 0xc3, 0x50, 0, 11, 0, 0, b'a', b'b', b'c', 0, 0];
    let mut v4 = vec![0x45, 0, 0, 31, 0, 0, 0x40, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
    v4.extend(datagram);
    let mut v6 = vec![0x60, 0, 0, 0, 0, 19, 0, 64];
    v6.extend([0; 32]);
    v6.extend([17, 0, 0, 0, 0, 0, 0, 0]);
    v6.extend(datagram);
    for frame in [&v4, &v6] {
        let Err(NotTcp::Udp(udp)) = dissect(file::LinkType::RAW, frame, frame.len() as u32) else {
            panic!("no UDP: {frame:?}");
        };
        let datagram = udp.datagram(frame).unwrap();
        assert_eq!((datagram.source_port, datagram.payload), (88, &b"abc"[..]));
    }
    // A later fragment has no header.
    v4[7] = 1;
    assert!(matches!(dissect(file::LinkType::RAW, &v4, 33), Err(NotTcp::Fragment(_))));
}
