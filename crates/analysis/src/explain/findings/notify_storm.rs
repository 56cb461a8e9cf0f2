//! A change in a folder that many clients watch is announced to all of them at once (CHANGE_NOTIFY, MS-SMB2 section 2.2.35),
//! and all list the folder again: one change costs as many listings as there are clients. With access-based
//! enumeration each listing checks the permissions of each entry.

use std::collections::BTreeSet;

use hashbrown::HashMap;
use smbscope_findings::{Actor, Confidence, KindInfo};

use super::super::attribution::Attribution;
use super::super::candidate::Candidate;
use super::super::data::FindingKind;
use super::super::detector::{Context, Detector};
use super::super::operation::{Act, Operation, TextId};

pub(crate) const KIND: KindInfo = KindInfo::new("notify-storm", "change notifications cause listings")
    .with_actor(Actor::Server)
    .with_remedies(&[
    (
        "server",
        "keep the number of entries that all users see at the root small, and access-based enumeration off where it is not needed \
         (Set-SmbShare -FolderEnumerationMode Unrestricted; Samba hide unreadable = no)",
    ),
    (
        "client",
        "Explorer watches what it shows: HKCU\\Software\\Microsoft\\Windows\\CurrentVersion\\Policies\\Explorer, NoRemoteChangeNotify = 1 and \
         NoRemoteRecursiveEvents = 1",
    ),
    ("Samba", "change notify = no for shares whose users do not need it"),
]);

/// A burst: at least this many notifications within a second, to at least this many clients.
const NOTIFICATIONS_MIN: usize = 5;
const CLIENTS_MIN: usize = 5;
const TOGETHER_NS: i64 = 1_000_000_000;
/// Listings follow within this time, ns, and are at least this share of the notifications.
const AFTER_NS: i64 = 3_000_000_000;
const LISTINGS_SHARE: f64 = 0.5;
/// Fewest bursts: one may be chance.
const BURSTS_MIN: usize = 2;
/// Most notifications that are remembered.
const NOTIFICATIONS_MAX: usize = 65_536;

/// Findings that only say that these listings were slow, or were many.
const LISTINGS: [FindingKind; 4] = [
    FindingKind::SlowFilesystem,
    FindingKind::ServerQueueing,
    FindingKind::Stragglers,
    FindingKind::RepeatedListings,
];

/// Listings of one folder in one second.
#[derive(Default)]
struct Listings {
    n: u64,
    attribution: Attribution,
}

#[derive(Default)]
pub(crate) struct NotifyStorm {
    /// When, to whom.
    notified: Vec<(i64, Option<TextId>)>,
    /// By second.
    listings: HashMap<i64, Listings, foldhash::fast::RandomState>,
}

impl Detector for NotifyStorm {
    fn see(&mut self, op: &Operation) {
        let is_notify = op.columns.command.get(op.row).is_some_and(|name| name == "ChangeNotify");
        if is_notify && op.status == Some(0) {
            if let Some(at) = op.columns.response_start.get(op.row)
                && self.notified.len() < NOTIFICATIONS_MAX
            {
                self.notified.push((at, op.client));
            }
        } else if op.act == Act::List && !self.notified.is_empty() {
            let Some(start) = op.start else { return };
            let listings = self.listings.entry(start.div_euclid(TOGETHER_NS)).or_insert_with(|| {
                Listings { n: 0, attribution: Attribution::with_few_names() }
            });
            listings.n += 1;
            listings.attribution.add(op, op.busy_ns);
        }
    }

    fn finish(mut self, _: &mut Context) -> Vec<Candidate> {
        self.notified.sort_unstable();
        let mut bursts = 0;
        let (mut notified, mut listed) = (0, 0);
        let mut attribution = Attribution::with_few_names();
        let mut place = 0;
        while let Some(&(first, _)) = self.notified.get(place) {
            let rest = self.notified.get(place..).unwrap_or_default();
            let together: Vec<_> =
                rest.iter().take_while(|(at, _)| at - first <= TOGETHER_NS).collect();
            place += together.len();
            let clients: BTreeSet<_> = together.iter().map(|(_, client)| *client).collect();
            if together.len() < NOTIFICATIONS_MIN || clients.len() < CLIENTS_MIN {
                continue;
            }
            let seconds = first.div_euclid(TOGETHER_NS)..=(first + AFTER_NS).div_euclid(TOGETHER_NS);
            let after: Vec<_> =
                seconds.filter_map(|second| self.listings.remove(&second)).collect();
            let n: u64 = after.iter().map(|one| one.n).sum();
            if (n as f64) < LISTINGS_SHARE * together.len() as f64 {
                continue;
            }
            bursts += 1;
            notified += together.len();
            listed += n;
            after.into_iter().for_each(|one| attribution.merge(one.attribution));
        }
        if bursts < BURSTS_MIN {
            return Vec::new();
        }
        let candidate = Candidate::new(
            FindingKind::NotifyStorm,
            format!(
                "A change is announced to all clients at once, and all list the folder again: {bursts} bursts of {} notifications, and {} \
                 listing requests after each",
                notified / bursts,
                listed / bursts as u64
            ),
            attribution,
            Confidence::Likely,
            "the listings follow within three seconds of the notifications, again and again, from as many clients",
        );
        let mut candidate = candidate.of_events().with_figures([
            ("bursts", bursts as f64, "", "bursts: {}"),
            ("notifications", notified as f64, "", "notifications: {}"),
            ("listings", listed as f64, "", "listing requests after them: {}"),
        ]);
        candidate.explains = (&LISTINGS, candidate.savings.numbers());
        vec![candidate]
    }
}
