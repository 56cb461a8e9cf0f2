//! The description of a load run: workload, target, machine and result.
//!
//! It is part of the run folder's manifest ([`crate::manifest`]). Machines that share a run
//! (`--shard 3/8`) each write one; [`RunDescription::identify`] gives all of them the same name.
//! It contains no secrets: the caller leaves them out of [`RunDescription::command_line`]. Names of
//! machines and users become tokens with `--anonymize`. The rows of the run are in [`crate::run`].

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::anonymize::Tokenizer;
use crate::column::Sensitivity;

/// Open loop: a schedule sets the pace.
pub const OPEN: &str = "open";
/// Closed loop: the server sets the pace; faster responses lead to more requests.
pub const CLOSED: &str = "closed";

/// One machine's part of a load run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RunDescription {
    /// Name of this part's rows: the column `recording` of all its tables.
    pub recording: String,
    /// Name of the whole run, equal on all machines that share it (column `run` of the steps).
    pub run: String,
    /// Name of the workload.
    pub workload: String,
    /// SHA-256 of the workload's text, hexadecimal.
    pub workload_digest: String,
    /// The workload's whole text (TOML), where it is not one of the built-in ones.
    pub workload_text: Option<String>,
    /// Seed of files and random choices.
    pub seed: u64,
    /// Size of the file set, 1 being the workload's own.
    pub scale: f64,
    /// First user of this machine, counted from 1.
    pub users_from: u64,
    /// Last user of this machine.
    pub users_to: u64,
    /// Difference between the numbers of two successive users of this machine: 1 if they are
    /// contiguous, the number of parts if users are distributed round-robin; 0 reads as 1.
    pub users_every: u64,
    /// Maximum number of users of the whole run, on all machines.
    pub users_total: u64,
    /// Pattern of the user names, such as `user{:05}`.
    pub user_names: Option<String>,
    /// This machine's part of the run, counted from 1.
    pub shard: u64,
    /// Number of parts of the run; 1 for a single machine.
    pub shards: u64,
    /// The server, as given.
    pub server: String,
    /// Its TCP port.
    pub server_port: u64,
    /// Its ServerGuid (MS-SMB2 section 2.2.4), hexadecimal: equal for all its addresses.
    pub server_guid: Option<String>,
    /// The share's name.
    pub share: String,
    /// Negotiated dialect, such as 3.1.1.
    pub dialect: Option<String>,
    /// Signing algorithm, or off.
    pub signing: Option<String>,
    /// Cipher, or off.
    pub encryption: Option<String>,
    /// TCP connections of one user.
    pub channels: u64,
    /// How the client caches directories: published, collapse or dirlease.
    pub client_cache: String,
    /// Other settings that change the traffic: write-through, durable handles ...
    pub settings: Vec<Setting>,
    /// When users begin scenarios: open (by the schedule) or closed (back to back).
    pub pacing: String,
    /// Scenarios per hour that the schedule requires of one user; `None` for a closed loop.
    pub scenarios_per_user_hour: Option<f64>,
    /// Users that start per second during the ramp.
    pub ramp_users_per_second: Option<f64>,
    /// Warm-up before each measured window.
    pub warm_up_ns: i64,
    /// Longest measured window of a step.
    pub measured_ns: i64,
    /// Cool-down after the last window.
    pub cool_down_ns: i64,
    /// Overload threshold of a step, in percent (docs/method/overload.md).
    pub overload_limit_percent: Option<f64>,
    /// The start that all machines agreed on (`--start-at`).
    pub start_at_ns: Option<i64>,
    /// Start on this machine.
    pub start_ns: i64,
    /// End; `None` while it runs and after a kill.
    pub end_ns: Option<i64>,
    /// Round trip added inside the client (`load --rtt`); unlike a network path it delays no packets.
    pub emulated_rtt_ns: Option<i64>,
    /// The emulated network path between client and server (`smbscope wan`), in words.
    pub line: Option<String>,
    /// Whether the load generator, not the server, was the limit.
    pub limited_by_client: bool,
    /// How that was determined.
    pub limited_reason: Option<String>,
    /// Sources of counters: /proc, the address of an endpoint.
    pub counter_sources: Vec<String>,
    /// Samples of counters that failed.
    pub counters_missed: u64,
    /// When the server stopped answering, if it did.
    pub server_gone_ns: Option<i64>,
    /// Times without an answer after which the server answered again.
    pub outages: Vec<Outage>,
    /// Opens that were lost with their connection.
    pub opens_lost: u64,
    /// Durable opens that were reconnected after their connection was lost.
    pub opens_reconnected: u64,
    /// Names of users whom the server still refused to log on when the run ended.
    pub users_refused: Vec<String>,
    /// Limits on response times (`--max-response`), as given.
    pub max_response: Vec<String>,
    /// The result of `--find-capacity`.
    pub capacity: Option<Capacity>,
    /// Host name of the load generator.
    pub hostname: String,
    /// Its operating system and kernel.
    pub kernel: String,
    /// CPUs that it may use.
    pub cpus: u64,
    /// Their model.
    pub cpu_model: Option<String>,
    /// Its memory.
    pub memory_bytes: Option<u64>,
    /// Version of smbscope.
    pub smbscope_version: String,
    /// The arguments of the command line, without secrets.
    pub command_line: Vec<String>,
    /// Whether the machine's clock was synchronised, according to chrony or systemd; `None` if neither reports it.
    pub clock_synchronised: Option<bool>,
    /// Maximum error of the clock as reported by the machine.
    pub clock_error_ns: Option<i64>,
    /// How far the server's clock was ahead of this machine's: SystemTime of its Negotiate response
    /// (MS-SMB2 section 2.2.4) minus the middle between request and response.
    pub server_clock_ahead_ns: Option<i64>,
    /// Uncertainty of that: half the round trip and the resolution of the server's time stamp.
    pub server_clock_error_ns: Option<i64>,
}

/// A time in which the server answered no user: from its last answer to its next, ns since 1970.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Outage {
    /// The last answer.
    pub start_ns: i64,
    /// The next one.
    pub end_ns: i64,
}

/// A setting without a field of its own.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Setting {
    /// Its name, as the option without dashes.
    pub name: String,
    /// Its value.
    pub value: String,
}

/// Number of users that the server sustains.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Capacity {
    /// Maximum number of users without overload; `None` if even the smallest step was overloaded.
    pub users: Option<u64>,
    /// Lower end of the interval; `None` if every step was overloaded.
    pub low: Option<u64>,
    /// Upper end of the interval; `None` if no step was overloaded.
    pub high: Option<u64>,
    /// Probability that the interval contains the true value, 0 to 1.
    pub confidence: Option<f64>,
    /// Why the search ended.
    pub reason: String,
}

impl RunDescription {
    /// Sets [`RunDescription::run`] to a name that is computed from what all machines of a run have
    /// in common: workload, seed, scale, users, target, number of parts, and the agreed start (for
    /// a single machine, its own start). The target is the server's GUID where it is known: machines may reach
    /// it by different addresses.
    pub fn identify(&mut self) {
        let start = match self.shards {
            0 | 1 => Some(self.start_ns),
            _ => self.start_at_ns,
        };
        let server = match &self.server_guid {
            Some(guid) => guid.clone(),
            None => format!("{}\n{}", self.server, self.server_port),
        };
        let shared = format!(
            "{}\n{}\n{}\n{}\n{server}\n{}\n{}\n{start:?}",
            self.workload_digest, self.seed, self.scale, self.users_total, self.share, self.shards
        );
        let digest = Sha256::digest(shared.as_bytes());
        let digits: String = digest.iter().take(6).map(|byte| format!("{byte:02x}")).collect();
        self.run = format!("run-{digits}");
    }

    /// Replaces names of persons, machines and paths by tokens. The text of a workload that is not
    /// built in may contain any name and is removed.
    pub fn anonymize(&mut self, tokenizer: &Tokenizer) {
        let machine = |name: &str, text: &mut String| {
            *text = tokenizer.text(name, Sensitivity::Machine, text);
        };
        machine("recording", &mut self.recording);
        machine("run", &mut self.run);
        machine("server", &mut self.server);
        self.server_guid.iter_mut().for_each(|guid| machine("server_guid", guid));
        machine("hostname", &mut self.hostname);
        self.counter_sources.iter_mut().for_each(|source| {
            if source.contains("://") {
                *source = tokenizer.text("source", Sensitivity::Machine, source);
            }
        });
        self.share = tokenizer.text("share", Sensitivity::Path, &self.share);
        if let Some(names) = &mut self.user_names {
            *names = tokenizer.text("user", Sensitivity::Person, names);
        }
        for name in &mut self.users_refused {
            *name = tokenizer.text("user", Sensitivity::Person, name);
        }
        self.workload_text = None;
        self.anonymize_command_line(tokenizer);
    }

    /// Options keep their names; values are kept if they are quantities or known words.
    fn anonymize_command_line(&mut self, tokenizer: &Tokenizer) {
        let mut option = String::new();
        for (place, word) in self.command_line.iter_mut().enumerate() {
            if place == 0 {
                // The program, without its folder.
                *word = word.rsplit(['/', '\\']).next().unwrap_or_default().to_owned();
            } else if word.starts_with("--") {
                let (name, value) = match word.split_once('=') {
                    Some((name, value)) => (name.to_owned(), Some(value.to_owned())),
                    None => (word.clone(), None),
                };
                if let Some(value) = value {
                    *word = format!("{name}={}", argument(&name, &value, tokenizer));
                }
                option = name;
            } else {
                *word = argument(&option, word, tokenizer);
                option.clear();
            }
        }
    }
}

/// Words of the command line that are not names.
const OUR_WORDS: [&str; 24] = [
    "load",
    "prepare",
    "clean",
    "homefolder",
    "bulk-copy",
    "metadata",
    "published",
    "collapse",
    "dirlease",
    "off",
    "on",
    "required",
    "auto",
    "aes-cmac",
    "aes-gmac",
    "hmac-sha256",
    "aes-128-ccm",
    "aes-256-ccm",
    "aes-128-gcm",
    "aes-256-gcm",
    "kerberos",
    "ntlm",
    "text",
    "json",
];

/// Options whose values are quantities; a number elsewhere can be a name.
const QUANTITIES: [&str; 26] = [
    "--seed",
    "--scale",
    "--users",
    "--users-from",
    "--users-to",
    "--shard",
    "--port",
    "--channels",
    "--rate",
    "--ramp",
    "--warm-up",
    "--measure",
    "--measured",
    "--duration",
    "--cool-down",
    "--step",
    "--steps",
    "--start",
    "--start-at",
    "--rtt",
    "--loss",
    "--resolution",
    "--max-users",
    "--threads",
    "--interval",
    "--dialect",
];

fn argument(option: &str, value: &str, tokenizer: &Tokenizer) -> String {
    let ours = |word: &str| OUR_WORDS.contains(&word.to_ascii_lowercase().as_str());
    let quantity = QUANTITIES.contains(&option)
        && value.starts_with(|c: char| c.is_ascii_digit())
        && value.len() <= 32;
    if quantity || ours(value) {
        value.to_owned()
    } else {
        tokenizer.text("argument", Sensitivity::Path, value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> RunDescription {
        RunDescription {
            recording: "fs1-load".into(),
            workload: "homefolder".into(),
            workload_digest: "00".repeat(32),
            workload_text: Some("# ACME".into()),
            user_names: Some("acme{:03}".into()),
            shard: 1,
            shards: 2,
            server: "fs1.acme.example".into(),
            share: "payroll".into(),
            hostname: "client1.acme.example".into(),
            counter_sources: vec!["/proc".into(), "http://fs1.acme.example:9100/metrics".into()],
            start_ns: 5,
            command_line: [
                "/home/alice/bin/smbscope",
                "load",
                "//fs1.acme.example/payroll",
                "--users",
                "100",
                "--user",
                "100234",
                "--rtt=20ms",
                "--credentials=/home/alice/acme.txt",
                "--client-cache",
                "dirlease",
            ]
            .map(String::from)
            .to_vec(),
            ..RunDescription::default()
        }
    }

    #[test]
    fn parts_of_one_run_have_one_name_and_other_runs_another() {
        let named = |change: &dyn Fn(&mut RunDescription)| {
            let mut description = sample();
            change(&mut description);
            description.identify();
            description.run
        };
        let one = named(&|_| {});
        assert_eq!(named(&|it| (it.shard, it.start_ns) = (2, 99)), one);
        assert_ne!(named(&|it| it.seed = 1), one);
        assert_ne!(named(&|it| it.start_at_ns = Some(7)), one);
        // The name of a run of one machine depends on its own start.
        let alone = |start| named(&|it| (it.shards, it.start_ns) = (1, start));
        assert_ne!(alone(5), alone(6));
    }

    #[test]
    fn no_name_of_a_machine_person_or_path_survives() {
        let mut description = sample();
        description.identify();
        let run = description.run.clone();
        description.anonymize(&Tokenizer::new([3; 32]));
        let text = serde_json::to_string(&description).unwrap();
        for word in ["acme", "ACME", "alice", "fs1", "client1", "payroll", "100234", &run] {
            assert!(!text.contains(word), "{word} in {text}");
        }
        for kept in ["homefolder", "--users\",\"100\"", "--rtt=20ms", "dirlease", "\"smbscope\""] {
            assert!(text.contains(kept), "{kept} in {text}");
        }
    }
}
