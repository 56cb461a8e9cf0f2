//! Writes the report of synthetic operations as text, JSON and HTML into a folder, to look at.

#[allow(dead_code)]
#[path = "../tests/sample/mod.rs"]
mod sample;

use smbscope_report::{Meta, html, json, text};

fn main() -> std::io::Result<()> {
    let folder = std::env::args().nth(1).unwrap_or_else(|| ".".to_owned());
    let width = std::env::args().nth(2).and_then(|width| width.parse().ok()).unwrap_or(120);
    let report = sample::report(20_000);
    let meta = Meta {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        inputs: vec!["monday.pcapng".to_owned()],
    };
    let folder = std::path::Path::new(&folder);
    std::fs::write(folder.join("report.txt"), text(&report, &meta, width))?;
    std::fs::write(folder.join("report.html"), html(&report, &meta))?;
    let json = json(&report, &meta).map_err(std::io::Error::other)?;
    std::fs::write(folder.join("report.json"), format!("{json:#}"))
}
