//! Searches: any single culprit is found within the bound; several, none and contradictions too.

use proptest::prelude::*;

use super::*;
use crate::baseline::setting::{Origin, Place, Value};

fn setting(name: usize, value: u32) -> Setting {
    let place = Place::Samba { share: None, parameter: format!("setting {name}") };
    Setting { place, value: Value::Dword(value), origin: Origin::default() }
}

fn state(weights: &[f64]) -> State {
    let candidate = |(number, &weight): (usize, &f64)| Candidate {
        id: number.to_string(),
        title: format!("Setting {number}"),
        weight,
        baseline: vec![setting(number, 1)],
        former: vec![setting(number, 0)],
    };
    State::new(weights.iter().enumerate().map(candidate).collect()).unwrap()
}

/// A machine on which the steps are really made.
struct Machine {
    values: Vec<u32>,
    guilty: Vec<usize>,
}

impl Machine {
    fn new(count: usize, guilty: &[usize]) -> Machine {
        Machine { values: vec![1; count], guilty: guilty.to_vec() }
    }

    fn apply(&mut self, settings: &[Setting]) {
        for setting in settings {
            let Place::Samba { parameter, .. } = &setting.place else { panic!() };
            let number: usize = parameter.strip_prefix("setting ").unwrap().parse().unwrap();
            let Value::Dword(value) = setting.value else { panic!() };
            // Undo and apply are the opposite of each other.
            assert_ne!(self.values[number], value, "{number} has that value already");
            self.values[number] = value;
        }
    }

    fn speed(&self) -> Speed {
        if self.guilty.iter().any(|&one| self.values.get(one) == Some(&1)) {
            Speed::Slow
        } else {
            Speed::Fast
        }
    }
}

/// Goes through a search: its outcome, what it found, and its tries with the network's.
fn search(weights: &[f64], guilty: &[usize], is_rest_slow: bool) -> (Outcome, Vec<usize>, usize) {
    let mut state = state(weights);
    let mut machine = Machine::new(weights.len(), guilty);
    for tries in 0..1000 {
        // The state survives its file.
        let text = state.write().unwrap();
        assert_eq!(State::read(&text).unwrap(), state);
        match state.step() {
            Step::Network => state.result(Speed::Fast).unwrap(),
            Step::Try(change) => {
                assert_eq!(change.contradiction, None);
                machine.apply(&change.apply);
                let mut undone = Machine { values: machine.values.clone(), guilty: vec![] };
                undone.apply(&change.undo);
                let speed = if is_rest_slow { Speed::Slow } else { machine.speed() };
                state.result(speed).unwrap();
            }
            Step::Done { outcome, mut found, rest } => {
                machine.apply(&rest.apply);
                found.sort_unstable();
                for (number, &value) in machine.values.iter().enumerate() {
                    assert_eq!(value == 0, found.contains(&number), "{number}");
                }
                return (outcome, found, tries);
            }
        }
    }
    panic!("no end: {state:?}");
}

/// Shannon's entropy of the weights as the search sees them.
fn entropy(state: &State) -> f64 {
    let weights = state.weights(&(0..state.candidates.len()).collect(), true);
    let all: f64 = weights.iter().map(|one| one.1).sum();
    weights.iter().map(|one| one.1 / all).map(|p| if p > 0.0 { -p * p.log2() } else { 0.0 }).sum()
}

proptest! {
    // Each case is as many searches as it has settings.
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn one_culprit_is_found_in_few_tries(
        weights in prop::collection::vec(prop_oneof![Just(0.0), 0.0..1.0f64, 10.0..1e6f64], 1..24),
    ) {
        let searched = state(&weights);
        let (most, expected) = searched.tries_left();
        let shares = searched.weights(&(0..weights.len()).collect(), true);
        let all: f64 = shares.iter().map(|one| one.1).sum();
        let mut mean = 0.0;
        for (suspect, weight) in &shares {
            let (guilty, is_rest_slow): (Vec<_>, _) = match suspect {
                Some(one) => (vec![*one], false),
                None => (vec![], true),
            };
            let (outcome, found, tries) = search(&weights, &guilty, is_rest_slow);
            let ends = if is_rest_slow { Outcome::NoSetting } else { Outcome::Found };
            prop_assert_eq!((outcome, found), (ends, guilty));
            // One more to see that no other one is to blame.
            prop_assert!(tries <= most + 1, "{tries} of {most}");
            mean += weight / all * tries as f64;
        }
        prop_assert!(mean <= expected + 1.0, "{mean} {expected}");
        // Huffman: at most one try more than the entropy; the network is the other one.
        prop_assert!(expected <= entropy(&searched) + 2.0 + 1e-9);
        // Fibonacci's bound on the depth of such a tree.
        let least = shares.iter().map(|one| one.1 / all).fold(1.0, f64::min);
        let bound = 1.0 + (1.0 / least).ln() / 1.618_f64.ln() + 1.0;
        prop_assert!((most as f64) <= bound + 1.0, "{most} {bound}");
    }

    #[test]
    fn several_culprits_are_all_found(
        weights in prop::collection::vec(0.0..10.0f64, 2..20),
        guilty in prop::collection::btree_set(0usize..20, 1..4),
    ) {
        let guilty: Vec<_> = guilty.into_iter().filter(|one| *one < weights.len()).collect();
        prop_assume!(!guilty.is_empty());
        let (outcome, found, _) = search(&weights, &guilty, false);
        prop_assert_eq!((outcome, found), (Outcome::Found, guilty));
    }

    /// A file with any tries is refused, or continues without a panic.
    #[test]
    fn any_file_is_refused_or_continues(
        tries in prop::collection::vec(
            (prop::option::of(prop::collection::btree_set(0usize..6, 0..6)), any::<bool>()),
            0..8,
        ),
        contradiction in prop::option::of((0usize..9, 0usize..9)),
        answers in prop::collection::vec(any::<bool>(), 8),
    ) {
        let mut state = state(&[3.0, 1.0, 0.0, 5.0]);
        let speed = |is_slow| if is_slow { Speed::Slow } else { Speed::Fast };
        state.tries =
            tries.into_iter().map(|(in_force, slow)| Try { in_force, speed: speed(slow) }).collect();
        state.contradiction = contradiction;
        let Ok(mut read) = State::read(&state.write().unwrap()) else { return Ok(()) };
        for is_slow in answers {
            let _ = read.tries_left();
            let is_done = matches!(read.step(), Step::Done { .. });
            prop_assert_eq!(read.result(speed(is_slow)).is_err(), is_done);
        }
    }

    /// Whatever is answered, the search ends or names a contradiction; no panic.
    #[test]
    fn any_answers_end(
        weights in prop::collection::vec(0.0..10.0f64, 1..12),
        answers in prop::collection::vec(any::<bool>(), 60),
    ) {
        let mut state = state(&weights);
        for is_slow in answers {
            let speed = if is_slow { Speed::Slow } else { Speed::Fast };
            if state.result(speed).is_err() {
                let is_done = matches!(state.step(), Step::Done { .. });
                prop_assert!(is_done);
                return Ok(());
            }
        }
    }
}

/// 234 settings of which the prediction names signing: the network, and one try.
#[test]
fn what_the_prediction_names_is_found_in_the_second_step() {
    let mut weights = vec![0.001; 234];
    weights[17] = 400.0;
    assert_eq!(search(&weights, &[17], false), (Outcome::Found, vec![17], 2));
    // And if the prediction is wrong, 234 settings take few tries.
    let (_, found, tries) = search(&weights, &[200], false);
    assert_eq!(found, [200]);
    assert!(tries <= 12, "{tries}");
}

#[test]
fn a_slow_network_ends_it() {
    let mut state = state(&[1.0, 2.0]);
    assert_eq!(state.step(), Step::Network);
    state.result(Speed::Slow).unwrap();
    let Step::Done { outcome, found, rest } = state.step() else { panic!() };
    assert_eq!((outcome, found.len(), rest.apply.len()), (Outcome::Network, 0, 0));
    assert_eq!(state.result(Speed::Fast), Err(BisectError::Ended));
}

#[test]
fn a_contradiction_is_named_and_measured_again() {
    let mut state = state(&[8.0, 1.0, 1.0]);
    state.result(Speed::Fast).unwrap();
    // Without the first it is fast, so no other one is to blame; in the file it then says the opposite of a part of it.
    let Step::Try(change) = state.step() else { panic!() };
    assert_eq!(change.without, [0]);
    state.tries.push(Try { in_force: Some([1, 2].into()), speed: Speed::Fast });
    state.tries.push(Try { in_force: Some([1].into()), speed: Speed::Slow });
    state.contradiction = state.contradicting();
    let Step::Try(change) = state.step() else { panic!("{state:?}") };
    assert_eq!(change.contradiction, Some((2, 3)));
    // The second time it is fast: the try before was wrong.
    let mut again = state.clone();
    again.result(Speed::Fast).unwrap();
    assert!(matches!(again.step(), Step::Done { outcome: Outcome::Found, .. }), "{again:?}");
    // The second time it is slow as well: the older one was wrong, and 1 is to blame.
    state.result(Speed::Slow).unwrap();
    let Step::Try(change) = state.step() else { panic!("{state:?}") };
    assert!(change.contradiction.is_none());
    assert!(state.tries.iter().all(|one| one.in_force != Some([1, 2].into())));
}

#[test]
fn files_that_were_changed_by_hand_are_refused() {
    let good = state(&[1.0]).write().unwrap();
    for (from, to) in [
        ("\"version\": 1", "\"version\": 9"),
        ("[]", "[{\"in_force\": [7], \"speed\": \"slow\"}]"),
        ("{", ""),
    ] {
        let bad = good.replacen(from, to, 1);
        assert!(matches!(State::read(&bad), Err(BisectError::Damaged(_))), "{bad}");
    }
    assert_eq!(State::new(Vec::new()).unwrap_err(), BisectError::NoCandidates);
}
