//! The result of the tally: sums by way, application, share, client and file, and the most at risk.

use super::data::{Durability, DurabilityFile, DurabilityGroup, OpenTally, Way, WayRow};
use super::{DurabilityTally, FILES_LISTED, KINDS, Levels, WAYS, WINDOW_NS, verdict};
use crate::rows::application::Application;

impl DurabilityTally {
    /// The result; none without an acknowledged write to a file.
    pub fn finish(mut self) -> Option<Durability> {
        let opens: Vec<_> = self.opens.drain().map(|(_, open)| open).collect();
        opens.into_iter().for_each(|open| self.end(open));
        let mut sums = std::mem::take(&mut self.sums);
        if sums.writes == 0 {
            return None;
        }
        let mut by_way = [OpenTally::default(); WAYS];
        let mut by_kind = [[OpenTally::default(); WAYS]; KINDS];
        let mut of_shares = vec![(OpenTally::default(), false, false); self.shares.names.len()];
        let mut of_clients = vec![(OpenTally::default(), false, false); self.clients.names.len()];
        let mut is_covered = vec![false; self.groups.len()];
        for (place, group) in self.groups.iter().enumerate() {
            if self.no_files.contains(&group.key) {
                is_covered[place] = true;
                continue;
            }
            let is_available = self.available.contains(&group.key);
            is_covered[place] = is_available;
            let mut of_group = OpenTally::default();
            for (kind, ways) in group.tallies.iter().enumerate() {
                for (way, tally) in ways.iter().enumerate().filter(|(_, tally)| tally.opens > 0) {
                    let (mut way, mut tally) = (way, *tally);
                    if is_available {
                        way = way.min(Way::Available as usize);
                        (tally.acknowledged_bytes, tally.unflushed_bytes) = (0, 0);
                    }
                    by_way[way].add(&tally);
                    by_kind[kind][way].add(&tally);
                    of_group.add(&tally);
                }
            }
            let add = |sum: Option<&mut (OpenTally, bool, bool)>| {
                if let Some((sum, counts, is_bound)) = sum {
                    sum.add(&of_group);
                    *counts |= group.was_counted && !is_available;
                    *is_bound |= group.was_counted && is_available;
                }
            };
            add(of_shares.get_mut(group.share as usize));
            add(of_clients.get_mut(group.client as usize));
        }
        sums.window_ns = WINDOW_NS;
        sums.until_flush = self.until_flush.distribution(false);
        sums.beyond_limits += self.shares.beyond + self.clients.beyond;
        sums.shares = groups(&mut self.shares, &of_shares);
        sums.clients = groups(&mut self.clients, &of_clients);
        self.total.finish();
        (sums.most_bytes, sums.most_at_ns) = self.total.most();
        (sums.series_start_ns, sums.series_bin_ns, sums.series_bytes) = self.total.series();
        sums.is_bound = of_shares.iter().any(|(_, _, is_bound)| *is_bound);
        if sums.is_bound {
            // What was counted of available shares only cannot have been at risk.
            let most = sums.shares.iter().map(|share| share.most_bytes);
            let most = most.fold(0u64, u64::saturating_add);
            sums.most_bytes = sums.most_bytes.min(most);
            sums.series_bytes.iter_mut().for_each(|bytes| *bytes = (*bytes).min(most));
            if most == 0 {
                (sums.most_at_ns, sums.is_bound) = (None, false);
                sums.series_bytes.clear();
            }
        }
        let mut handles = [(0u64, 0u64); KINDS];
        for (_, kinds) in self.handle_opens.iter().filter(|(key, _)| self.available.contains(*key))
        {
            for ((all, without), (opens, not_persistent)) in handles.iter_mut().zip(kinds) {
                *all += opens;
                *without += not_persistent;
            }
        }
        let (all, without) = handles.iter().fold((0, 0), |sum, of| (sum.0 + of.0, sum.1 + of.1));
        sums.available_opens = (all > 0).then_some(all);
        sums.not_persistent_opens = sums.available_opens.map(|_| without);
        sums.not_persistent = verdict::not_persistent(all, without);
        let ways = Way::ALL.into_iter().zip(by_way).filter(|(_, tally)| tally.opens > 0);
        sums.ways = ways.map(|(way, tally)| WayRow { way, tally }).collect();
        let kinds = Application::ALL.into_iter().zip(&by_kind).zip(&handles);
        sums.applications = kinds
            .filter_map(|((kind, ways), handles)| verdict::of_kind(kind, ways, *handles))
            .collect();
        let names = &self.shares.names;
        let mut files: Vec<_> = self
            .files
            .into_iter()
            .filter(|((group, _), _)| !is_covered.get(*group as usize).copied().unwrap_or(false))
            .map(|((group, path), file)| DurabilityFile {
                share: self
                    .groups
                    .get(group as usize)
                    .and_then(|group| names.get(group.share as usize)?.clone()),
                path,
                application: Application::ALL
                    .get(usize::from(file.application))
                    .map_or("other", |kind| kind.name()),
                way: file.way,
                tally: file.tally,
            })
            .collect();
        files.sort_by(|a, b| {
            let order = b.tally.unflushed_bytes.cmp(&a.tally.unflushed_bytes);
            order.then_with(|| (&a.share, &a.path).cmp(&(&b.share, &b.path)))
        });
        files.truncate(FILES_LISTED);
        sums.files = files;
        Some(sums)
    }
}

fn groups(levels: &mut Levels, sums: &[(OpenTally, bool, bool)]) -> Vec<DurabilityGroup> {
    let mut rows: Vec<_> = levels
        .levels
        .iter_mut()
        .zip(&levels.names)
        .zip(sums)
        .filter(|(_, (tally, ..))| tally.opens > 0)
        .map(|((level, name), (tally, counts, is_bound))| {
            level.finish();
            let (most_bytes, most_at_ns) = if *counts { level.most() } else { (0, None) };
            DurabilityGroup {
                name: name.clone(),
                tally: *tally,
                most_bytes,
                most_at_ns,
                is_bound: *counts && *is_bound,
            }
        })
        .collect();
    rows.sort_by(|a, b| {
        let order = b.most_bytes.cmp(&a.most_bytes);
        order
            .then_with(|| b.tally.written_bytes.cmp(&a.tally.written_bytes))
            .then_with(|| a.name.cmp(&b.name))
    });
    rows
}
