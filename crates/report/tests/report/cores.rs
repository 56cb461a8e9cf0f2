//! A plan of cores: text and page of a small machine, the published case, large machines, names that try to escape,
//! and its JSON for outputs of real machines.

use std::path::PathBuf;

use smbscope_plan::cores::added::{Wanted, added};
use smbscope_plan::cores::assemble::assemble;
use smbscope_plan::cores::read::read;
use smbscope_plan::cores::topology::System;
use smbscope_report::cores::CoresPlan;
use smbscope_report::{TextOptions, html, json};

use super::golden::outline;
use super::is_well_formed;
use super::sample::cores;
use super::schema::{check_in, objects_of};

fn text(plan: &CoresPlan) -> String {
    smbscope_report::text(plan, &TextOptions::new(100, true))
}

#[test]
fn text_of_a_small_machine() {
    insta::assert_snapshot!("cores", text(&cores::linux(12)));
}

#[test]
fn page_of_a_small_machine() {
    let page = html(&cores::linux(3));
    is_well_formed(&page);
    insta::assert_snapshot!("cores_page", outline(&page));
}

#[test]
fn the_published_case_is_drawn_before_and_after() {
    let plan = cores::published();
    let text = text(&plan);
    for line in [
        "    thread 0, CPU 0, 2 to 10                  ****··   AABBCC",
        "    thread 0, CPU 12, 14 to 22                ······   DDEEFF",
    ] {
        assert!(text.lines().any(|one| one == line), "{line}\n{text}");
    }
    let page = html(&plan);
    is_well_formed(&page);
    // Two sockets, before and after.
    assert_eq!(page.matches("<svg class=\"socket\"").count(), 4);
    assert_eq!(page.matches("class=\"core\"").count(), 2 * 12);
    assert_eq!(page.matches("class=\"cell\"").count(), 2 * 24);
    assert!(page.contains("CPU 12, core 6; Slot 4 Port 1, queue 0"), "{page}");
}

#[test]
fn a_trace_gives_the_load_before_and_after() {
    let plan = cores::flooded();
    assert!(plan.findings.iter().any(|found| found.what.starts_with("In 10.0 s, nearly all")));
    let text = text(&plan);
    for line in [
        "  0                  92.0 %   30.7 %        7.0 %",
        "  The busiest receives 92 % of the time before, 31 % after.",
        "  12 CPUs without receive work.",
    ] {
        assert!(text.lines().any(|one| one == line), "{line}\n{text}");
    }
    let page = html(&plan);
    is_well_formed(&page);
    assert!(page.contains("Load before and after"), "{page}");
}

#[test]
fn processes_of_servers_are_counted() {
    let text = text(&cores::confined());
    assert!(text.contains("Server smbd: 3 processes"), "{text}");
    assert!(text.contains("3 of 3 processes of smbd may run on node 0 only"), "{text}");
}

#[test]
fn one_connection_comes_before_what_the_plan_does() {
    let text = text(&cores::linux(1));
    let place = |words: &str| text.find(words).unwrap_or_else(|| panic!("{words}\n{text}"));
    assert!(place("one connection stays on one core") < place("What is wrong"));
}

#[test]
fn machines_of_all_sizes_fit() {
    for (system, sockets, cores, threads) in [
        (System::Linux, 1, 2, 1),
        (System::Linux, 2, 64, 4),
        (System::Windows, 8, 32, 2),
        (System::Linux, 8, 128, 8),
    ] {
        let plan = cores::large(system, sockets, cores, threads);
        let page = html(&plan);
        is_well_formed(&page);
        let cpus = (sockets * cores * threads).min(2048) as usize;
        assert_eq!(page.matches("class=\"cell").count(), 2 * cpus);
        assert_eq!(page.contains("more CPUs are not drawn"), cpus == 2048);
        let text = text(&plan);
        // Commands are not folded.
        let folded = text.split("Commands (nothing was executed)").next().unwrap();
        for line in folded.lines() {
            assert!(line.chars().count() <= 100, "{line}");
        }
        check_in(objects_of("cores"), &json(&plan).unwrap(), "plan", "$");
    }
}

#[test]
fn names_cannot_leave_their_place() {
    let plan = cores::virtual_machine(4);
    let page = html(&plan);
    is_well_formed(&page);
    assert_eq!(page.matches("<script").count(), 1);
    assert!(page.contains("&lt;script&gt;"));
    for text in [page, text(&plan)] {
        assert!(!text.contains(['\u{1b}', '\u{202e}']));
    }
}

#[test]
fn a_machine_without_processors_or_adapters_says_so() {
    let empty = cores::planned(Default::default(), 0, &[]);
    for words in [text(&empty), html(&empty)] {
        assert!(words.contains("There is no layout: the input does not have the CPUs."));
    }
    check_in(objects_of("cores"), &json(&empty).unwrap(), "plan", "$");
}

#[test]
fn the_json_is_of_its_published_schema() {
    for plan in [
        cores::linux(0),
        cores::linux(20),
        cores::published(),
        cores::flooded(),
        cores::confined(),
        cores::large(System::Windows, 2, 8, 2),
        cores::virtual_machine(2),
    ] {
        check_in(objects_of("cores"), &json(&plan).unwrap(), "plan", "$");
    }
}

/// Each adapter has a line, each way a sentence, in text and on the page.
#[test]
fn added_adapters_have_places_and_ways() {
    let mut plan = cores::published();
    let wanted = Wanted { adapters: 2, bits_per_second: 25_000_000_000 };
    let client = |number: u8| ([192, 0, 2, number].into(), 100);
    plan.added = Some(added(&plan.machine, &wanted, &[client(1), client(2), client(3)]));
    check_in(objects_of("cores"), &json(&plan).unwrap(), "plan", "$");
    let page = html(&plan);
    is_well_formed(&page);
    for words in [text(&plan), page] {
        // No-break spaces keep numbers and units together.
        let words = words.split_whitespace().collect::<Vec<_>>().join(" ").replace("&nbsp;", " ");
        for part in [
            "What if 2 adapters of 25 Gbit/s were added",
            "They carry 50 Gbit/s, in addition to the 60 Gbit/s of today.",
            "new 2: node",
            "3 recorded clients: 1.50 for each address on average.",
            "even shares are 50 %",
            "gets at most 50 Gbit/s",
            "A team: 1 address, and 1 entry in DNS.",
        ] {
            assert!(words.contains(part), "{part}\n{words}");
        }
    }
}

/// Each output is a machine of its own, and all of a system are one.
#[test]
fn the_json_of_real_outputs_is_of_its_schema() {
    let default = || PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared"));
    let folder =
        std::env::var_os("SMBSCOPE_SHARED").map_or_else(default, PathBuf::from).join("outputs");
    if !folder.is_dir() {
        smbscope_testing::skip!("{} is not there (set SMBSCOPE_SHARED)", folder.display());
        return;
    }
    let (mut read_count, mut found) = (0, 0);
    for system in ["linux", "windows"] {
        let mut all = Vec::new();
        for file in std::fs::read_dir(folder.join(system)).unwrap() {
            let Ok(reading) = read(&std::fs::read(file.unwrap().path()).unwrap()) else { continue };
            read_count += 1;
            let plan = cores::planned(assemble(&reading.pieces), reading.unknown.count(), &[]);
            check_in(objects_of("cores"), &json(&plan).unwrap(), "plan", "$");
            is_well_formed(&html(&plan));
            found += plan.findings.len();
            all.extend(reading.pieces);
        }
        let plan = cores::planned(assemble(&all), 0, &cores::connections(50));
        check_in(objects_of("cores"), &json(&plan).unwrap(), "plan", "$");
        is_well_formed(&html(&plan));
    }
    assert!(read_count > 50 && found > 5, "{read_count} outputs, {found} findings");
}
