//! Counters of a server from a Prometheus endpoint: node_exporter, windows_exporter, Samba's own.
//!
//! Owns the request (bounded in time and size) and the errors when it fails; `text` parses the answer,
//! `map` translates its metrics to our names.

pub mod devices;
pub mod map;
pub mod text;

use std::sync::Arc;
use std::time::Duration;

use ureq::tls::TlsConfig;

use super::rate::Reading;
use super::sampler::Source;
use map::{Map, SMB_PREFIXES};

/// A longer answer is refused.
pub const ANSWER_BYTES_MAX: u64 = 8 << 20;
/// No answer within this time is a failed sample.
pub const TIMEOUT: Duration = Duration::from_secs(5);

/// An endpoint.
pub struct Metrics {
    url: String,
    place: String,
    prefixes: Vec<String>,
    /// Prefix of every instance, if there are several endpoints.
    prefix: Option<String>,
    agent: ureq::Agent,
    /// The part of the last answer that was not understood.
    left_out: Option<String>,
}

impl Metrics {
    /// The endpoint at `url` (`http://server:9100/metrics`). `take` are prefixes of metrics that keep
    /// their names; an empty list means [`SMB_PREFIXES`]. With `several` endpoints every instance names
    /// its endpoint.
    pub fn new(url: &str, take: &[String], several: bool) -> Result<Metrics, String> {
        let rest = url.strip_prefix("http://").or_else(|| url.strip_prefix("https://"));
        let authority = rest.and_then(|rest| rest.split(['/', '?', '#']).next()).unwrap_or("");
        // A user name and password in a URL must not appear in messages.
        let place = authority.rsplit('@').next().unwrap_or("").to_owned();
        if place.is_empty() {
            // Text before an @ may be a password: the URL is not repeated.
            return Err("invalid --metrics URL: expected for example \
                        http://server:9100/metrics"
                .to_owned());
        }
        let prefixes =
            if take.is_empty() { SMB_PREFIXES.map(str::to_owned).to_vec() } else { take.to_vec() };
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let tls = TlsConfig::builder().unversioned_rustls_crypto_provider(provider).build();
        let agent = ureq::Agent::config_builder()
            .tls_config(tls)
            .timeout_global(Some(TIMEOUT))
            .max_redirects(2)
            .user_agent(concat!("smbscope/", env!("CARGO_PKG_VERSION")))
            .build()
            .into();
        let prefix = several.then(|| place.clone());
        Ok(Metrics { url: url.to_owned(), place, prefixes, prefix, agent, left_out: None })
    }

    fn answer(&self) -> Result<Vec<u8>, ureq::Error> {
        let mut response = self.agent.get(&self.url).call()?;
        response.body_mut().with_config().limit(ANSWER_BYTES_MAX).read_to_vec()
    }

    /// The readings in an answer.
    fn read_answer(&mut self, answer: &[u8]) -> Result<Vec<Reading>, String> {
        let text = String::from_utf8_lossy(answer);
        let mut map = Map::default();
        let parsed = text::parse(&text, |sample| map.sample(&sample, &self.prefixes));
        let first = parsed.first_malformed.unwrap_or(1);
        if parsed.samples == 0 {
            return Err(format!(
                "{} does not answer with Prometheus metrics (line {} is not a metric): check the \
                 path, usually /metrics",
                self.place, first
            ));
        }
        self.left_out = match (parsed.malformed, parsed.dropped) {
            (0, 0) => None,
            (0, dropped) => Some(format!("{dropped} metrics are beyond the limit")),
            (1, _) => Some(format!("line {first} is not a Prometheus metric")),
            (lines, _) => Some(format!(
                "{lines} lines, the first of them line {first}, are not Prometheus metrics"
            )),
        };
        let mut readings = map.readings();
        if readings.is_empty() {
            return Err(format!(
                "none of the {} metrics of {} is known: neither node_exporter's nor \
                 windows_exporter's, and none begins with {}",
                parsed.samples,
                self.place,
                self.prefixes.join(", ")
            ));
        }
        if let Some(prefix) = &self.prefix {
            for reading in &mut readings {
                reading.instance = Some(match reading.instance.take() {
                    Some(instance) => format!("{prefix} {instance}"),
                    None => prefix.clone(),
                });
            }
        }
        Ok(readings)
    }
}

impl Source for Metrics {
    fn source(&self) -> &'static str {
        "metrics"
    }

    fn place(&self) -> String {
        self.place.clone()
    }

    fn read(&mut self) -> Result<Vec<Reading>, String> {
        let answer = self.answer().map_err(|error| match error {
            ureq::Error::StatusCode(code) => format!("{} answers with HTTP {code}", self.place),
            ureq::Error::BodyExceedsLimit(limit) => {
                format!("{} answers with more than {} MiB", self.place, limit >> 20)
            }
            ureq::Error::Timeout(_) => {
                format!("{} does not answer within {} s", self.place, TIMEOUT.as_secs())
            }
            other => format!("{}: {other}", self.place),
        })?;
        self.read_answer(&answer)
    }

    fn left_out(&self) -> Option<&str> {
        self.left_out.as_deref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn addresses_are_checked_and_secrets_kept() {
        for wrong in ["", "server:9100", "ftp://server/", "http://", "http:///metrics"] {
            let error = Metrics::new(wrong, &[], false).err().unwrap();
            assert!(error.contains("http://server:9100/metrics"), "{error}");
        }
        let metrics = Metrics::new("https://me:secret@server:9100/metrics", &[], false).unwrap();
        assert_eq!(metrics.place(), "server:9100");
    }

    #[test]
    fn lines_that_are_not_metrics_are_reported() {
        let mut metrics = Metrics::new("http://server:9100/metrics", &[], false).unwrap();
        let error = metrics.read_answer(b"<html>\n<body>").unwrap_err();
        assert!(error.starts_with("server:9100 does not answer with Prometheus metrics (line 1"));
        let error = metrics.read_answer(b"go_goroutines 8\n").unwrap_err();
        assert!(error.starts_with("none of the 1 metrics of server:9100 is known"), "{error}");
        assert!(metrics.read_answer(b"smb_num_open_files 8\n").is_ok());
        assert_eq!(metrics.left_out(), None);
        assert!(metrics.read_answer(b"smb_num_open_files 8\n\xff\xfe\n").is_ok());
        let said = metrics.left_out().unwrap();
        assert!(said == "line 2 is not a Prometheus metric", "{said}");
    }

    #[test]
    fn several_endpoints_are_distinguished() {
        let take = ["app_".to_owned()];
        let mut metrics = Metrics::new("http://b:1/metrics", &take, true).unwrap();
        let answer = b"app_x{a=\"1\"} 8\napp_y 2\nsmb_num_open_files 8\n";
        let readings = metrics.read_answer(answer).unwrap();
        let instances: Vec<_> = readings.iter().map(|r| r.instance.as_deref()).collect();
        assert_eq!(instances, [Some("b:1 a=1"), Some("b:1")]);
    }

    proptest! {
        #[test]
        fn any_answer_is_survived(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            let mut metrics = Metrics::new("http://server/", &[], false).unwrap();
            let _ = metrics.read_answer(&bytes);
        }
    }
}
