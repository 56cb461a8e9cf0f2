//! What if adapters were added: sentences for text and page.

use smbscope_plan::cores::added::{Added, AddedPlace, Way, WayKind};
use smbscope_plan::cores::prediction::chance::Interval;
use smbscope_plan::cores::topology::System;

use super::words;
use crate::document::{Block, Section};
use crate::value::format;

/// The heading in text.
pub(super) fn title(added: &Added) -> String {
    format!(
        "What if {} of {} were added",
        format::counted(added.adapters, "adapter"),
        gigabits(added.bits_per_second)
    )
}

/// All sentences.
pub(super) fn lines(added: &Added, system: System) -> Vec<String> {
    let all = added.bits_per_second.saturating_mul(u64::from(added.adapters));
    let mut lines = vec![match added.bits_per_second_today {
        Some(today) if today > 0 => format!(
            "They carry {}, in addition to the {} of today. Each is taken for a card of its own; ports of one card are on its node.",
            gigabits(all),
            gigabits(today)
        ),
        _ => format!(
            "They carry {}. Each is taken for a card of its own; ports of one card are on its node.",
            gigabits(all)
        ),
    }];
    lines.extend(added.places.iter().map(place));
    lines.extend(added.ways.iter().map(|one| way(one, added, system)));
    lines
}

/// The section of the page.
pub(super) fn section(added: &Added, system: System) -> Section {
    Section {
        id: "added",
        title: "What if adapters were added",
        help: "Where they would receive, and how clients would come to them. There are no commands for adapters that are not there.",
        blocks: std::iter::once(Block::Note(format!("{}.", title(added))))
            .chain(lines(added, system).into_iter().map(Block::Note))
            .collect(),
    }
}

fn gigabits(bits: u64) -> String {
    format!("{} Gbit/s", format::number(bits as f64 / 1e9))
}

fn place(place: &AddedPlace) -> String {
    let cpus: Vec<_> = place.queues.iter().map(|id| words::cpu(*id)).collect();
    let shared = if place.is_shared { "; another adapter has CPUs of these, too" } else { "" };
    format!(
        "{}: node {}, {} from base CPU {}: {}{shared}",
        place.name,
        place.node,
        format::counted(place.queues.len(), "core"),
        words::cpu(place.base),
        cpus.join(", ")
    )
}

fn busiest(interval: Option<&Interval>, adapters: u32) -> String {
    interval.map_or(String::new(), |interval| {
        format!(
            " By the recorded packets the busiest adapter has {:.0} % on average ({:.0} to {:.0} % in 9 of 10 cases; even shares are {:.0} %).",
            interval.percent_mean,
            interval.percent_p5,
            interval.percent_p95,
            100.0 / f64::from(adapters)
        )
    })
}

fn way(way: &Way, added: &Added, system: System) -> String {
    let client = gigabits(way.client_bits_per_second);
    let addresses = plural(way.addresses, "address", "addresses");
    let subnets = match system {
        System::Linux => {
            " On Linux each address needs a subnet, or a routing table and arp_ignore=1, of its own."
        }
        System::Windows => "",
    };
    let busiest = busiest(way.busiest.as_ref(), added.adapters);
    match way.way {
        WayKind::AddressEach => {
            let clients = added.clients.zip(way.clients_per_address);
            let clients = clients.map_or(String::new(), |(clients, each)| {
                format!(
                    " {}: {} for each address on average.",
                    format::counted(clients, "recorded client"),
                    format::number(each)
                )
            });
            format!(
                "An address each: {addresses}, and {} of one name in DNS (round robin): a client takes one.{clients}{busiest} One client gets at most {client}.{subnets}",
                plural(way.dns_entries, "entry", "entries")
            )
        }
        WayKind::Multichannel => format!(
            "SMB Multichannel: {addresses} that clients reach, and {} in DNS: a client learns the others from the server, opens four connections to each RSS-capable interface, and gets at most {client}, or what its own adapters carry.{subnets}",
            plural(way.dns_entries, "entry", "entries")
        ),
        WayKind::Team => format!(
            "A team: {addresses}, and {} in DNS. A hash gives each connection one member.{busiest} One connection gets at most {client}, and SMB Multichannel sees one interface.",
            plural(way.dns_entries, "entry", "entries")
        ),
    }
}

fn plural(count: u32, one: &str, more: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { more })
}
