//! The page in a real browser.

use std::path::PathBuf;
use std::process::Command;

use serde_json::json;
use smbscope_store::Part;
use smbscope_store::dataset::{DatasetWriter, ManifestSeed, WriteOptions};
use smbscope_tables::builder::OperationBuilder;
use smbscope_tables::code;
use smbscope_tables::operation::Operation;

use super::Page;

/// Runs the checks of a browser; false without one.
fn browse(page: &Page, more: &[&str]) -> bool {
    let Some(chromium) = smbscope_testing::chromium() else { return false };
    let script = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/browser/serve.py");
    let mut command = Command::new("python3");
    command.arg(script).arg("--chromium").arg(chromium).args(more);
    if let Some(shots) = std::env::var_os("SMBSCOPE_SHOTS") {
        command.arg("--shots").arg(shots);
    }
    command.arg(format!("http://127.0.0.1:{}/{}/", page.port, page.token));
    let checked = command.output().unwrap();
    let said = String::from_utf8_lossy(&checked.stdout);
    assert!(checked.status.success(), "{said}{}", String::from_utf8_lossy(&checked.stderr));
    true
}

#[test]
fn views_work_in_a_browser() {
    browse(&Page::over(&["findings/break-waits.pcap.gz"]), &[]);
}

#[test]
fn names_with_markup_do_not_run() {
    let folder = tempfile::tempdir().unwrap();
    let dataset = folder.path().join("dataset");
    let mut builder = OperationBuilder::new(None).unwrap();
    for number in 0..60 {
        let name = format!(
            "<img src=x onerror=window.hacked=1>\"'&{}</script><script>hacked=1</script>",
            number % 9
        );
        let mut row = Operation::default();
        row.set_recording(builder.names.recording.intern(&name));
        row.set_operation(number);
        row.set_protocol(2);
        row.set_command(code::command(2, 5));
        row.set_share(builder.names.share.intern(&format!("\\\\s\\{name}")));
        row.set_user(builder.names.user.intern(&name));
        row.set_client(builder.names.client.intern(&name));
        row.set_path(builder.names.path.intern(&name));
        row.set_extension(builder.names.extension.intern(&name));
        let start = 1_700_000_000_000_000_000 + number as i64 * 1_000_000;
        row.set_request_start(start);
        row.set_request_end(start + 10);
        row.set_response_start(start + 900_000);
        row.set_response_end(start + 900_010);
        row.derive_durations();
        row.set_busy_ns(900_010);
        builder.append(&[row]);
    }
    let seed = ManifestSeed::now(Default::default(), Vec::new());
    let mut writer = DatasetWriter::create(&dataset, seed, WriteOptions::default()).unwrap();
    writer.part(Part::Operations(builder.finish().unwrap())).unwrap();
    writer.finish(true).unwrap();
    let page = Page::over_files(vec![dataset.display().to_string()]);
    let answer = page.ask("pivot", json!({ "rows": ["path"], "limit": 500 }));
    assert_eq!(answer["count"], 9);
    browse(&page, &["--markup"]);
}
