//! The search for the setting to blame, on every policy of the shared folder, with an honest user: he runs what is printed on
//! a simulated machine, measures, and answers. One cause, none, two independent ones, two that act together; after each step
//! the undo leads back exactly, and no step touches what has nothing to do with file serving.

// Tests may panic.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use smbscope_plan::baseline::bisect::{Outcome, Speed, State, Step};
use smbscope_plan::baseline::catalogue::System;
use smbscope_plan::baseline::difference::{Side, Unset};
use smbscope_plan::baseline::effective::{Input, Layer, effective};
use smbscope_plan::baseline::judgement::Assessment;
use smbscope_plan::baseline::read::{NamedBytes, read};
use smbscope_plan::baseline::roles::MachineRole;
use smbscope_plan::baseline::setting::Setting;
use smbscope_plan::baseline::terms::Terms;
use smbscope_plan::baseline::write::{FormerState, powershell};

#[path = "executor/windows.rs"]
mod windows;

use windows::{Slot, Windows};

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut open = vec![folder.to_owned()];
    while let Some(folder) = open.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() { open.push(path) } else { found.push(path) }
        }
    }
    found.sort();
    found
}

/// The search over a policy that is laid on an untouched machine.
fn search_of(path: &Path, role: MachineRole) -> Option<State> {
    let bytes = std::fs::read(path).unwrap();
    let name = path.to_string_lossy();
    let baseline = read(&[NamedBytes { name: &name, bytes: &bytes }]).ok()?;
    let settings = &baseline.settings;
    let input = Input { name: &name, layer: Layer::Policy, settings };
    let (before, after) = (Terms::default(), Terms::from_effective(effective(&[input])));
    let system = Some(System::Windows2022);
    let side = |terms| Side { terms, system, role };
    let assessment = Assessment::new(side(&before), side(&after), Unset::Kept, None);
    State::new(assessment.suspects(&assessment.judge(&[]).costs)).ok()
}

fn script(apply: &[Setting], former: &[Setting]) -> (String, String) {
    let former = FormerState { settings: former.to_vec(), is_complete: true };
    let written = powershell(apply, &former);
    assert_eq!((&written.unwritten[..], &written.undo_unwritten[..]), (&[][..], &[][..]));
    assert!(written.notes.is_empty(), "{:?}", written.notes);
    (written.apply, written.undo)
}

/// A machine with the baseline, and the values by which each candidate is in force.
struct Lab {
    baseline: Windows,
    in_force: Vec<Vec<(Slot, Option<String>)>>,
}

impl Lab {
    fn new(state: &State) -> Lab {
        let mut machine = Windows::default();
        for one in &state.suspects.candidates {
            machine.run(&script(&one.former, &one.baseline).0);
        }
        let former = machine.clone();
        let mut used = BTreeSet::new();
        let mut in_force = Vec::new();
        for one in &state.suspects.candidates {
            let before = machine.clone();
            machine.run(&script(&one.baseline, &one.former).0);
            let slots: BTreeSet<_> = before.values.keys().chain(machine.values.keys()).collect();
            let changed = slots
                .into_iter()
                .filter(|slot| before.values.get(slot) != machine.values.get(slot));
            let changed: Vec<_> =
                changed.map(|slot| (slot.clone(), machine.values.get(slot).cloned())).collect();
            assert!(!changed.is_empty(), "{} changes nothing", one.id);
            for (slot, _) in &changed {
                assert!(used.insert(slot.clone()), "{slot:?} belongs to two candidates");
            }
            in_force.push(changed);
        }
        assert_ne!(machine, former);
        Lab { baseline: machine, in_force }
    }

    fn is_in_force(&self, machine: &Windows, one: usize) -> bool {
        self.in_force[one].iter().all(|(slot, value)| machine.values.get(slot) == value.as_ref())
    }

    /// The outcome, the members of the causes, tries until the first was named, and all tries.
    fn search(
        &self,
        mut state: State,
        causes: &[&[usize]],
    ) -> (Outcome, Vec<Vec<usize>>, usize, usize) {
        let mut machine = self.baseline.clone();
        let mut named = None;
        for tries in 0..500 {
            if named.is_none() && !state.causes().is_empty() {
                named = Some(tries);
            }
            match state.step() {
                Step::Network => state.result(Speed::Fast).unwrap(),
                Step::Try(change, _) => {
                    let (apply, undo) = script(&change.apply, &change.undo);
                    let before = machine.clone();
                    machine.run(&apply);
                    let after = machine.clone();
                    machine.run(&undo);
                    assert_eq!(machine, before, "the undo does not lead back:\n{apply}\n{undo}");
                    machine = after;
                    for one in 0..state.suspects.candidates.len() {
                        let is_back = change.without.contains(&one);
                        assert_eq!(self.is_in_force(&machine, one), !is_back, "{one}");
                    }
                    let is_on =
                        |all: &&[usize]| all.iter().all(|&one| self.is_in_force(&machine, one));
                    let is_slow = causes.is_empty() || causes.iter().any(is_on);
                    state.result(if is_slow { Speed::Slow } else { Speed::Fast }).unwrap();
                }
                Step::Done { outcome, rest } => {
                    machine.run(&script(&rest.apply, &rest.undo).0);
                    let found = state.causes();
                    let back: BTreeSet<_> = found.iter().map(|cause| cause.back).collect();
                    for one in 0..state.suspects.candidates.len() {
                        assert_eq!(self.is_in_force(&machine, one), !back.contains(&one));
                    }
                    if back.is_empty() {
                        assert_eq!(machine, self.baseline);
                    }
                    let mut members: Vec<_> =
                        found.into_iter().map(|cause| cause.members).collect();
                    members.iter_mut().for_each(|one| one.sort_unstable());
                    members.sort();
                    return (outcome, members, named.unwrap_or(tries), tries);
                }
            }
        }
        panic!("no end");
    }
}

fn log2(count: usize) -> usize {
    count.next_power_of_two().ilog2() as usize
}

#[test]
fn every_policy_is_searched_with_an_honest_user() {
    let Some(folder) = smbscope_testing::shared("policies") else { return };
    let (mut policies, mut searches, mut candidates) = (0, 0, 0);
    for path in files(&folder) {
        for role in [MachineRole::FileServer, MachineRole::Both] {
            let Some(state) = search_of(&path, role) else { continue };
            let count = state.suspects.candidates.len();
            let lab = Lab::new(&state);
            (policies, candidates) = (policies + 1, candidates + count);
            let bound = log2(count) + 2;
            for guilty in 0..count {
                let (outcome, found, named, tries) = lab.search(state.clone(), &[&[guilty]]);
                assert_eq!((outcome, found), (Outcome::Found, vec![vec![guilty]]));
                assert!(named <= bound, "{}: {named} of {bound}", path.display());
                assert!(tries <= bound + 1);
                let other = (guilty * 7 + 3) % count;
                if other == guilty {
                    continue;
                }
                let (small, large) = (guilty.min(other), guilty.max(other));
                let (_, found, _, tries) = lab.search(state.clone(), &[&[small], &[large]]);
                assert_eq!(found, [[small], [large]]);
                // One try shows that any is to blame, and one after each cause whether there is another.
                assert!(tries <= 1 + 2 * bound, "{tries}");
                let (_, found, _, tries) = lab.search(state.clone(), &[&[small, large]]);
                assert_eq!(found, [[small, large]]);
                assert!(tries <= 2 * bound, "{tries}");
                searches += 3;
            }
            let (outcome, _, _, tries) = lab.search(state.clone(), &[]);
            assert_eq!((outcome, tries), (Outcome::NoSetting, 2), "{}", path.display());
        }
    }
    println!("{policies} policies, {candidates} candidates, {searches} searches");
    assert!(policies > 20 && searches > 500, "{policies} {searches}");
}

/// SMB 1, user account control, anonymous access, virus scanners, user rights.
#[test]
fn no_step_weakens_what_has_nothing_to_do_with_file_serving() {
    let Some(folder) = smbscope_testing::shared("policies") else { return };
    let forbidden = [
        "smb1",
        "mrxsmb10",
        "enablelua",
        "restrictanonymous",
        "restrictnullsess",
        "nullsession",
        "windows defender",
        "windowsfirewall",
        "deviceguard",
        "lmcompatibility",
        "ntlmmin",
        "allowinsecureguest",
        "enableplaintext",
        "privilege rights",
        "netlogon",
        "fips",
        "disableipsourcerouting",
        "performrouterdiscovery",
        "clearpagefile",
    ];
    let mut names = BTreeSet::new();
    for path in files(&folder) {
        let Some(state) = search_of(&path, MachineRole::FileServer) else { continue };
        let lab = Lab::new(&state);
        for (key, name) in lab.in_force.iter().flatten().map(|(slot, _)| slot) {
            let place = format!("{key}\\{name}");
            assert!(
                !forbidden.iter().any(|one| place.contains(one)),
                "{}: {place}",
                path.display()
            );
            names.insert(place);
        }
    }
    println!("{names:#?}");
    assert!(names.iter().any(|one| one.ends_with("requiresecuritysignature")), "{names:?}");
}
