//! Writes the reports of synthetic operations, of a synthetic load run and of a synthetic server, each with what changes
//! would bring, plans of cores of several machines and of moves of namespaces, and a judgement of a baseline, as text, JSON
//! and HTML into a folder, to look at.

#[allow(dead_code)]
#[path = "../tests/sample/mod.rs"]
mod sample;

use smbscope_analysis::predict::changes::Change;
use smbscope_report::recording::RecordingAnswer;
use smbscope_report::{Answer, Meta, TextOptions, html, json, text};

fn main() -> std::io::Result<()> {
    let folder = std::env::args().nth(1).unwrap_or_else(|| ".".to_owned());
    let width = std::env::args().nth(2).and_then(|width| width.parse().ok()).unwrap_or(120);
    let folder = std::path::Path::new(&folder);
    let write = |name: &str, answer: &dyn Answer| {
        let options = TextOptions::new(width, true);
        std::fs::write(folder.join(format!("{name}.txt")), text(answer, &options))?;
        std::fs::write(folder.join(format!("{name}.html")), html(answer))
    };
    let reports = [
        ("report", "monday.pcapng", sample::report(20_000)),
        ("load", "capacity/", sample::load::report(Default::default())),
        ("single", "run/", sample::load::single()),
        ("server", "recording/", sample::server::report(4_000)),
        ("channels", "migration/", sample::channels::report()),
    ];
    let changes = [Change::Rtt(0.02), Change::Filesystem(4.0), Change::Queue(0.5)];
    let forecast = Some(sample::forecast::forecast(&changes));
    for (name, input, report) in reports {
        let meta = Meta {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            inputs: vec![input.to_owned()],
            forecast: forecast.clone(),
            diagnosis: Some(sample::diagnosis::diagnosis()),
            ..Meta::default()
        };
        let answer = RecordingAnswer { report: &report, meta: &meta };
        write(name, &answer)?;
        let json = json(&answer).map_err(std::io::Error::other)?;
        std::fs::write(folder.join(format!("{name}.json")), format!("{json:#}\n"))?;
    }
    use smbscope_plan::cores::topology::System;
    let plans = [
        ("cores", sample::cores::linux(12)),
        ("cores-published", sample::cores::published()),
        ("cores-large", sample::cores::large(System::Linux, 2, 64, 2)),
        ("cores-groups", sample::cores::large(System::Windows, 8, 32, 2)),
        ("cores-small", sample::cores::large(System::Linux, 1, 2, 1)),
        ("cores-virtual", sample::cores::virtual_machine(16)),
    ];
    plans.iter().try_for_each(|(name, plan)| write(name, plan))?;
    let moves = [
        ("namespace", sample::namespace::published()),
        ("namespace-gate", sample::namespace::at_gate()),
        ("namespace-small", sample::namespace::small()),
        ("namespace-large", sample::namespace::large(100_000)),
    ];
    moves.iter().try_for_each(|(name, plan)| write(name, plan))?;
    write("baseline", &sample::baseline::plan(true))
}
