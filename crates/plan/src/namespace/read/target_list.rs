//! The list of targets of a v2 object (`msDFS-TargetListv2`): XML in UTF-16.
//!
//! \[MS-DFSNM\] appendix C; its shape as a live forest of Windows Server 2025 has it: `state` of online and offline,
//! `priorityClass` of globalHigh, siteCostHigh, siteCostNormal, siteCostLow and globalLow, `priorityRank` of 0 to 31.

use quick_xml::events::Event;
use quick_xml::reader::Reader;

use super::super::form::{STATE_DETAIL, Stateful, priority_class, split_target};
use super::super::model::Target;
use super::push_target;
use crate::input::text::{decode, repair_ampersands};

/// The XML namespace of the list.
pub(crate) const NAMESPACE: &str = "http://schemas.microsoft.com/dfs/2007/03";

/// Reads a list; an error says what is damaged in it.
pub(super) fn read(bytes: &[u8]) -> Result<Vec<Target>, String> {
    let text = decode(bytes).text;
    let repaired = repair_ampersands(&text);
    let text = repaired.as_deref().unwrap_or(&text);
    let mut reader = Reader::from_str(text);
    reader.config_mut().expand_empty_elements = true;
    let mut targets = Vec::new();
    let mut current: Option<(Target, String)> = None;
    let mut announced = None;
    let mut is_closed = false;
    loop {
        let event =
            reader.read_event().map_err(|error| format!("damaged list of targets: {error}"))?;
        match event {
            Event::Start(start) if start.name().as_ref().eq_ignore_ascii_case("targets") => {
                for attribute in start.attributes().flatten() {
                    if attribute.key.as_ref().eq_ignore_ascii_case("targetCount") {
                        announced = attribute.value.trim().parse::<usize>().ok();
                    }
                }
            }
            Event::Start(start) if start.name().as_ref().eq_ignore_ascii_case("target") => {
                current = Some((target(&start)?, String::new()));
            }
            Event::Text(piece) => {
                if let Some((_, path)) = &mut current {
                    path.push_str(&piece.into_inner());
                }
            }
            Event::GeneralRef(reference) => {
                if let Some((_, path)) = &mut current {
                    let whole = format!("&{};", reference.into_inner());
                    let value = quick_xml::escape::unescape(&whole)
                        .map_err(|error| format!("damaged list of targets: {error}"))?;
                    path.push_str(&value);
                }
            }
            Event::End(end) if end.name().as_ref().eq_ignore_ascii_case("target") => {
                let Some((mut target, path)) = current.take() else { continue };
                let (server, share) = split_target(&path)
                    .ok_or_else(|| format!("the target {path:?} is not \\\\server\\share"))?;
                target.server = server.to_owned();
                target.share = share.to_owned();
                push_target(&mut targets, target)?;
            }
            Event::End(end) if end.name().as_ref().eq_ignore_ascii_case("targets") => {
                is_closed = true;
            }
            Event::Eof => break,
            _ => {}
        }
    }
    if !is_closed {
        return Err("the list of targets ends before its last element: the value is cut".to_owned());
    }
    match announced {
        Some(announced) if announced != targets.len() => Err(format!(
            "the list of targets announces {announced} and has {}: the value is damaged",
            targets.len()
        )),
        _ => Ok(targets),
    }
}

fn target(start: &quick_xml::events::BytesStart<'_>) -> Result<Target, String> {
    let mut target = Target::default();
    for attribute in start.attributes() {
        let attribute = attribute.map_err(|error| format!("damaged list of targets: {error}"))?;
        let value = quick_xml::escape::unescape(&attribute.value)
            .map_err(|error| format!("damaged list of targets: {error}"))?;
        let name = attribute.key.as_ref();
        match name.to_ascii_lowercase().as_str() {
            "state" => {
                let (state, detail) = Stateful::Target.state_of_text(&value);
                target.state = state;
                if let Some(detail) = detail {
                    target.other.insert(STATE_DETAIL.to_owned(), detail);
                }
                continue;
            }
            "priorityclass" => target.priority_class = priority_class(&value),
            "priorityrank" => {
                target.priority_rank = value.trim().parse().ok().filter(|rank| *rank <= 31);
                if target.priority_rank.is_some() {
                    continue;
                }
            }
            _ => {}
        }
        if !(name.eq_ignore_ascii_case("priorityClass") && target.priority_class.is_some()) {
            target.other.insert(format!("v2:{name}"), value.into_owned());
        }
    }
    Ok(target)
}
