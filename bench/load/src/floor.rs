//! The floor: the same bytes out and in on the same runtime, and nothing else.
//!
//! The load client logs on and does the operation once over a transport that writes down what it
//! sends; from then on the socket is used bare. Only the MessageId changes, and in a Close the
//! FileId that the Create before it got.

use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use smbscope_client::transport::Transport;
use smbscope_client::{Ask, Host, Session};
use smbscope_wire::smb2::encode::Echo;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::net::TcpStream;

use crate::measure::{Figures, Gate, closed_loop};
use crate::ours::LOGON;
use crate::{Case, Operation, ours};

/// Where the header begins in what is sent.
const HEADER: usize = 4;
const MESSAGE_ID: usize = HEADER + 24;
/// FileId in a Create reply and in a Close request.
const CREATED: usize = HEADER + 64 + 64;
const CLOSED: usize = HEADER + 64 + 8;

#[derive(Default)]
struct Tapped {
    stream: Option<TcpStream>,
    /// Frames as they were written, and how long what came after each was.
    frames: Vec<(Vec<u8>, usize)>,
}

#[derive(Clone)]
struct Tap(Arc<Mutex<Tapped>>);

impl AsyncRead for Tap {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let mut tapped = self.0.lock().unwrap();
        let before = buffer.filled().len();
        let polled = Pin::new(tapped.stream.as_mut().unwrap()).poll_read(context, buffer);
        if let Some((_, length)) = tapped.frames.last_mut() {
            *length += buffer.filled().len() - before;
        }
        polled
    }
}

impl AsyncWrite for Tap {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let mut tapped = self.0.lock().unwrap();
        let polled = Pin::new(tapped.stream.as_mut().unwrap()).poll_write(context, bytes);
        if let Poll::Ready(Ok(count)) = polled {
            assert_eq!(count, bytes.len(), "a frame went out in parts");
            tapped.frames.push((bytes.to_vec(), 0));
        }
        polled
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

/// Measures one case.
pub async fn run(case: Arc<Case>) -> Figures {
    let gate = Gate::new(case.logons());
    let opened = gate.clone();
    closed_loop(case.sessions, case.rounds(), case.round(), opened, move |number, counter| {
        tokio::spawn(live(case.clone(), number, gate.clone(), counter));
    })
    .await
}

async fn live(case: Arc<Case>, number: usize, gate: Arc<Gate>, counter: Arc<AtomicU64>) {
    let (mut stream, mut frames) = Box::pin(learn(&case, number, &gate)).await;
    gate.pass().await;
    let last = &frames[frames.len() - 1].0;
    let mut message_id = u64::from_le_bytes(last[MESSAGE_ID..][..8].try_into().unwrap());
    let mut buffer = [0; 1024];
    loop {
        for (frame, length) in &mut frames {
            message_id += 1;
            frame[MESSAGE_ID..][..8].copy_from_slice(&message_id.to_le_bytes());
            if frame[HEADER + 12] == 6 {
                frame[CLOSED..][..16].copy_from_slice(&buffer[CREATED..][..16]);
            }
            stream.write_all(frame).await.unwrap();
            let mut read = 0;
            while read < *length {
                let count = stream.read(&mut buffer[read..]).await.unwrap();
                assert!(count > 0, "the server closed the connection");
                read += count;
            }
            assert_eq!((read, &buffer[HEADER + 8..][..4]), (*length, &[0; 4][..]));
            counter.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Logs on, does the operation once; the socket, and each request with its reply's length.
async fn learn(case: &Case, number: usize, gate: &Gate) -> (TcpStream, Vec<(Vec<u8>, usize)>) {
    let _turn = gate.logon().await;
    let host = ours::host(case, false).await;
    let stream = TcpStream::connect(host.addresses[0]).await.unwrap();
    stream.set_nodelay(true).unwrap();
    let tapped = Tapped { stream: Some(stream), ..Tapped::default() };
    let tap = Tap(Arc::new(Mutex::new(tapped)));
    let dialled = tap.clone();
    let dial = move || Ok(Box::new(dialled.clone()) as Box<dyn Transport>);
    let tapped =
        Host::dialled(host.target.clone(), host.config.clone(), host.clock.clone(), false, dial);
    let credential = ours::credential(case, number);
    let session = Session::connect(LOGON, Arc::new(tapped), &credential, 0, None).await;
    let mut session = session.map_err(|failed| failed.error).unwrap();
    let path: Arc<str> = ours::FILE.into();
    let file_id = ours::open(&mut session, &path).await;
    tap.0.lock().unwrap().frames.clear();
    match case.operation {
        Operation::Pair => {
            let file_id = ours::open(&mut session, &path).await;
            ours::close(&mut session, file_id, &path).await;
        }
        Operation::QueryInfo => ours::query(&mut session, file_id, &path).await,
        Operation::Echo | Operation::Idle => {
            session.call(&Echo, Ask::default()).await.unwrap();
        }
    }
    let mut tapped = tap.0.lock().unwrap();
    (tapped.stream.take().unwrap(), std::mem::take(&mut tapped.frames))
}
