//! The search for the setting that makes a server slow: its state file, and what to do now.

use std::io::Read as _;
use std::path::Path;

use anyhow::Context as _;
use serde_json::json;
use smbscope_plan::baseline::bisect::{
    Cause, Change, LeftInForce, Outcome, Purpose, Speed, State, Step, Suspects,
};
use smbscope_plan::baseline::setting::{Place, Setting};
use smbscope_plan::baseline::terms::place_title;
use smbscope_plan::baseline::write::FormerState;
use smbscope_plan::script;
use smbscope_report::baseline::SearchPlan;

use super::super::{new_file, replace_file};
use super::{BaselineArgs, bad, files};
use crate::exit::Failure;
use crate::format::TextFormat;
use crate::output::Output;

/// The longest state that is read.
const STATE_BYTES_MAX: u64 = 64 << 20;

/// What a try showed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum SpeedChoice {
    /// As slow as with the whole baseline.
    Slow,
    /// As fast as before it.
    Fast,
}

/// A search, where it is.
pub(super) struct Found(State);

/// Begins a search.
pub(super) fn begin(
    suspects: Suspects,
    file: &Path,
    result: Option<SpeedChoice>,
) -> anyhow::Result<Found> {
    if result.is_some() {
        return Err(bad(
            &file.display().to_string(),
            "there is no search in it yet: begin without --result",
        ));
    }
    let state =
        State::new(suspects).map_err(|error| Failure::usage(format!("--search: {error}")))?;
    new_file(file, state.write().context("search to JSON")?.as_bytes())?;
    Ok(Found(state))
}

fn continued(file: &Path, result: Option<SpeedChoice>) -> anyhow::Result<Found> {
    let name = file.display().to_string();
    let mut bytes = String::new();
    std::fs::File::open(file)
        .and_then(|file| file.take(STATE_BYTES_MAX).read_to_string(&mut bytes))
        .map_err(|error| bad(&name, error))?;
    let mut state = State::read(&bytes).map_err(|error| bad(&name, error))?;
    if let Some(result) = result {
        let speed = match result {
            SpeedChoice::Slow => Speed::Slow,
            SpeedChoice::Fast => Speed::Fast,
        };
        state.result(speed).map_err(|error| bad(&name, error))?;
        replace_file(file, state.write().context("search to JSON")?.as_bytes())?;
    }
    Ok(Found(state))
}

/// Continues a search without its baseline.
pub(super) fn resume(args: &BaselineArgs, file: &Path) -> anyhow::Result<()> {
    if !file.exists() {
        return Err(bad(
            &file.display().to_string(),
            "there is no such search: begin it with BASELINE, --recording and --search",
        ));
    }
    let found = continued(file, args.result)?;
    for path in &args.write {
        let Some(change) = found.change() else {
            return Err(bad(
                &path.display().to_string(),
                "the network is measured first: there is nothing to apply yet",
            ));
        };
        let former = FormerState { settings: change.undo, is_complete: true };
        files::write(path, &change.apply, &former)?;
    }
    let plan = found.into_plan();
    let mut output = Output::open(args.answer.out.as_ref())?;
    let text = match args.answer.format.unwrap_or_default() {
        TextFormat::Text => text(&plan),
        TextFormat::Json => smbscope_report::json_text(&value(&plan)),
    };
    output.text(&text)?;
    output.finish()
}

fn text(plan: &SearchPlan) -> String {
    let mut text = plan.sentences.join("\n") + "\n";
    for block in &plan.commands {
        text.push_str(&format!("\n  # {}\n", block.does));
        block.apply.iter().for_each(|line| text.push_str(&format!("  {line}\n")));
        block.undo.iter().for_each(|line| text.push_str(&format!("  undo: {line}\n")));
    }
    if !plan.is_done {
        text.push_str(&format!(
            "\nAt most {} more tries, {:.1} expected.\n",
            plan.tries_most, plan.tries_expected
        ));
    }
    text
}

fn value(plan: &SearchPlan) -> serde_json::Value {
    let blocks = plan.commands.iter();
    let blocks = blocks.map(|one| json!({"title": one.does, "apply": one.apply, "undo": one.undo}));
    json!({
        "sentences": plan.sentences,
        "commands": blocks.collect::<Vec<_>>(),
        "tries_most": plan.tries_most,
        "tries_expected": plan.tries_expected,
        "found": plan.found,
        "is_done": plan.is_done,
    })
}

impl Found {
    /// The settings of the present step.
    fn change(&self) -> Option<Change> {
        match self.0.step() {
            Step::Network => None,
            Step::Try(change, _) | Step::Done { rest: change, .. } => Some(change),
        }
    }

    /// What to do now.
    pub(super) fn into_plan(self) -> SearchPlan {
        let Found(state) = self;
        let causes = state.causes();
        let found = causes.iter().map(|cause| cause_text(&state, cause)).collect();
        let (tries_most, tries_expected) = state.tries_left();
        let mut plan = SearchPlan {
            found,
            tries_most: tries_most as u64,
            tries_expected,
            ..SearchPlan::default()
        };
        let blocks = |what: &str, change: &Change| {
            let former = FormerState { settings: change.undo.clone(), is_complete: true };
            files::blocks(what, &change.apply, &former)
        };
        match state.step() {
            Step::Network => {
                plan.sentences.push(
                    "It is slow without the settings as well. Now measure TCP without SMB between a slow client and \
                     the server. Continue with --result slow if it is slow too, else with --result fast."
                        .to_owned(),
                );
                plan.commands.push(network());
            }
            Step::Try(change, purpose) => {
                if let Some((one, other)) = change.contradiction {
                    plan.sentences.push(format!(
                        "Tries {one} and {other} contradict each other: this one repeats them. Measure several times."
                    ));
                }
                plan.sentences.extend(what_to_try(&state, &change, &purpose));
                plan.sentences.extend(effect(&change.apply).map(str::to_owned));
                plan.commands = blocks("apply for this try", &change);
            }
            Step::Done { outcome, rest } => {
                plan.is_done = true;
                plan.sentences.extend(ending(&state, outcome, &causes));
                plan.sentences.extend(effect(&rest.apply).map(str::to_owned));
                plan.commands = blocks("the baseline without the cause", &rest);
            }
        }
        plan
    }
}

fn network() -> script::Step {
    script::Step {
        does: "measure the network".to_owned(),
        apply: vec![
            "smbscope net listen                          # on the server".to_owned(),
            "smbscope net send SERVER --token TOKEN       # on the client".to_owned(),
        ],
        ..script::Step::default()
    }
}

/// A candidate with its places.
fn title(state: &State, number: usize) -> String {
    let Some(one) = state.suspects.candidates.get(number) else { return String::new() };
    let places: Vec<_> = one.baseline.iter().map(|setting| place_title(&setting.place)).collect();
    let places = list(&places);
    if places == one.title { places } else { format!("{} ({places})", one.title) }
}

fn titles(state: &State, numbers: &[usize]) -> String {
    list(&numbers.iter().map(|&one| title(state, one)).collect::<Vec<_>>())
}

fn cause_text(state: &State, cause: &Cause) -> String {
    match &cause.members[..] {
        [one] => title(state, *one),
        members => format!(
            "{}: slow only together, and fast without {}",
            titles(state, members),
            title(state, cause.back)
        ),
    }
}

fn what_to_try(state: &State, change: &Change, purpose: &Purpose) -> Vec<String> {
    let suspects = &state.suspects;
    let all = suspects.candidates.len();
    let measure = "Measure as before, then continue with --result slow or --result fast.";
    let taken =
        format!("{} of {all} settings: {}", change.without.len(), titles(state, &change.without));
    match purpose {
        Purpose::AllBack => {
            let mut sentences = vec![format!(
                "First take back all settings that can slow SMB 2 and 3 ({all}): {}. {measure}",
                titles(state, &change.without)
            )];
            sentences.extend(left(suspects));
            sentences.push(
                "A group policy puts its values back when it is refreshed (within two hours, security settings within 16 \
                 hours): measure before that. Let clients connect again before each measurement."
                    .to_owned(),
            );
            sentences
        }
        Purpose::Narrow => vec![format!("Take back {taken}. {measure}")],
        Purpose::Alone(members) => vec![format!(
            "It is slow with {} in force. Leave only that in force and take back {taken}: this shows whether it acts \
             alone. {measure}",
            titles(state, members)
        )],
        Purpose::Others => {
            let causes = state.causes();
            let found: Vec<_> = causes.iter().map(|cause| cause_text(state, cause)).collect();
            vec![format!(
                "Found: {}. Take back only {taken}: this shows whether there is another cause. {measure}",
                found.join("; ")
            )]
        }
    }
}

/// The settings that stay in force.
fn left(suspects: &Suspects) -> Option<String> {
    let by_hand = |one: &LeftInForce| format!("{} ({})", one.title, one.why);
    let names: Vec<_> = suspects.by_hand.iter().map(by_hand).collect();
    let others = suspects.harmless;
    match (names.len(), others) {
        (0, 0) => None,
        (0, _) => Some(format!(
            "{others} more settings change and stay in force: nothing is known by which they slow SMB 2 and 3."
        )),
        (count, _) => Some(format!(
            "Not searched, and in force all the time: {count} that can slow it and that must be taken back by hand: {}. \
             {others} more stay in force: nothing is known by which they slow SMB 2 and 3.",
            list(&names)
        )),
    }
}

fn ending(state: &State, outcome: Outcome, causes: &[Cause]) -> Vec<String> {
    let searched = state.suspects.candidates.len();
    match outcome {
        Outcome::Network => vec![
            "The network is slow without SMB, and SMB without the settings: look at the network first, in the report of \
             smbscope net. The baseline is not acquitted: measure it again on a fast network."
                .to_owned(),
        ],
        Outcome::NoSetting => {
            let mut sentences = vec![format!(
                "It stays slow without the {searched} settings that were searched, and the network is fast: none of these \
                 is the cause. Try smbscope explain on a recording."
            )];
            sentences.extend(left(&state.suspects));
            sentences
        }
        Outcome::Found => {
            let found: Vec<_> = causes.iter().map(|cause| cause_text(state, cause)).collect();
            let back: Vec<_> = causes.iter().map(|cause| cause.back).collect();
            vec![format!(
                "The cause: {}. It is fast without {}; the other settings of the baseline can stay.",
                found.join("; "),
                titles(state, &back)
            )]
        }
    }
}

/// When values of the registry count, the slowest of them.
fn effect(settings: &[Setting]) -> Option<&'static str> {
    let keys = settings.iter().filter_map(|setting| match &setting.place {
        Place::Registry { key, .. } => Some(key.to_lowercase()),
        _ => None,
    });
    let keys: Vec<_> = keys.collect();
    let is_of_service =
        |key: &String| key.contains("lanmanserver") || key.contains("lanmanworkstation");
    if keys.iter().any(|key| !is_of_service(key)) {
        Some("Some of these values of the registry count after a restart of the machine: plan it.")
    } else if keys.is_empty() {
        None
    } else {
        Some(
            "These values of the registry count after a restart of the service (Restart-Service LanmanServer -Force on \
             a server), which ends all sessions: plan it.",
        )
    }
}

/// The first ones by name, the others by their number.
fn list(names: &[String]) -> String {
    const SHOWN: usize = 8;
    let mut text = names.iter().take(SHOWN).cloned().collect::<Vec<_>>().join("; ");
    if names.len() > SHOWN {
        text.push_str(&format!(" and {} more", names.len() - SHOWN));
    }
    text
}
