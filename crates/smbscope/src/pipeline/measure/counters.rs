//! The counters of client and server during a load run.

use std::net::{IpAddr, UdpSocket};
use std::sync::Arc;
use std::sync::mpsc::sync_channel;
use std::time::Duration;

use smbscope_client::Host;
use smbscope_client::clock::Clock;
use smbscope_counters::{Metrics, Proc, Processes, Sampler, Source};
use smbscope_load::recorder::Recorder;
use smbscope_tables::Part;
use smbscope_tables::description::RunDescription;

use crate::exit::Failure;

/// Time between two samples of the counters.
const SAMPLE_EVERY: Duration = Duration::from_secs(1);
/// Most batches of counters that wait.
const SAMPLES_WAITING: usize = 256;

/// The sources of the counters of client and server.
pub fn sources(
    metrics: &[String],
    host: &Host,
    smbd: Option<u32>,
    description: &mut RunDescription,
) -> anyhow::Result<Vec<Box<dyn Source>>> {
    // A lab behind a line has an address of another network namespace, but runs here.
    let local = smbd.is_some() || host.addresses.iter().any(|address| is_local(address.ip()));
    let mut sources: Vec<Box<dyn Source>> = vec![Box::new(Proc::client(!local))];
    description.counter_sources.push("/proc of the client".to_owned());
    if local {
        let name = "smbd".to_owned();
        let server = match smbd {
            Some(pid) => Processes::Tree(pid, name),
            None => Processes::Named(name),
        };
        sources.push(Box::new(Proc::server(vec![server])));
        description.counter_sources.push("/proc of the server (this machine)".to_owned());
    }
    let several = metrics.len() > 1;
    for url in metrics {
        let shown = without_logon(url);
        let source = Metrics::new(url, &[], several)
            .map_err(|error| Failure::usage(format!("--metrics: {error}")))?;
        sources.push(Box::new(source));
        description.counter_sources.push(shown);
    }
    Ok(sources)
}

/// Starts to sample the sources, if there are any.
pub fn sample(
    sources: Vec<Box<dyn Source>>,
    clock: Clock,
    recorder: &Arc<Recorder>,
) -> anyhow::Result<Option<Sampler>> {
    if sources.is_empty() {
        return Ok(None);
    }
    let (sender, rows) = sync_channel(SAMPLES_WAITING);
    let sampler = Sampler::start(
        recorder.recording(),
        SAMPLE_EVERY,
        Arc::new(move || clock.now()),
        sources,
        &sender,
    )?;
    let recorder = Arc::downgrade(recorder);
    std::thread::Builder::new().name("counters".into()).spawn(move || {
        for rows in rows {
            match recorder.upgrade() {
                Some(recorder) => recorder.part(Part::Counters(rows)),
                None => break,
            }
        }
    })?;
    Ok(Some(sampler))
}

/// Whether an address belongs to this machine: only those can be bound.
fn is_local(address: IpAddr) -> bool {
    UdpSocket::bind((address, 0)).is_ok()
}

/// A word of the command line without the user and password of a URL in it (`--metrics`).
pub fn without_logon(word: &str) -> String {
    let Some((scheme, rest)) = word.split_once("://") else { return word.to_owned() };
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(end);
    // What comes before the last @ is the logon, also when a password with a / was not encoded.
    match (authority.rsplit_once('@'), path.rsplit_once('@')) {
        (_, Some((_, host))) => format!("{scheme}://{host}"),
        (Some((_, host)), None) => format!("{scheme}://{host}{path}"),
        (None, None) => word.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_logon_of_a_url_is_removed() {
        for (word, left) in [
            ("http://me:secret@server:9100/metrics", "http://server:9100/metrics"),
            ("--metrics=https://me:se@cret@[::1]:1?a", "--metrics=https://[::1]:1?a"),
            ("http://me:se/cret@server/metrics", "http://server/metrics"),
            ("http://server:9100/metrics", "http://server:9100/metrics"),
            ("//server/share@1", "//server/share@1"),
            ("me@realm", "me@realm"),
        ] {
            assert_eq!(without_logon(word), left);
        }
    }
}
