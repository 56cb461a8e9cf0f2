//! The search for the setting that makes a server slow: its state file, and what to do now.

use std::io::Read as _;
use std::path::Path;

use anyhow::Context as _;
use serde_json::json;
use smbscope_plan::baseline::bisect::{Candidate, Change, Outcome, Speed, State, Step};
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
    candidates: Vec<Candidate>,
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
        State::new(candidates).map_err(|error| Failure::usage(format!("--search: {error}")))?;
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
        TextFormat::Json => format!("{:#}\n", value(&plan)),
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
            Step::Try(change) | Step::Done { rest: change, .. } => Some(change),
        }
    }

    /// What to do now.
    pub(super) fn into_plan(self) -> SearchPlan {
        let Found(state) = self;
        let title = |number: &usize| {
            let Some(one) = state.candidates.get(*number) else { return String::new() };
            let places: Vec<_> =
                one.baseline.iter().map(|setting| place_title(&setting.place)).collect();
            if places.is_empty() {
                one.title.clone()
            } else {
                format!("{} ({})", one.title, list(&places))
            }
        };
        let titles = |numbers: &[usize]| list(&numbers.iter().map(title).collect::<Vec<_>>());
        let (tries_most, tries_expected) = state.tries_left();
        let (mut sentences, mut commands, mut found, mut is_done) =
            (Vec::new(), Vec::new(), Vec::new(), false);
        let blocks = |what: &str, change: &Change| {
            let former = FormerState { settings: change.undo.clone(), is_complete: true };
            files::blocks(what, &change.apply, &former)
        };
        match state.step() {
            Step::Network => sentences.push(
                "First rule out the network: measure TCP without SMB between a slow client and the server, with the \
                 baseline in force. Then continue with --result slow if it is slow too, else with --result fast."
                    .to_owned(),
            ),
            Step::Try(change) => {
                if let Some((one, other)) = change.contradiction {
                    sentences.push(format!(
                        "Tries {one} and {other} contradict each other: this one repeats them. Measure several times."
                    ));
                }
                sentences.push(format!(
                    "Take back {} of {} settings: {}. Measure as before, then continue with --result slow or --result \
                     fast.",
                    change.without.len(),
                    state.candidates.len(),
                    titles(&change.without)
                ));
                commands = blocks("apply for this try", &change);
            }
            Step::Done { outcome, found: culprits, rest } => {
                is_done = true;
                found = culprits.iter().map(title).collect();
                sentences.push(match outcome {
                    Outcome::Network => "The network is slow without SMB: no setting of the baseline is the cause. \
                                         Look at the report of smbscope net."
                        .to_owned(),
                    Outcome::NoSetting => "It is slow without all settings of the baseline: the cause is something \
                                           else. Try smbscope explain on a recording."
                        .to_owned(),
                    Outcome::Found => format!(
                        "The cause: {}. The other settings of the baseline can stay.",
                        titles(&culprits)
                    ),
                });
                commands = blocks("the baseline without the cause", &rest);
            }
        }
        if matches!(state.step(), Step::Network) {
            commands.push(script::Step {
                does: "measure the network".to_owned(),
                apply: vec![
                    "smbscope net listen                          # on the server".to_owned(),
                    "smbscope net send SERVER --token TOKEN       # on the client".to_owned(),
                ],
                undo: Vec::new(),
                ..script::Step::default()
            });
        }
        SearchPlan {
            sentences,
            commands,
            tries_most: tries_most as u64,
            tries_expected,
            found,
            is_done,
        }
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
