//! Writes the reports of synthetic operations, of a synthetic load run and of a synthetic server, each with what changes
//! would bring, plans of cores of several machines and of moves of namespaces, and a judgement of a baseline, as text, JSON
//! and HTML into a folder, to look at.

#[allow(dead_code)]
#[path = "../tests/sample/mod.rs"]
mod sample;

use smbscope_analysis::predict::changes::Change;
use smbscope_report::{
    Meta, TextOptions, baseline_html, baseline_text, cores_html, cores_text, html, json,
    namespace_html, namespace_text, text,
};

fn main() -> std::io::Result<()> {
    let folder = std::env::args().nth(1).unwrap_or_else(|| ".".to_owned());
    let width = std::env::args().nth(2).and_then(|width| width.parse().ok()).unwrap_or(120);
    let folder = std::path::Path::new(&folder);
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
        let file = |ending: &str| folder.join(format!("{name}.{ending}"));
        std::fs::write(file("txt"), text(&report, &meta, &TextOptions::new(width, true)))?;
        std::fs::write(file("html"), html(&report, &meta))?;
        let json = json(&report, &meta).map_err(std::io::Error::other)?;
        std::fs::write(file("json"), format!("{json:#}\n"))?;
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
    for (name, plan) in plans {
        let file = |ending: &str| folder.join(format!("{name}.{ending}"));
        std::fs::write(file("txt"), cores_text(&plan, width, ("", "")))?;
        std::fs::write(file("html"), cores_html(&plan, &["machine.tar".to_owned()], "0"))?;
    }
    let moves = [
        ("namespace", sample::namespace::published()),
        ("namespace-gate", sample::namespace::at_gate()),
        ("namespace-small", sample::namespace::small()),
        ("namespace-large", sample::namespace::large(100_000)),
    ];
    for (name, plan) in moves {
        let file = |ending: &str| folder.join(format!("{name}.{ending}"));
        std::fs::write(file("txt"), namespace_text(&plan, &TextOptions::new(width, true)))?;
        std::fs::write(file("html"), namespace_html(&plan))?;
    }
    let judged = sample::baseline::plan(true);
    let options = TextOptions::new(width, true);
    std::fs::write(folder.join("baseline.txt"), baseline_text(&judged, &options))?;
    std::fs::write(folder.join("baseline.html"), baseline_html(&judged))?;
    Ok(())
}
