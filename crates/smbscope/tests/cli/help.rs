//! The help texts of all commands as golden output, so that every change of a text shows in a diff.

use super::{answer, complaint};

/// Commands with a golden help text.
const COMMANDS: [&str; 38] = [
    "ops",
    "query",
    "import",
    "report",
    "serve",
    "export",
    "schema",
    "doctor",
    "completions",
    "man",
    "compare",
    "explain",
    "predict",
    "predict calibrate",
    "record",
    "top",
    "load",
    "load prepare",
    "load clean",
    "load workloads",
    "net",
    "net listen",
    "net send",
    "durability",
    "wan",
    "plan cores",
    "plan baseline",
    "plan namespace",
    "plan namespace rewrite",
    "plan namespace migrate",
    "plan namespace gate",
    "plan namespace status",
    "plan replication",
    "lab",
    "lab up",
    "lab down",
    "lab status",
    "lab conf",
];

#[test]
fn help_texts() {
    insta::assert_snapshot!("smbscope", answer(["--help"]));
    // The same options of nearly all commands are shown once.
    let ops = help("ops");
    let (_, global) = ops.split_once("\nGlobal options:\n").unwrap();
    let (global, _) = global.split_once("\nExamples:\n").unwrap();
    insta::assert_snapshot!("global_options", global);
    for command in COMMANDS {
        insta::assert_snapshot!(command.replace(' ', "_"), help(command).replace(global, "...\n"));
    }
}

fn help(command: &str) -> String {
    answer(command.split(' ').chain(["--help"]))
}

/// Every help text of a command ends with at least one example that runs the command.
#[test]
fn every_command_has_an_example() {
    let with_examples = COMMANDS.iter().filter(|command| !command.starts_with("lab"));
    for command in with_examples.chain(&["load workloads show"]) {
        let help = help(command);
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
