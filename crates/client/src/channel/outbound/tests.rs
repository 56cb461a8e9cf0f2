//! What is sent, on a pipe in memory.

use std::sync::Arc;

use smbscope_wire::smb2::FileId;
use smbscope_wire::smb2::encode::reply::ReadReply;
use smbscope_wire::smb2::encode::{Echo, Read, Write};
use smbscope_wire::smb2::read::ReadFlags;
use smbscope_wire::smb2::write::WriteFlags;
use tokio::io::{AsyncReadExt as _, DuplexStream, duplex};

use super::*;
use crate::clock::Clock;
use crate::row::LinkNames;
use crate::transport::{Endpoints, RoundTrip};

fn channel(stream: DuplexStream, dialect: Dialect) -> Channel {
    let endpoints = Endpoints {
        connection: 0,
        channel: 0,
        ports: (1, 2),
        connect_ns: None,
        round_trip: Arc::new(RoundTrip::new()),
        names: Arc::new(LinkNames::default()),
        socket: None,
        arrival: None,
    };
    let mut channel = Channel::new(Box::new(stream), endpoints, Clock::start(), 64, true);
    channel.negotiated(dialect, dialect > Dialect::SMB_2_0_2);
    channel.credits = 64;
    channel
}

fn write(data: &[u8]) -> Write<'_> {
    let file_id = FileId { persistent: 1, volatile: 2 };
    Write { file_id, offset: 0, flags: WriteFlags(0), data }
}

async fn header(peer: &mut DuplexStream) -> Header {
    let mut bytes = [0; nbss::HEADER_BYTES];
    peer.read_exact(&mut bytes).await.unwrap();
    let mut message = vec![0; nbss::Header::parse(&bytes).unwrap().length as usize];
    peer.read_exact(&mut message).await.unwrap();
    Header::parse(&message).unwrap()
}

#[tokio::test]
async fn repeated_requests_carry_the_channel_sequence_and_the_replay_flag() {
    for (dialect, sequence) in [(Dialect::SMB_3_1_1, Some(3)), (Dialect::SMB_2_1, Some(0))] {
        let (near, mut peer) = duplex(1 << 20);
        let mut channel = channel(near, dialect);
        channel.channel_sequence = 3;
        let ask = Ask { payload_bytes: 100, replay: true, ..Ask::default() };
        channel.add(7, 1, false, &write(&[5; 100]), ask);
        channel.send_while_receiving().await.unwrap();
        let sent = header(&mut peer).await;
        assert_eq!(sent.channel_sequence(), sequence, "{dialect:?}");
        assert!(sent.flags.contains(Flags::REPLAY) && sent.session_id == 7);
        channel.add(7, 1, false, &Echo, Ask::default());
        channel.send().await.unwrap();
        let sent = header(&mut peer).await;
        assert_eq!((sent.channel_sequence(), sent.flags.0), (sequence, 0));
    }
}

/// A peer that reads nothing before its own reply is taken: both sides would wait for each other.
#[tokio::test]
async fn replies_are_read_while_a_request_is_written() {
    let (near, mut peer) = duplex(1024);
    let mut channel = channel(near, Dialect::SMB_3_1_1);
    let read = Read { file_id: FileId::ANY, offset: 0, length: 9000, flags: ReadFlags(0) };
    let ask = Ask { payload_bytes: 9000, ..Ask::default() };
    let first = channel.add(7, 1, false, &read, ask);
    channel.send_while_receiving().await.unwrap();
    let far = tokio::spawn(async move {
        header(&mut peer).await;
        let mut frame = Frame::new();
        let flags = Flags::SERVER_TO_REDIR;
        frame.member(
            &Head { flags, credits: 1, session_id: 7, ..Head::default() },
            &ReadReply { data: &[1; 9000] },
        );
        peer.write_all(frame.plain()).await.unwrap();
        let sent = header(&mut peer).await;
        (sent.message_id, peer)
    });
    let ask = Ask { payload_bytes: 65_536, ..Ask::default() };
    let second = channel.add(7, 1, false, &write(&[5; 65_536]), ask);
    channel.send_while_receiving().await.unwrap();
    assert_eq!(far.await.unwrap().0, second);
    let replies = channel.take_replies();
    assert_eq!(replies.iter().map(|(id, _)| *id).collect::<Vec<_>>(), [first]);
    // The request that is still in flight has its times although the reply reordered the list.
    let waiting = channel.pending.iter().find(|pending| pending.message_id == second).unwrap();
    let row = &waiting.row.as_ref().unwrap().operation;
    assert!(row.request_end() >= row.request_start() && row.request_wire_bytes() > Some(65_536));
    assert_eq!(channel.in_flight, 1);
}
