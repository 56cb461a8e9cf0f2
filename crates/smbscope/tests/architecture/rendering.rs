//! Where rendering happens: the pipeline neither parses arguments nor prints, no crate brings
//! a second table layouter, and formats of other programs are in `report`.

use super::{manifests, rust_files, workspace};

#[test]
fn the_pipeline_neither_parses_arguments_nor_prints() {
    const FORBIDDEN: [&str; 10] = [
        "clap",
        "print!(",
        "println!(",
        "indicatif",
        "crate::cli",
        "crate::commands",
        "crate::options",
        "crate::output",
        "crate::progress",
        "crate::terminal",
    ];
    let src = workspace().join("crates/smbscope/src");
    let mut files = rust_files(&src.join("pipeline"));
    files.push(src.join("pipeline.rs"));
    assert!(files.len() > 5, "{files:?}");
    for path in files {
        let text = std::fs::read_to_string(&path).unwrap();
        let code = text.lines().filter(|line| !line.trim_start().starts_with("//"));
        for line in code {
            let found = FORBIDDEN.iter().find(|word| line.contains(*word));
            assert!(found.is_none(), "{}: {line}", path.display());
        }
    }
}

#[test]
fn no_crate_brings_a_second_table_layouter() {
    for (name, manifest) in manifests() {
        for layouter in ["comfy-table", "prettytable", "tabled", "cli-table"] {
            assert!(!manifest.contains(layouter), "crates/{name}/Cargo.toml: {layouter}");
        }
        // The screen of `top` measures the width of text, too.
        let measures = manifest.contains("unicode-width");
        assert!(!measures || name == "report" || name == "smbscope", "crates/{name}/Cargo.toml");
    }
}

#[test]
fn exporters_are_in_report() {
    let crates = workspace().join("crates");
    assert!(crates.join("report/src/export/perfetto.rs").exists());
    for path in rust_files(&crates.join("smbscope/src")) {
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(!text.contains("TraceWriter"), "{}", path.display());
    }
}
