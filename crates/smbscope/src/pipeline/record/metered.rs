//! A live source whose operations are counted on their way, for a collector of metrics that asks over HTTP.

use std::sync::{Arc, Mutex, PoisonError};

use smbscope_report::export::prometheus::{Metrics, Recorder};
use smbscope_serve::http::{Listener, Request, Response};
use smbscope_store::Part;
use smbscope_tables::anonymize::Tokenizer;

use super::source::{LiveSource, Received};

/// The media type of OpenMetrics 1.0.
const MEDIA_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// What was counted so far.
#[derive(Default)]
struct Counted {
    metrics: Metrics,
    recorder: Recorder,
}

/// A source that counts.
pub struct MeteredSource {
    source: Box<dyn LiveSource>,
    /// Names of shares become tokens.
    tokenizer: Option<Tokenizer>,
    counted: Arc<Mutex<Counted>>,
    /// Answers from the first rows on: by then this program has dropped its capabilities.
    listener: Option<Listener>,
}

impl MeteredSource {
    /// Counts the rows of `source` and answers at an address.
    pub fn new(
        source: Box<dyn LiveSource>,
        listener: Listener,
        tokenizer: Option<Tokenizer>,
    ) -> MeteredSource {
        MeteredSource { source, tokenizer, counted: Arc::default(), listener: Some(listener) }
    }

    fn count(&mut self, parts: Vec<Part>) -> anyhow::Result<Vec<Part>> {
        let received = self.source.received();
        let mut counted = self.counted.lock().unwrap_or_else(PoisonError::into_inner);
        counted.recorder = recorder(&received);
        for part in &parts {
            let Part::Operations(batch) = part else { continue };
            match &self.tokenizer {
                Some(tokenizer) => counted.metrics.operations(&tokenizer.batch(batch)?)?,
                None => counted.metrics.operations(batch)?,
            }
        }
        Ok(parts)
    }
}

impl LiveSource for MeteredSource {
    fn receive(&mut self) -> anyhow::Result<bool> {
        if let Some(listener) = self.listener.take() {
            let counted = self.counted.clone();
            listener.start(Arc::new(move |request: &Request| answer(request, &counted)))?;
        }
        self.source.receive()
    }

    fn parts(&mut self) -> anyhow::Result<Vec<Part>> {
        let parts = self.source.parts()?;
        self.count(parts)
    }

    fn deliver_often(&mut self) {
        self.source.deliver_often();
    }

    fn until(&self) -> i64 {
        self.source.until()
    }

    fn set_dropping(&mut self, drops: bool) {
        self.source.set_dropping(drops);
    }

    fn received(&mut self) -> Received {
        self.source.received()
    }

    fn start_recording(&mut self, recording: &str) -> anyhow::Result<Vec<Part>> {
        let parts = self.source.start_recording(recording)?;
        self.count(parts)
    }

    fn stop_recording(&mut self) -> anyhow::Result<Vec<Part>> {
        let parts = self.source.stop_recording()?;
        self.count(parts)
    }

    fn close(self: Box<Self>) -> anyhow::Result<(Vec<Part>, Received)> {
        self.source.close()
    }
}

/// What the recorder says about itself.
fn recorder(received: &Received) -> Recorder {
    let events = |events: Option<super::source::Events>| events.map(|it| (it.count, it.dropped));
    Recorder {
        packets: received.packets.map(|packets| (packets.count, packets.dropped)),
        events: events(received.events),
        processor_events: events(received.processors),
    }
}

fn answer(request: &Request, counted: &Mutex<Counted>) -> Response {
    // Collectors send neither; a page of another site in a browser on this machine would.
    let is_page = ["origin", "sec-fetch-site"].iter().any(|name| {
        request.header(name).is_some_and(|value| value != "none" && value != "same-origin")
    });
    match request.path.as_str() {
        _ if is_page => Response::text(403, "the request comes from another site"),
        "/metrics" => {
            let counted = counted.lock().unwrap_or_else(PoisonError::into_inner);
            Response::new(200, MEDIA_TYPE, counted.metrics.text(Some(&counted.recorder)))
        }
        _ => Response::text(404, "metrics are at /metrics"),
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::net::{SocketAddr, TcpStream};

    use smbscope_tables::builder::OperationBuilder;
    use smbscope_tables::code;
    use smbscope_tables::operation::Operation;

    use super::super::source::Packets;
    use super::*;

    /// A source with one Read on a share in each part.
    struct Reads;

    impl LiveSource for Reads {
        fn receive(&mut self) -> anyhow::Result<bool> {
            Ok(true)
        }

        fn parts(&mut self) -> anyhow::Result<Vec<Part>> {
            let mut builder = OperationBuilder::new(None)?;
            let mut row = Operation::default();
            row.set_protocol(2);
            row.set_command(code::command(2, 8));
            row.set_share(builder.names.share.intern(r"\\s\secret"));
            row.set_user(builder.names.user.intern("alice"));
            row.set_turnaround_ns(3_000_000);
            builder.append(&[row]);
            Ok(vec![Part::Operations(builder.finish()?)])
        }

        fn until(&self) -> i64 {
            0
        }

        fn set_dropping(&mut self, _: bool) {}

        fn received(&mut self) -> Received {
            let packets = Packets { count: 7, dropped: 1, ..Packets::default() };
            Received { packets: Some(packets), ..Received::default() }
        }

        fn start_recording(&mut self, _: &str) -> anyhow::Result<Vec<Part>> {
            Ok(Vec::new())
        }

        fn stop_recording(&mut self) -> anyhow::Result<Vec<Part>> {
            Ok(Vec::new())
        }

        fn close(self: Box<Self>) -> anyhow::Result<(Vec<Part>, Received)> {
            Ok((Vec::new(), Received::default()))
        }
    }

    fn scrape(address: SocketAddr, request: &str) -> String {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    #[test]
    fn what_passes_is_counted_and_answered() {
        let listener = Listener::bind(([127, 0, 0, 1], 0).into()).unwrap();
        let address = listener.address();
        let mut source = MeteredSource::new(Box::new(Reads), listener, None);
        source.receive().unwrap();
        for _ in 0..3 {
            assert_eq!(source.parts().unwrap().len(), 1);
        }
        let answer = scrape(address, "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
        assert!(answer.contains(MEDIA_TYPE), "{answer}");
        let wanted = [
            "smbscope_requests_total{operation=\"read\",share=\"secret\"} 3\n",
            "smb_smb2_request_duration_microseconds_bucket{operation=\"read\",share=\"secret\",le=\"4000\"} 3\n",
            "smbscope_recorder_received_total{source=\"packets\"} 7\n",
            "smbscope_recorder_dropped_total{source=\"packets\"} 1\n",
        ];
        wanted.iter().for_each(|line| assert!(answer.contains(line), "{line} {answer}"));
        assert!(!answer.contains("alice"));
        let page = "GET /metrics HTTP/1.1\r\nOrigin: http://evil.example\r\n\r\n";
        assert!(scrape(address, page).contains(" 403 "));
        assert!(scrape(address, "GET / HTTP/1.1\r\n\r\n").contains(" 404 "));
    }

    #[test]
    fn names_of_shares_become_tokens() {
        let listener = Listener::bind(([127, 0, 0, 1], 0).into()).unwrap();
        let tokenizer = Some(Tokenizer::new([7; 32]));
        let mut source = MeteredSource::new(Box::new(Reads), listener, tokenizer);
        let parts = source.parts().unwrap();
        let text = source.counted.lock().unwrap().metrics.text(None);
        assert!(text.contains("operation=\"read\"") && !text.contains("secret"), "{text}");
        // What is recorded is replaced where it is written.
        assert!(matches!(parts.as_slice(), [Part::Operations(_)]));
    }
}
