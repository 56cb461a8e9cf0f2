//! Pages in a real browser: `tests/browser/check.py` drives a headless Chromium over the pages of a
//! capture, a load run, a comparison, a prediction and a plan of cores.

use std::path::Path;
use std::process::Command;

use super::{answer, fixture, folder, load_run};

#[test]
fn pages_fit_and_react_in_a_browser() {
    let Some(chromium) = smbscope_testing::chromium() else { return };
    let (_guard, dir) = folder();
    let mut pages = Vec::new();
    let mut page = |name: &str, words: &[&str]| {
        let path = dir.join(name);
        answer([words, &["--html", path.to_str().unwrap()]].concat());
        pages.push(path);
    };
    let (small, large) =
        (fixture("findings/small-reads.pcap.gz"), fixture("findings/small-reads-not.pcap.gz"));
    let run = load_run::run(&dir, 1, |_| {});
    page("capture.html", &["report", &fixture("smb311.pcapng")]);
    page("breaks.html", &["report", &fixture("findings/break-waits.pcap.gz")]);
    page("load.html", &["report", &run]);
    page("comparison.html", &["compare", &small, &large]);
    page("prediction.html", &["predict", &small, "--change", "rtt=1ms"]);
    page("profile.html", &["predict", "--profile", "published", "--change", "rtt=20ms"]);
    let outputs = dir.join("rss.txt");
    std::fs::write(&outputs, super::plan::WINDOWS).unwrap();
    page("plan.html", &["plan", "cores", outputs.to_str().unwrap()]);
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/browser/check.py");
    let checked = Command::new("python3")
        .arg(script)
        .arg("--chromium")
        .arg(chromium)
        .args(&pages)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&checked.stdout);
    let why = String::from_utf8_lossy(&checked.stderr);
    assert!(checked.status.success(), "{said}{why}");
    // Each page has a line of measurements.
    assert_eq!(said.matches("printed pages").count(), pages.len(), "{said}");
}
