//! The fields of the judgement of a security baseline. It is data.

use smbscope_findings::Kind as _;
use smbscope_plan::baseline::judgement::findings::FindingKind;

use crate::document::by_field;
use crate::value::Format::*;
use crate::value::Presence::*;
use crate::value::{Closed, Fields, Object, Rows, all, values_of};

/// The objects of the judgement of a baseline.
pub static FIELDS: Fields = Fields::new("baseline", objects, closed);

by_field! { column field }

fn objects() -> Vec<Object> {
    all(OBJECTS)
}

/// Fields whose values are a closed list.
fn closed() -> Vec<Closed> {
    vec![
        values_of("baseline_finding", "kind", FindingKind::ALL),
        values_of("baseline_cost", "outcome", &["predicted", "nothing", "unknown"]),
        values_of("baseline_change", "security", &["stricter", "weaker", "neutral"]),
    ]
}

#[rustfmt::skip]
pub(crate) const OBJECTS: &[Rows] = &[
    ("baseline", "What a security baseline changes for file serving, what it costs here, and the cheaper way.", &[], &[
        ("version", "Version", Text, Always, "Version of smbscope that made the judgement."),
        ("inputs", "Baseline", Texts, Always, "The files or folders of the proposed baseline."),
        ("against", "Against", Texts, Always, "The files or folders that it is compared with."),
        ("recording", "Recording", Text, Nullable, "The recording that costs were predicted on."),
        ("calibration", "Calibration", Text, Nullable, "The costs of signing and encryption that were used."),
        ("verdict", "Verdict", Text, Always, "How many settings touch file serving, and what costs."),
        ("reasons", "Reasons", Texts, Always, "What is lost without it, and the cheaper way."),
        ("before", "Before", Object("baseline_side"), Always, "What it is compared with, in numbers."),
        ("after", "After", Object("baseline_side"), Always, "The proposed baseline in numbers."),
        ("changes", "Changes", List("baseline_change"), Always, "Known settings that differ."),
        ("same", "Same", Count, Always, "Known settings with the same value."),
        ("unknown_before", "Not known before", Count, Always, "Changes of which the value before is not known."),
        ("others", "Others", Object("baseline_others"), Always, "Settings that the catalogue does not have."),
        ("other_changes", "Other changes", List("baseline_other_change"), Always, "Settings that the catalogue does not have, and that differ; at most 10,000."),
        ("costs", "Costs", List("baseline_cost"), Always, "What changes cost, the largest first."),
        ("alternatives", "Cheaper ways", List("baseline_alternative"), Always, "Ways to the same protection, the largest saving first."),
        ("findings", "Findings", List("baseline_finding"), Always, "What is wrong with it."),
        ("commands", "Commands", List("command_block"), Always, "Commands with their undo; nothing was executed."),
        ("search", "Search", Object("baseline_search"), Nullable, "Where the search for the setting to blame is."),
        ("unread", "Not settings", Texts, Always, "Parts of the inputs that are not settings."),
    ]),
    ("baseline_side", "One side of the comparison in numbers.", &[], &[
        ("system", "Version", Code, Nullable, "Version whose defaults count; null if none was given."),
        ("settings", "Settings", Count, Always, "Settings that were read."),
        ("known", "Known", Count, Always, "Settings of the catalogue, each once."),
        ("touching", "Touch file serving", Count, Always, "Those that have an effect on the speed of file serving."),
        ("others", "Others", Count, Always, "Other settings, each once."),
    ]),
    ("baseline_change", "A known setting that differs.", &[], &[
        ("id", "Identifier", Code, Always, "Its identifier in the catalogue."),
        ("of", "Of", Text, Nullable, "The share, or the pattern of UNC paths; null for all."),
        ("setting", "Setting", Text, Always, "What it means."),
        ("from", "Today", Text, Nullable, "Value before, in the catalogue's spelling; null if it is not known."),
        ("from_default", "Today's is a default", Flag, Always, "Whether that is the default of the version."),
        ("to", "Proposed", Text, Nullable, "Value after; null if it is not known."),
        ("to_default", "Proposed is a default", Flag, Always, "Whether that is the default of the version."),
        ("place", "Place", Text, Nullable, "Where it is set."),
        ("origin", "Origin", Text, Nullable, "The file, and the policy, that sets it."),
        ("security", "Security", Code, Always, "stricter, weaker or neutral."),
        ("cost_key", "Cost", Code, Always, "By what the cost is predicted."),
        ("no_effect", "No effect", Text, Nullable, "Why it has no effect; null if it has one."),
        ("performance", "Performance", Text, Always, "Its effect on performance."),
        ("protection", "Protection", Text, Always, "Its effect on security."),
        ("compatibility", "Compatibility", Text, Always, "Its effect on compatibility."),
        ("source", "Source", Text, Always, "The document."),
    ]),
    ("baseline_others", "Settings that the catalogue does not have.", &[], &[
        ("same", "Same", Count, Always, "With the same value on both sides."),
        ("changed", "Changed", Count, Always, "With another value."),
        ("only_before", "Only before", Count, Always, "No longer set."),
        ("only_after", "Only after", Count, Always, "New."),
    ]),
    ("baseline_other_change", "A setting that the catalogue does not have, and that differs.", &[], &[
        ("place", "Place", Text, Always, "Where it is set."),
        ("from", "Today", Text, Nullable, "Value before; null if it is not set."),
        ("to", "Proposed", Text, Nullable, "Value after, `removed` for one that is removed; null if it is not set."),
        ("meaning", "Meaning", Text, Nullable, "What the value means, from a template (ADMX, ADML) among the inputs."),
        ("policy", "Policy", Text, Nullable, "The name of the policy, from a template."),
        ("explain", "Explanation", Text, Nullable, "What the policy is for, from a template."),
        ("origin", "Origin", Text, Always, "The file, and the policy, that sets it."),
    ]),
    ("baseline_cost", "What settings cost that are one change together.", &[], &[
        ("settings", "Settings", Texts, Always, "Identifiers of the settings."),
        ("what", "Change", Text, Always, "What changes."),
        ("outcome", "Outcome", Code, Always, "predicted, nothing or unknown."),
        ("because", "Why", Text, Nullable, "Why it costs nothing, or cannot be predicted."),
        ("experiment", "Experiment", Text, Nullable, "How to measure it."),
        ("predicted", "Predicted", Object("baseline_predicted"), Nullable, "The prediction."),
    ]),
    ("baseline_predicted", "A prediction from the recording.", &[], &[
        ("question", "Question", Object("baseline_question"), Always, "The changes for predict."),
        ("commands", "Commands", List("baseline_command"), Always, "By command, most added time first."),
        ("added", "Added", Object("estimate"), Always, "Added to all operations together, ns."),
        ("before_ns", "Today", Duration, Always, "Time of all operations today."),
        ("percent", "Change of the time", Object("estimate"), Always, "Change of that time, per cent."),
        ("scenarios", "Scenarios", Object("baseline_command"), Nullable, "Response times of a load run, with the client's work."),
        ("added_per_mib", "For each MiB", Object("estimate"), Nullable, "Added to Reads and Writes for each MiB that they move, ns; null where the recording moves too few."),
        ("cpu_s_per_gb", "CPU s per GB", Object("estimate"), Nullable, "Added CPU time of the server for each GB, s; null where the recording moves too little."),
        ("cpu_per_operation", "CPU each", Object("estimate"), Nullable, "Added CPU time of the server for each operation, ns."),
        ("users", "Users", Object("baseline_users"), Nullable, "Users that the server carries."),
        ("notes", "Notes", Texts, Always, "Other effects, a sentence each."),
        ("warnings", "Warnings", Texts, Always, "Where the prediction leaves what was measured."),
    ]),
    ("estimate", "A value with its 95 % interval.", &[], &[
        ("value", "Value", Number, Always, "The value."),
        ("low", "Low", Number, Always, "Begin of the interval."),
        ("high", "High", Number, Always, "End of the interval."),
    ]),
    ("baseline_question", "A question for predict.", &[], &[
        ("changes", "Changes", Texts, Always, "Changes as on its command line."),
        ("shares", "Shares", Texts, Always, "Shares whose operations it is about; empty for all."),
    ]),
    ("baseline_command", "The time of one command, or of all scenarios.", &[], &[
        ("name", "Command", Text, Always, "Its name."),
        ("n", "n", Count, Always, "Number of operations."),
        ("before_ns", "Today", Duration, Always, "Mean time today."),
        ("after_ns", "Predicted", Duration, Always, "Mean time with the change."),
        ("added", "Added", Object("estimate"), Always, "Added to each, ns."),
    ]),
    ("baseline_users", "Users that the server carries.", &[], &[
        ("before", "Today", Object("estimate"), Always, "Today."),
        ("after", "Predicted", Object("estimate"), Always, "With the change."),
        ("percent", "Change", Object("estimate"), Always, "Change, per cent."),
    ]),
    ("baseline_alternative", "A cheaper way to the same protection.", &[], &[
        ("instead_of", "Instead of", Texts, Always, "Settings that it replaces."),
        ("what", "Way", Text, Always, "What to do."),
        ("protection", "Protection", Text, Always, "What it protects, compared with them."),
        ("price", "Price in security", Text, Nullable, "What is lost; null where it protects as much."),
        ("needs", "Needs", Text, Always, "What it needs."),
        ("settings", "Settings", List("baseline_setting"), Always, "The settings that make it."),
        ("question", "Question", Object("baseline_question"), Nullable, "What it is predicted by."),
        ("saved", "Saved", Object("estimate"), Nullable, "Time of all recorded operations that it saves, ns."),
        ("saved_per_mib", "Saved for each MiB", Object("estimate"), Nullable, "Likewise for each MiB."),
        ("users_percent", "Users", Object("estimate"), Nullable, "Users then carried, as a change of today's in per cent."),
        ("unknown", "Not predicted", Text, Nullable, "Why the saving is not known."),
    ]),
    ("baseline_setting", "A setting.", &[], &[
        ("place", "Place", Text, Always, "Where it is set."),
        ("value", "Value", Text, Nullable, "Its value; null where it is removed."),
    ]),
    ("baseline_finding", "What is wrong with a setting.", &[], &[
        ("kind", "Kind", Code, Always, "costly, weaker, not-on, conflict, hidden or no-effect."),
        ("setting", "Setting", Code, Always, "Its identifier."),
        ("name", "Name", Text, Always, "As it is called where it is set."),
        ("sentence", "Finding", Text, Always, "What was found."),
        ("price", "Price in security", Text, Nullable, "What is lost in security, with or without it."),
        ("origins", "Origins", Texts, Always, "Where it was read."),
    ]),
    ("command_block", "Commands that belong together.", &[], &[
        ("title", "Title", Text, Always, "What they do."),
        ("apply", "Apply", Texts, Always, "Lines of a shell or of a file."),
        ("undo", "Undo", Texts, Always, "Lines that take them back."),
    ]),
    ("baseline_search", "The search for the setting to blame.", &[], &[
        ("sentences", "Now", Texts, Always, "What to do now."),
        ("commands", "Commands", List("command_block"), Always, "The settings to apply, with their undo."),
        ("tries_most", "Tries at most", Count, Always, "Tries that are still needed at most."),
        ("tries_expected", "Tries expected", Number, Always, "Expected number of tries."),
        ("found", "Found", Texts, Always, "The culprits."),
        ("is_done", "Done", Flag, Always, "Whether the search has ended."),
    ]),
];
