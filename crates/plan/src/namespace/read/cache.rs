//! Referral caches of clients: `dfsutil cache referral` (before, `dfsutil /pktinfo`), and `/proc/fs/cifs/dfscache` of Linux
//! (`dfscache_proc_show` in fs/smb/client/dfs_cache.c).
//!
//! Sample: an output of `/pktinfo` as published by its users. Lines before it can name the client (`Client: NAME`), the
//! time (`Collected: 2026-11-26T18:00:00Z`, or seconds since 1970) and files that are open (`Open: PATH`); else the client
//! is the file's name.

use super::super::model::{CachedReferral, CachedTarget, ClientCache};
use super::fragments::after;
use super::{Context, Damage, Damaged};
use crate::input::lines::Lines;

/// Referrals and targets of one file.
const ENTRIES_MAX: usize = 1_000_000;

/// An entry of Linux begins so.
const LINUX: &str = "cache entry: path=";

const CLIENT: [&str; 4] = ["Client:", "Computer:", "ComputerName:", "Hostname:"];
const COLLECTED: [&str; 3] = ["Collected:", "Read at:", "Date:"];
const OPEN: [&str; 2] = ["Open:", "Open file:"];

/// The client that a line names.
pub(in crate::namespace) fn client_of(line: &str) -> Option<&str> {
    CLIENT.iter().find_map(|word| after(line.trim(), word)).map(str::trim)
}

/// Whether a line is empty, or one of those around the output of a client.
pub(in crate::namespace) fn is_around(line: &str) -> bool {
    let mut words = CLIENT.iter().chain(&COLLECTED).chain(&OPEN);
    line.trim().is_empty() || words.any(|word| after(line.trim(), word).is_some())
}

/// Caches of one file.
pub(super) struct Caches {
    caches: Vec<ClientCache>,
    name: String,
    entries: usize,
}

/// Whether a line belongs to such an output.
pub(super) fn starts(line: &str) -> bool {
    after(line, "Entry:").is_some_and(|rest| rest.trim_start().starts_with('\\'))
        || line.starts_with(LINUX)
        || CLIENT.iter().chain(&COLLECTED).chain(&OPEN).any(|word| after(line, word).is_some())
}

impl Caches {
    pub(super) fn new(context: &Context<'_>) -> Self {
        Self { caches: Vec::new(), name: context.stem().to_owned(), entries: 0 }
    }

    fn current(&mut self) -> &mut ClientCache {
        if self.caches.is_empty() {
            self.caches.push(ClientCache { client: self.name.clone(), ..ClientCache::default() });
        }
        let last = self.caches.len() - 1;
        &mut self.caches[last]
    }

    /// Reads an entry with its targets, or one of the lines around.
    pub(super) fn read(&mut self, lines: &mut Lines<'_>) -> Damaged<()> {
        let line = lines.peek().unwrap_or_default().trim();
        let value = |words: &[&str]| words.iter().find_map(|word| after(line, word)).map(str::trim);
        if let Some(client) = value(&CLIENT) {
            // A second name begins another client's cache.
            if self
                .caches
                .last()
                .is_none_or(|cache| !cache.referrals.is_empty() || cache.client != self.name)
            {
                self.caches
                    .push(ClientCache { client: client.to_owned(), ..ClientCache::default() });
            } else {
                client.clone_into(&mut self.current().client);
            }
        } else if let Some(time) = value(&COLLECTED) {
            let seconds = time_s(time).ok_or_else(|| {
                Damage::new(
                    lines.number(),
                    format!("{time:?} is not a time; expected 2026-11-26T18:00:00Z"),
                )
            })?;
            self.current().read_at_s = Some(seconds);
        } else if let Some(path) = value(&OPEN) {
            self.current().open_files.push(path.to_owned());
        } else if let Some(entry) = line.strip_prefix(LINUX) {
            lines.skip(1);
            self.linux_entry(entry, lines);
            return Ok(());
        } else {
            self.entry(lines)?;
            return Ok(());
        }
        lines.skip(1);
        Ok(())
    }

    /// `\domain\root,type=root,ttl=300,etime=1732790000,...,expired=no` and a line for each target.
    fn linux_entry(&mut self, entry: &str, lines: &mut Lines<'_>) {
        let (path, values) = entry.split_once(",type=").unwrap_or((entry, ""));
        let value = |name: &str| {
            values.split(',').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='))
        };
        let ttl = value("ttl").and_then(|ttl| ttl.parse::<u64>().ok());
        let end = value("etime").and_then(|end| end.parse::<i64>().ok());
        let left = end.zip(self.current().read_at_s).map(|(end, now)| end.saturating_sub(now));
        let left = left.map(|left| u64::try_from(left).unwrap_or(0));
        let mut referral = CachedReferral {
            entry: path.trim_start_matches('\\').to_owned(),
            // Without a time of reading, the whole TTL may be left.
            expires_s: match value("expired") {
                Some("yes") => Some(0),
                _ => left.or(ttl),
            },
            ..CachedReferral::default()
        };
        while let Some(line) = lines.peek().map(str::trim).filter(|line| line.starts_with('\\')) {
            let (path, mark) = line.split_once(" (").unwrap_or((line, ""));
            let path = path.trim_start_matches('\\');
            let (server, share) = path.split_once('\\').unwrap_or((path, ""));
            self.entries += 1;
            if self.entries <= ENTRIES_MAX {
                referral.targets.push(CachedTarget {
                    server: server.to_owned(),
                    share: share.to_owned(),
                    active: mark.starts_with("target hint"),
                    ..CachedTarget::default()
                });
            }
            lines.skip(1);
        }
        self.current().referrals.push(referral);
    }

    fn entry(&mut self, lines: &mut Lines<'_>) -> Damaged<()> {
        let mut referral = CachedReferral::default();
        let start = lines.number();
        while let Some(line) = lines.peek() {
            let text = line.trim();
            if let Some(entry) = after(text, "Entry:") {
                if lines.number() > start {
                    break;
                }
                referral.entry = path(entry);
            } else if let Some(entry) = after(text, "ShortEntry:") {
                referral.short_entry = Some(path(entry));
            } else if let Some(rest) = after(text, "Expires in") {
                let number = rest.split_whitespace().next().unwrap_or_default();
                referral.expires_s = Some(number.parse().map_err(|_| {
                    Damage::new(lines.number(), format!("{text:?} has no number of seconds"))
                })?);
            } else if let Some(rest) = after(text, "UseCount:") {
                referral.use_count = rest.split_whitespace().next().and_then(|n| n.parse().ok());
                referral.kind = rest.split_once("Type:").and_then(|(_, kind)| {
                    let digits = kind.trim_start().trim_start_matches("0x");
                    let end = digits.find(|c: char| !c.is_ascii_hexdigit()).unwrap_or(digits.len());
                    u32::from_str_radix(digits.get(..end)?, 16).ok()
                });
            } else if let Some(target) = target(text, lines.number())? {
                self.entries += 1;
                if self.entries > ENTRIES_MAX {
                    return Err(Damage::new(
                        lines.number(),
                        format!("more than {ENTRIES_MAX} targets"),
                    ));
                }
                referral.targets.push(target);
            } else {
                break;
            }
            lines.skip(1);
        }
        self.current().referrals.push(referral);
        Ok(())
    }

    /// Adds the caches to the reading; whether there were any.
    pub(super) fn finish(self, context: &mut Context<'_>) -> bool {
        let found = !self.caches.is_empty();
        context.reading.caches.extend(self.caches);
        found
    }
}

fn path(entry: &str) -> String {
    let entry = entry.trim();
    entry.strip_prefix('\\').unwrap_or(entry).to_owned()
}

/// `0:[\SERVER\share] AccessStatus: 0xc00000be ( ACTIVE TARGETSET )`.
fn target(text: &str, line: usize) -> Damaged<Option<CachedTarget>> {
    let Some((number, rest)) = text.split_once(":[") else { return Ok(None) };
    if number.is_empty() || !number.bytes().all(|byte| byte.is_ascii_digit()) {
        return Ok(None);
    }
    let Some((path, rest)) = rest.rsplit_once(']') else {
        return Err(Damage::new(line, format!("the target {text:?} is cut")));
    };
    let path = path.trim_start_matches('\\');
    let (server, share) = path.split_once('\\').unwrap_or((path, ""));
    let access_status = match rest.split_once("AccessStatus:") {
        Some((_, status)) => {
            let word = status.split_whitespace().next().unwrap_or_default();
            let value = match word.strip_prefix("0x").or_else(|| word.strip_prefix("0X")) {
                Some(hex) => u32::from_str_radix(hex, 16).ok(),
                None => word.parse().ok(),
            };
            Some(value.ok_or_else(|| {
                Damage::new(line, format!("the access status {word:?} is not a number"))
            })?)
        }
        None => None,
    };
    let marks = rest.rsplit_once('(').map_or("", |(_, marks)| marks);
    let has = |mark: &str| marks.split_whitespace().any(|word| word.trim_end_matches(')') == mark);
    Ok(Some(CachedTarget {
        server: server.to_owned(),
        share: share.to_owned(),
        access_status,
        active: has("ACTIVE"),
        target_set: has("TARGETSET"),
    }))
}

/// Seconds since 1970 of a number, or of a time of ISO 8601 with `Z` or an offset.
fn time_s(text: &str) -> Option<i64> {
    if let Ok(seconds) = text.parse() {
        return Some(seconds);
    }
    let number = |from: usize, length: usize| -> Option<i64> {
        let digits = text.get(from..from + length)?;
        digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().ok())?
    };
    let (year, month, day) = (number(0, 4)?, number(5, 2)?, number(8, 2)?);
    let (hour, minute, second) = (number(11, 2)?, number(14, 2)?, number(17, 2).unwrap_or(0));
    if !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    // Days since 1970 of the proleptic Gregorian calendar, with years that begin in March.
    let year = if month <= 2 { year - 1 } else { year };
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let era = year.div_euclid(400);
    let in_era = year.rem_euclid(400);
    let days = era * 146_097 + in_era * 365 + in_era / 4 - in_era / 100 + of_year - 719_468;
    let rest = text.get(16..)?;
    let zone = rest.find(['+', '-', 'Z']).and_then(|at| rest.get(at..)).unwrap_or("Z");
    let offset = match zone.as_bytes() {
        [sign @ (b'+' | b'-'), ..] => {
            let digits: String = zone.chars().filter(char::is_ascii_digit).collect();
            let hours: i64 = digits.get(..2)?.parse().ok()?;
            let minutes: i64 = digits.get(2..4).unwrap_or("0").parse().ok()?;
            (hours * 3600 + minutes * 60) * if *sign == b'-' { -1 } else { 1 }
        }
        _ => 0,
    };
    Some(days * 86_400 + hour * 3600 + minute * 60 + second - offset)
}

#[cfg(test)]
mod tests {
    use super::time_s;

    /// As Linux prints it; an expired entry is still in use by its mount.
    #[test]
    fn the_cache_of_linux_is_read() {
        let text = "Client: LX1\nCollected: 1732789900\nDFS cache\n---------\n\
            cache entry: path=\\ad.a.b\\Public,type=root,ttl=300,etime=1732790000,hdr_flags=0x1,ref_flags=0x3,interlink=no,\
            path_consumed=26,expired=no\n  \\OLD1\\Public (target hint)\n  \\old2.ad.a.b\\Public\n\
            cache entry: path=\\ad.a.b\\Public\\x,type=link,ttl=1800,etime=1732780000,expired=yes\n  \\FS1\\x\n";
        let reading =
            super::super::read(&[("lx.txt".to_owned(), text.as_bytes().to_vec())]).unwrap();
        let [cache] = &reading.caches[..] else { panic!("{:?}", reading.caches) };
        assert_eq!((cache.client.as_str(), cache.referrals.len()), ("LX1", 2));
        let root = &cache.referrals[0];
        assert_eq!((root.entry.as_str(), root.expires_s), ("ad.a.b\\Public", Some(100)));
        assert_eq!(
            (root.targets[0].active, root.targets[1].server.as_str()),
            (true, "old2.ad.a.b")
        );
        assert_eq!((cache.referrals[1].expires_s, cache.referrals[1].use_count), (Some(0), None));
    }

    #[test]
    fn times_are_read_with_their_zone() {
        assert_eq!(time_s("1970-01-01T00:00:00Z"), Some(0));
        assert_eq!(time_s("2026-11-26T18:08:57Z"), Some(1_795_716_537));
        assert_eq!(time_s("2026-11-26T19:08:57+01:00"), Some(1_795_716_537));
        assert_eq!(time_s("2024-02-29 12:00"), Some(1_709_208_000));
        assert_eq!(time_s("1795716537"), Some(1_795_716_537));
        assert_eq!(time_s("tomorrow"), None);
        assert_eq!(time_s("2026-13-01T00:00:00Z"), None);
    }
}
