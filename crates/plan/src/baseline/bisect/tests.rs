//! Searches with an honest user: one cause is named within the bound; several, two that act together, none and
//! contradictions too.

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
    let candidates = weights.iter().enumerate().map(candidate).collect();
    State::new(Suspects { candidates, ..Suspects::default() }).unwrap()
}

/// A machine on which the steps are really made: slow with all settings of one of the causes.
struct Machine {
    values: Vec<u32>,
    causes: Vec<Vec<usize>>,
    is_always_slow: bool,
}

impl Machine {
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
        let is_on = |one: &usize| self.values.get(*one) == Some(&1);
        let is_slow = self.is_always_slow || self.causes.iter().any(|all| all.iter().all(is_on));
        if is_slow { Speed::Slow } else { Speed::Fast }
    }
}

/// What a search found: its outcome, the members of each cause, tries until the first cause was named, all tries.
struct Searched {
    outcome: Outcome,
    causes: Vec<Vec<usize>>,
    named_after: Option<usize>,
    tries: usize,
}

fn search(weights: &[f64], causes: &[&[usize]]) -> Searched {
    let mut state = state(weights);
    let mut machine = Machine {
        values: vec![1; weights.len()],
        causes: causes.iter().map(|one| one.to_vec()).collect(),
        is_always_slow: causes.is_empty(),
    };
    let mut named_after = None;
    for tries in 0..1000 {
        // The state survives its file.
        let text = state.write().unwrap();
        assert_eq!(State::read(&text).unwrap(), state);
        if named_after.is_none() && !state.causes().is_empty() {
            named_after = Some(tries);
        }
        match state.step() {
            Step::Network => state.result(Speed::Fast).unwrap(),
            Step::Try(change, purpose) => {
                assert_eq!(change.contradiction, None);
                assert_eq!(purpose == Purpose::AllBack, tries == 0);
                let before = machine.values.clone();
                machine.apply(&change.apply);
                let after = machine.values.clone();
                machine.apply(&change.undo);
                assert_eq!(machine.values, before);
                machine.values = after;
                state.result(machine.speed()).unwrap();
            }
            Step::Done { outcome, rest } => {
                machine.apply(&rest.apply);
                let found = state.causes();
                for (number, &value) in machine.values.iter().enumerate() {
                    let is_back = found.iter().any(|cause| cause.back == number);
                    assert_eq!(value == 0, is_back, "{number}");
                }
                // The plan keeps its promise.
                assert!(causes.is_empty() || machine.speed() == Speed::Fast);
                let mut causes: Vec<_> = found.into_iter().map(|one| one.members).collect();
                causes.iter_mut().for_each(|one| one.sort_unstable());
                causes.sort();
                return Searched { outcome, causes, named_after, tries };
            }
        }
    }
    panic!("no end: {state:?}");
}

/// log2, rounded up.
fn log2(count: usize) -> usize {
    count.next_power_of_two().ilog2() as usize
}

fn weights(count: std::ops::Range<usize>) -> impl Strategy<Value = Vec<f64>> {
    prop::collection::vec(prop_oneof![Just(0.0), 0.0..1.0f64, 10.0..1e6f64], count)
}

proptest! {
    // Each case is as many searches as it has settings.
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn one_cause_is_named_after_two_tries_and_log2(weights in weights(1..40)) {
        let (most, expected) = state(&weights).tries_left();
        let shares = state(&weights).shares(&(0..weights.len()).collect::<Vec<_>>());
        let mut mean = 0.0;
        for (guilty, share) in shares.iter().enumerate() {
            let found = search(&weights, &[&[guilty]]);
            prop_assert_eq!((found.outcome, &found.causes), (Outcome::Found, &vec![vec![guilty]]));
            let named = found.named_after.unwrap();
            prop_assert!(named <= most && most <= 2 + log2(weights.len()), "{named} {most}");
            // One more to see that there is no other.
            prop_assert!(found.tries <= named + 1);
            mean += share * named as f64;
        }
        prop_assert!(mean <= expected + 1e-9, "{mean} {expected}");
        let none = search(&weights, &[]);
        prop_assert_eq!((none.outcome, none.causes.len(), none.tries), (Outcome::NoSetting, 0, 2));
    }

    #[test]
    fn independent_causes_and_pairs_are_all_found(
        weights in weights(2..30),
        causes in prop::collection::vec(prop::collection::btree_set(0usize..30, 1..3), 1..4),
    ) {
        let mut causes: Vec<Vec<usize>> = causes
            .into_iter()
            .map(|one| one.into_iter().filter(|one| *one < weights.len()).collect())
            .filter(|one: &Vec<_>| !one.is_empty())
            .collect();
        // Of causes with a common setting, only some need to be known: one setting that is taken back ends them.
        causes.sort();
        let mut used = BTreeSet::new();
        causes.retain(|one| one.iter().all(|member| used.insert(*member)));
        prop_assume!(!causes.is_empty());
        let given: Vec<&[usize]> = causes.iter().map(Vec::as_slice).collect();
        let found = search(&weights, &given);
        prop_assert_eq!((found.outcome, &found.causes), (Outcome::Found, &causes));
        let parts: usize = causes.iter().map(Vec::len).sum();
        let bound = 1 + parts * (log2(weights.len()) + 1) + causes.len();
        prop_assert!(found.tries <= bound, "{} of {bound}", found.tries);
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

    /// Whatever is answered, the search ends or names a contradiction; and the machine is where the search believes.
    #[test]
    fn any_answers_end(
        weights in weights(1..12),
        answers in prop::collection::vec(any::<bool>(), 60),
    ) {
        let mut state = state(&weights);
        let mut machine =
            Machine { values: vec![1; weights.len()], causes: Vec::new(), is_always_slow: true };
        for is_slow in answers {
            if let Step::Try(change, _) = state.step() {
                machine.apply(&change.apply);
            }
            let speed = if is_slow { Speed::Slow } else { Speed::Fast };
            if state.result(speed).is_err() {
                let is_done = matches!(state.step(), Step::Done { .. });
                prop_assert!(is_done);
                return Ok(());
            }
        }
    }
}

/// 234 settings, the prediction names signing.
#[test]
fn what_the_prediction_names_is_found_early() {
    let mut weights = vec![0.001; 234];
    weights[17] = 400.0;
    let found = search(&weights, &[&[17]]);
    assert_eq!((found.outcome, found.causes), (Outcome::Found, vec![vec![17]]));
    assert!(found.named_after.unwrap() <= 9, "{:?}", found.named_after);
    // Two that act only together, far from each other.
    let found = search(&weights, &[&[3, 200]]);
    assert_eq!(found.causes, [[3, 200]]);
    assert!(found.tries <= 3 + 2 * 9, "{}", found.tries);
}

#[test]
fn a_slow_network_ends_it() {
    let mut state = state(&[1.0, 2.0]);
    let Step::Try(change, Purpose::AllBack) = state.step() else { panic!() };
    assert_eq!(change.without, [0, 1]);
    state.result(Speed::Slow).unwrap();
    assert_eq!(state.step(), Step::Network);
    state.result(Speed::Slow).unwrap();
    let Step::Done { outcome, rest } = state.step() else { panic!() };
    // The baseline comes back.
    assert_eq!((outcome, state.causes().len(), rest.apply.len()), (Outcome::Network, 0, 2));
    assert_eq!(state.result(Speed::Fast), Err(BisectError::Ended));
}

#[test]
fn a_contradiction_is_named_and_measured_again() {
    let mut state = state(&[8.0, 1.0, 1.0]);
    state.result(Speed::Fast).unwrap();
    state.tries.push(Try { in_force: Some([1, 2].into()), speed: Speed::Fast });
    state.tries.push(Try { in_force: Some([1].into()), speed: Speed::Slow });
    state.now = [1].into();
    state.contradiction = state.contradicting();
    let Step::Try(change, _) = state.step() else { panic!("{state:?}") };
    assert_eq!(change.contradiction, Some((2, 3)));
    // The second time it is fast: the try before was wrong.
    let mut again = state.clone();
    again.result(Speed::Fast).unwrap();
    assert_eq!(again.tries.len(), 2, "{again:?}");
    // The second time it is slow as well: the older one was wrong, and 1 is to blame.
    state.result(Speed::Slow).unwrap();
    let Step::Try(change, _) = state.step() else { panic!("{state:?}") };
    assert!(change.contradiction.is_none());
    assert!(state.tries.iter().all(|one| one.in_force != Some([1, 2].into())));
}

#[test]
fn files_that_were_changed_by_hand_are_refused() {
    let good = state(&[1.0]).write().unwrap();
    for (from, to) in [
        ("\"version\": 2", "\"version\": 1"),
        ("\"tries\": []", "\"tries\": [{\"in_force\": [7], \"speed\": \"slow\"}]"),
        ("{", ""),
    ] {
        let bad = good.replacen(from, to, 1);
        assert_ne!(bad, good);
        assert!(matches!(State::read(&bad), Err(BisectError::Damaged(_))), "{bad}");
    }
    let none = Suspects { harmless: 7, ..Suspects::default() };
    let error = State::new(none).unwrap_err();
    assert!(error.to_string().contains("7 cannot slow SMB 2 and 3"), "{error}");
}
