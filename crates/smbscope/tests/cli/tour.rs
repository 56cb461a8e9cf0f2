//! `docs/tour.md`: the commands print what it shows, and the files and functions that it names exist.

use std::path::{Path, PathBuf};

use super::answer;

#[test]
fn files_and_functions_of_the_tour_exist() {
    let tour = tour();
    let mut stations = 0;
    for heading in tour.lines().filter(|line| line.starts_with("## ")) {
        let mut names = heading.split('`').skip(1).step_by(2);
        let (file, function) = (names.next().unwrap(), names.next().unwrap());
        let text = std::fs::read_to_string(root().join(file))
            .unwrap_or_else(|error| panic!("{file}: {error}"));
        let is_there = ["(", "<"].iter().any(|end| text.contains(&format!("fn {function}{end}")));
        assert!(is_there, "{file} has no function {function}");
        stations += 1;
    }
    assert_eq!(stations, 10);
}

#[test]
fn commands_of_the_tour_print_what_it_shows() {
    let (mut output, mut shown) = (None, 0);
    for line in tour().lines() {
        if let Some(command) = line.strip_prefix("    $ smbscope ") {
            let fixture = root().join("tests/").display().to_string();
            let arguments = command.replace("tests/", &fixture);
            output = Some(answer(arguments.split(' ')));
        } else if let (Some(line), Some(output)) = (line.strip_prefix("    "), &output) {
            assert!(output.contains(line.trim()), "`{line}` is not in:\n{output}");
            shown += 1;
        }
    }
    assert!(shown >= 2, "{shown}");
}

fn tour() -> String {
    std::fs::read_to_string(root().join("docs/tour.md")).unwrap()
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}
