//! Times of reading, checking, rewriting and writing a namespace in each form.
//!
//!     cargo run --release -p smbscope-plan --example namespace_speed [LINKS, default 100000]

// It measures time and prints.
#![allow(clippy::unwrap_used)]

use std::time::Duration;

use smbscope_plan::namespace::check::{Context, Cutover, check};
use smbscope_plan::namespace::form::Form;
use smbscope_plan::namespace::model::{Kind, Link, Namespace, Target};
use smbscope_plan::namespace::read::read;
use smbscope_plan::namespace::rewrite::{Rules, ServerRule, SuffixRule, rewrite};
use smbscope_plan::namespace::write::{Allowed, write};

fn namespace(links: usize) -> Namespace {
    let target = |server: String, share: String| Target { server, share, ..Target::default() };
    let link = |number: usize| {
        let server = |other: usize| match (number + other) % 3 {
            0 => format!("fs{}", number % 40),
            _ => format!("fs{}.contoso.com", (number + other) % 40),
        };
        Link {
            path: format!("Department {}\\Team{}\\Share{number}", number % 50, number % 1000),
            ttl_s: Some(1800),
            comment: number.is_multiple_of(7).then(|| format!("Files of team {number} & others")),
            targets: vec![
                target(server(0), format!("share{number}$")),
                target(server(1), format!("share{number}$")),
            ],
            ..Link::default()
        }
    };
    Namespace {
        host: "contoso.com".to_owned(),
        name: "Public".to_owned(),
        kind: Some(Kind::DomainV2),
        ttl_s: Some(300),
        targets: (1..7).map(|n| target(format!("ROOT{n}"), "Public".to_owned())).collect(),
        links: (0..links).map(link).collect(),
        ..Namespace::default()
    }
}

/// Seconds of CPU time of this process (Linux: fields 14 and 15 of `/proc/self/stat`, in hundredths); on other
/// systems the wall clock. Other programs on the machine do not count.
struct Instant(f64);

impl Instant {
    fn seconds() -> f64 {
        let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
        let after = stat.rsplit(')').next().unwrap_or_default();
        let ticks = after.split_whitespace().skip(11).take(2).map(|word| word.parse::<f64>());
        match ticks.collect::<Result<Vec<_>, _>>() {
            Ok(ticks) if ticks.len() == 2 => ticks.iter().sum::<f64>() / 100.0,
            _ => std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default().as_secs_f64(),
        }
    }

    fn now() -> Self {
        Self(Self::seconds())
    }

    fn elapsed(&self) -> Duration {
        Duration::from_secs_f64((Self::seconds() - self.0).max(0.0))
    }
}

fn main() {
    let links = std::env::args().nth(1).map_or(100_000, |text| text.parse().unwrap());
    let namespace = namespace(links);
    let allowed = Allowed { all: true, some: Vec::new() };
    println!("{links} links, {} targets; seconds of CPU time", 2 * links);
    println!(
        "{:<12} {:>9} {:>7} {:>7} {:>8} {:>7} {:>7}  same",
        "form", "MB", "read", "check", "rewrite", "write", "sum"
    );
    for form in Form::WRITTEN {
        let start = Instant::now();
        let written = write(&namespace, form, &allowed).unwrap();
        let write_s = start.elapsed().as_secs_f64();
        let files: Vec<(String, Vec<u8>)> = written
            .files
            .into_iter()
            .filter(|file| !file.name.ends_with(".sh"))
            .map(|file| (file.name, file.bytes))
            .collect();
        let bytes: usize = files.iter().map(|(_, bytes)| bytes.len()).sum();
        let start = Instant::now();
        let reading = read(&files).unwrap();
        let read_s = start.elapsed().as_secs_f64();
        let start = Instant::now();
        let cutover = Some(Cutover { left_s: 86_400, window_s: 900 });
        let checked = check(&reading, &Context { cutover, ..Context::default() });
        let check_s = start.elapsed().as_secs_f64();
        let start = Instant::now();
        let rules = Rules {
            suffixes: vec![SuffixRule::parse("contoso.com").unwrap()],
            servers: vec![ServerRule::parse("fs1=new1.contoso.com").unwrap()],
            link_ttl_s: Some(300),
            ..Rules::default()
        };
        let rewritten = rewrite(&reading.namespaces[0].namespace, &rules);
        let rewrite_s = start.elapsed().as_secs_f64();
        let held = smbscope_plan::namespace::write::express(&namespace, form).0;
        println!(
            "{:<12} {:>9.1} {read_s:>7.2} {check_s:>7.2} {rewrite_s:>8.2} {write_s:>7.2} {:>7.2}  {}",
            form.name(),
            bytes as f64 / 1e6,
            read_s + check_s + rewrite_s + write_s,
            reading.namespaces[0].namespace == held,
        );
        assert!(!checked.namespaces[0].findings.is_empty() && !rewritten.changes.is_empty());
    }
}
