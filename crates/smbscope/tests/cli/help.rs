//! The help texts of all commands as golden output, so that every change of a text shows in a diff.

use super::{answer, complaint};

#[test]
fn help_texts() {
    insta::assert_snapshot!("smbscope", answer(["--help"]));
    for command in
        ["ops", "query", "import", "report", "export", "schema", "doctor", "completions", "man"]
    {
        insta::assert_snapshot!(command, answer([command, "--help"]));
    }
    for command in
        ["compare", "explain", "predict", "record", "top", "load", "net", "durability", "wan"]
    {
        insta::assert_snapshot!(command, answer([command, "--help"]));
    }
    for command in ["prepare", "clean", "workloads"] {
        insta::assert_snapshot!(format!("load_{command}"), answer(["load", command, "--help"]));
    }
    insta::assert_snapshot!("predict_calibrate", answer(["predict", "calibrate", "--help"]));
    insta::assert_snapshot!("plan_cores", answer(["plan", "cores", "--help"]));
    for command in ["listen", "send"] {
        insta::assert_snapshot!(format!("net_{command}"), answer(["net", command, "--help"]));
    }
    insta::assert_snapshot!("plan_baseline", answer(["plan", "baseline", "--help"]));
    insta::assert_snapshot!("plan_namespace", answer(["plan", "namespace", "--help"]));
    for command in ["rewrite", "migrate", "gate", "status"] {
        let help = answer(["plan", "namespace", command, "--help"]);
        insta::assert_snapshot!(format!("plan_namespace_{command}"), help);
    }
    insta::assert_snapshot!("plan_replication", answer(["plan", "replication", "--help"]));
    insta::assert_snapshot!("lab", answer(["lab", "--help"]));
    for command in ["up", "down", "status", "conf"] {
        insta::assert_snapshot!(format!("lab_{command}"), answer(["lab", command, "--help"]));
    }
}

/// Every help text of a command ends with at least one example that runs the command.
#[test]
fn every_command_has_an_example() {
    let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    for command in [
        "record",
        "import",
        "load",
        "load prepare",
        "load clean",
        "load workloads",
        "load workloads show",
        "net",
        "net listen",
        "net send",
        "durability",
        "wan",
        "report",
        "explain",
        "compare",
        "predict",
        "predict calibrate",
        "plan cores",
        "plan baseline",
        "plan namespace",
        "plan namespace rewrite",
        "plan namespace migrate",
        "plan namespace gate",
        "plan namespace status",
        "plan replication",
        "top",
        "ops",
        "query",
        "export",
        "schema",
        "doctor",
        "completions",
        "man",
    ] {
        let arguments = [words(command), words("--help")].concat();
        let help = answer(arguments);
        let (_, examples) = help.split_once("\nExamples:\n").expect(command);
        assert!(examples.contains(&format!("smbscope {command}")), "{command}");
    }
}

#[test]
fn a_wrong_command_line_is_code_2() {
    assert!(complaint(2, ["explain"]).contains("explain"));
    complaint(2, ["ops"]);
    complaint(2, ["ops", "x", "--format", "xml"]);
    complaint(2, ["--anonymize-key", "x"]);
    complaint(2, [] as [&str; 0]);
}

#[test]
fn version_and_help_go_to_standard_output() {
    assert!(answer(["--version"]).starts_with("smbscope 0."));
    assert!(answer(["help", "ops"]).contains("--where"));
}
