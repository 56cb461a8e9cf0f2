//! `Get-NetAdapterRss`: receive-side scaling of an adapter on Windows.
//!
//! Class `MSFT_NetAdapterRssSettingData`, and the list that its formatter prints. Numbers of profiles are those of the
//! keyword `*RSSProfile` (Windows driver documentation, "Standardized INF Keywords for RSS").

use serde::{Deserialize, Serialize};

use super::objects::processor;
use super::{CPUS_MAX, TABLE_MAX};
use crate::input::powershell::Object;

/// Receive-side scaling of an adapter.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AdapterRss {
    pub name: String,
    pub description: Option<String>,
    pub is_enabled: Option<bool>,
    pub queues: Option<u32>,
    pub profile: Option<String>,
    /// Processors as (group, number).
    pub base: Option<(u32, u32)>,
    pub last: Option<(u32, u32)>,
    pub processors_max: Option<u32>,
    /// The node that is set.
    pub node: Option<u32>,
    /// Processors that may be used, in order of preference.
    pub processors: Vec<RssProcessor>,
    /// The processor of each entry.
    pub table: Vec<(u32, u32)>,
}

/// A processor that RSS may use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RssProcessor {
    pub group: u32,
    pub number: u32,
    /// Distance between its node and the adapter; 0 is the same node, 32767 is unknown or far.
    pub distance: u32,
}

/// `None` if the object is another one; an error if a list of processors is damaged.
pub(super) fn read(object: &Object) -> Option<Result<AdapterRss, String>> {
    let is_rss = object.has("numberofreceivequeues")
        || object.has("rssprocessorarray")
        || object.has("indirectiontable");
    if !is_rss || !object.has("name") {
        return None;
    }
    let name = object.text(&["name"]).unwrap_or_default();
    let list = |property: &str, limit: usize| {
        processors(object, property, limit)
            .ok_or_else(|| format!("`{property}` of `{name}` is not a list of processors"))
    };
    let (processors, table) =
        match (list("rssprocessorarray", CPUS_MAX), list("indirectiontable", TABLE_MAX)) {
            (Ok(processors), Ok(table)) => (processors, table),
            (Err(error), _) | (_, Err(error)) => return Some(Err(error)),
        };
    let pair = |text: &str, group: &str, number: &str| {
        object
            .text(&[text])
            .and_then(|pair| processor(pair.split_whitespace().next()?))
            .or_else(|| Some((object.number(&[group])?, object.number(&[number])?)))
    };
    Some(Ok(AdapterRss {
        description: object.text(&["interfacedescription"]),
        is_enabled: object.flag(&["enabled"]),
        queues: object.number(&["numberofreceivequeues"]),
        profile: object.text(&["profile"]).map(profile),
        base: pair("baseprocessor", "baseprocessorgroup", "baseprocessornumber"),
        last: pair("maxprocessor", "maxprocessorgroup", "maxprocessornumber"),
        processors_max: object.number(&["maxprocessors"]),
        // 65535: any node.
        node: object.number(&["numanode"]).filter(|node| *node != 65_535),
        processors,
        table: table.iter().map(|processor| (processor.group, processor.number)).collect(),
        name,
    }))
}

/// The profile's name; JSON has its number.
fn profile(text: String) -> String {
    let name = match text.as_str() {
        "1" | "ClosestProcessor" => "Closest",
        "2" | "ClosestProcessorStatic" => "ClosestStatic",
        "3" | "NUMAScaling" => "NUMA",
        "4" | "NUMAScalingStatic" => "NUMAStatic",
        "5" | "ConservativeScaling" => "Conservative",
        "6" | "BalancedScaling" => "Balanced",
        _ => return text,
    };
    name.to_owned()
}

fn processors(object: &Object, property: &str, limit: usize) -> Option<Vec<RssProcessor>> {
    let members = object.members(property, CPUS_MAX * 4);
    if !members.is_empty() {
        let member = |object: &Object| {
            Some(RssProcessor {
                group: object.number(&["processorgroup", "group"])?,
                number: object.number(&["processornumber", "number"])?,
                distance: object
                    .number(&["preferenceindex", "numadistance", "distance"])
                    .unwrap_or(0),
            })
        };
        return members.iter().take(limit).map(member).collect();
    }
    // `0:0/0  0:2/0 ...`: group, number, distance.
    let text = object.text(&[property]).unwrap_or_default();
    let words = text.split_whitespace().take(limit.saturating_add(1)).map(|word| {
        let (pair, distance) = word.split_once('/').unwrap_or((word, "0"));
        let (group, number) = processor(pair)?;
        Some(RssProcessor { group, number, distance: distance.parse().ok()? })
    });
    let processors: Vec<RssProcessor> = words.collect::<Option<_>>()?;
    (processors.len() <= limit).then_some(processors)
}
