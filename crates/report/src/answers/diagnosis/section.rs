//! What makes it slow: the findings that explain enough, with their evidence.

use crate::answers::diagnosis::{card, context, reported, when};
use crate::answers::recording::meta::Meta;
use crate::document::{Block, Section};
use smbscope_analysis::explain::State;
use smbscope_analysis::summary::Report;

/// Findings that a page unfolds.
const UNFOLDED: usize = 3;

pub(crate) fn findings(report: &Report, meta: &Meta) -> Option<Section> {
    let diagnosis = meta.diagnosis.as_ref()?;
    let found = reported(diagnosis).into_iter().enumerate();
    let mut blocks: Vec<_> = found
        .map(|(place, found)| {
            let when = when(found, &diagnosis.whole, &meta.clock);
            Block::Finding(card(found, when, place < UNFOLDED))
        })
        .collect();
    blocks.extend(context(diagnosis, &meta.clock).into_iter().map(Block::Note));
    blocks.extend(diagnosis.notes.iter().map(|note| Block::Note(note.what.clone())));
    Some(Section {
        id: "findings",
        title: match diagnosis.state {
            State::Healthy => "What takes the time",
            _ => "What makes it slow",
        },
        help: match report.load {
            None => {
                "Most costly first, as a share of all time in which clients waited. Findings can overlap."
            }
            Some(_) => {
                "Most costly first, as a share of all time in which clients waited: of the whole run, with warm-up, cool-down and logons. Findings can overlap."
            }
        },
        blocks,
    })
}
