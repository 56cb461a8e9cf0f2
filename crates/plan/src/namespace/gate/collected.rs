//! Caches of many clients in one file, as the printed script collects them.
//!
//! Owns the script and the wrapper that it writes around each client's outputs, and what counts as an answer; what is
//! inside is read by the reader of caches that the caller gives. A file without the wrapper is the output of one client,
//! or of several with a line `Client: NAME` before each.
//!
//! ```text
//! smbscope-client: PC17 2026-11-26T18:00:00Z
//! smbscope-address: 10.0.0.17
//! smbscope-section: referrals
//! ...the output of `dfsutil cache referral`, or /proc/version and /proc/fs/cifs/dfscache...
//! smbscope-exit: 0
//! smbscope-section: opens
//! \\file2.contoso.com\Public    2
//! smbscope-failed: why there is nothing of this client
//! smbscope-server: FILE1 2026-11-26T18:00:00Z
//! smbscope-section: opens
//! 10.0.0.17    C:\DFSRoots\Public\a.txt
//! ```

use std::collections::BTreeMap;

use super::Unread;
use crate::namespace::model::ClientCache;
use crate::namespace::names::{Servers, normal};
use crate::namespace::read::cache::{client_of, is_around};

/// Collects the caches of clients, and what servers have open for them; it changes nothing.
pub const SCRIPT: &str = include_str!("collect.ps1");

/// Clients and servers in one file, open files of one client, and lines outside any section.
const BLOCKS_MAX: usize = 200_000;
const OPENS_MAX: usize = 1_000;
const ADDRESSES_MAX: usize = 64;

/// What a file of the script holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Collected {
    pub caches: Vec<ClientCache>,
    /// Open files of clients that were not collected, as servers report them; they have no lists.
    pub uncollected: Vec<ClientCache>,
    /// Names of clients by their addresses.
    pub aliases: BTreeMap<String, String>,
    /// Clients and servers whose answer says nothing, and why.
    pub unread: Vec<Unread>,
    /// Lines that belong to nothing.
    pub unknown_lines: u64,
    /// Clients and servers that were left out because there are too many.
    pub left_out: u64,
}

/// Whether a text is a file of the script.
fn is_collected(text: &str) -> bool {
    let mut lines = text.lines().map(|line| line.trim_start_matches('\u{feff}'));
    lines.by_ref().take(20).any(|line| {
        heading(line, "smbscope-client").is_some() || heading(line, "smbscope-server").is_some()
    })
}

fn heading<'a>(line: &'a str, name: &str) -> Option<&'a str> {
    line.strip_prefix(name)?.strip_prefix(':').map(str::trim)
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Section {
    #[default]
    None,
    Referrals,
    Opens,
}

#[derive(Default)]
struct Block<'a> {
    is_server: bool,
    exit: Option<&'a str>,
    name: &'a str,
    at_s: Option<i64>,
    addresses: Vec<&'a str>,
    referrals: Vec<&'a str>,
    opens: Vec<&'a str>,
    failed: Option<&'a str>,
    /// `/proc/version` of Linux.
    kernel: Option<&'a str>,
}

/// Kernels of the series 6.1 whose cifs does not go to another target when a server is gone.
const WITHOUT_FAILOVER: std::ops::RangeInclusive<u32> = 54..=134;

/// Whether `/proc/version` names such a kernel. Debian has the number at the end: `6.1.0-18-amd64 ... Debian 6.1.76-1`.
fn is_without_failover(version: &str) -> bool {
    // Words in parentheses are of the builder and the compiler.
    let outside = version.split('(').enumerate().filter_map(|(place, part)| match place {
        0 => Some(part),
        _ => part.rsplit_once(')').map(|(_, rest)| rest),
    });
    let words = outside.flat_map(str::split_whitespace);
    let patches = words.filter_map(|word| {
        let rest = word.strip_prefix("6.1.")?;
        rest.split(|c: char| !c.is_ascii_digit()).next()?.parse::<u32>().ok()
    });
    patches.max().is_some_and(|patch| WITHOUT_FAILOVER.contains(&patch))
}

/// Reads a file of the script, or outputs as they are. `name` is the client of an output that does not name one; `cache`
/// reads the output of one client: its entries.
///
/// A client whose output was not understood is among the unread ones: an empty cache would mean that it is ready.
pub fn read(
    text: &str,
    name: &str,
    cache: impl Fn(&str) -> Result<ClientCache, String>,
) -> Collected {
    let mut collected = Collected::default();
    let blocks = match is_collected(text) {
        true => blocks(text, &mut collected),
        false => outputs(text, name, &mut collected),
    };
    let unread = |block: &Block<'_>, why: String| Unread {
        name: block.name.to_owned(),
        why,
        is_server: block.is_server,
    };
    for block in blocks.iter().filter(|block| !block.is_server) {
        for address in &block.addresses {
            collected.aliases.insert(normal(address), block.name.to_owned());
        }
        if let Some(why) = block.failed {
            collected.unread.push(unread(block, why.to_owned()));
            continue;
        }
        let mut one = match referrals(block, &cache) {
            Ok(one) => one,
            Err(why) => {
                collected.unread.push(unread(block, why));
                continue;
            }
        };
        one.client = block.name.to_owned();
        one.read_at_s = block.at_s.or(one.read_at_s);
        one.is_without_failover = block.kernel.is_some_and(is_without_failover);
        one.open_files.extend(opens(block, &one));
        collected.caches.push(one);
    }
    let places = collected.caches.iter().enumerate().map(|(at, one)| (normal(&one.client), at));
    let places: BTreeMap<_, _> = places.collect();
    let mut others: BTreeMap<String, ClientCache> = BTreeMap::new();
    for block in blocks.iter().filter(|block| block.is_server) {
        if let Some(why) = block.failed {
            collected.unread.push(unread(block, why.to_owned()));
        }
        for line in &block.opens {
            let Some((client, file)) = line.split_once('\t') else { continue };
            let address = normal(client);
            let client = collected.aliases.get(&address).cloned().unwrap_or(address);
            let name = normal(&client);
            let of = match places.get(&name).and_then(|at| collected.caches.get_mut(*at)) {
                Some(of) => of,
                None if others.len() >= BLOCKS_MAX && !others.contains_key(&name) => continue,
                None => others.entry(name).or_insert_with(|| ClientCache {
                    client,
                    read_at_s: block.at_s,
                    ..ClientCache::default()
                }),
            };
            if of.open_files.len() < OPENS_MAX {
                of.open_files.push(format!("{}: {}", block.name, file.trim()));
            }
        }
    }
    collected.uncollected = others.into_values().collect();
    if collected.left_out > 0 {
        let why = format!("more than {BLOCKS_MAX} clients and servers in one file");
        let name = format!("{} others", collected.left_out);
        collected.unread.push(Unread { name, why, is_server: false });
    }
    collected
}

/// `/proc/version` of Linux.
const KERNEL: &str = "Linux version ";

/// Outputs of clients without the script's wrapper.
fn outputs<'a>(text: &'a str, name: &'a str, collected: &mut Collected) -> Vec<Block<'a>> {
    let mut blocks = vec![Block { name, ..Block::default() }];
    let mut is_begun = false;
    for line in text.lines() {
        let line = line.trim_start_matches('\u{feff}').trim_end();
        let client = client_of(line);
        if client.is_some() && is_begun {
            if blocks.len() >= BLOCKS_MAX {
                collected.left_out += 1;
                return blocks;
            }
            blocks.push(Block::default());
        }
        if let Some(block) = blocks.last_mut()
            && line.starts_with(KERNEL)
        {
            block.kernel = Some(line);
            continue;
        }
        is_begun |= client.is_some() || line.trim_start().starts_with("Entry:");
        if let Some(block) = blocks.last_mut() {
            block.name = client.unwrap_or(block.name);
            block.referrals.push(line);
        }
    }
    blocks
}

fn blocks<'a>(text: &'a str, collected: &mut Collected) -> Vec<Block<'a>> {
    let mut blocks: Vec<Block<'_>> = Vec::new();
    let mut section = Section::None;
    let mut is_left_out = false;
    for line in text.lines() {
        let line = line.trim_start_matches('\u{feff}').trim_end();
        let begins = [("smbscope-client", false), ("smbscope-server", true)];
        let begun =
            begins.iter().find_map(|(name, is_server)| Some((heading(line, name)?, *is_server)));
        if let Some((rest, is_server)) = begun {
            section = Section::None;
            is_left_out = blocks.len() >= BLOCKS_MAX;
            if is_left_out {
                collected.left_out += 1;
                continue;
            }
            let (name, time) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
            blocks.push(Block { is_server, name, at_s: seconds(time.trim()), ..Block::default() });
            continue;
        }
        let block = blocks.last_mut().filter(|_| !is_left_out);
        let Some(block) = block else {
            collected.unknown_lines += u64::from(!line.trim().is_empty() && !is_left_out);
            continue;
        };
        if let Some(address) = heading(line, "smbscope-address") {
            if block.addresses.len() < ADDRESSES_MAX {
                block.addresses.push(address);
            }
        } else if let Some(name) = heading(line, "smbscope-section") {
            section = match name {
                "referrals" => Section::Referrals,
                "opens" => Section::Opens,
                _ => Section::None,
            };
        } else if let Some(why) = heading(line, "smbscope-failed") {
            block.failed = Some(why);
        } else if let Some(code) = heading(line, "smbscope-exit") {
            block.exit = Some(code);
        } else if line.starts_with(KERNEL) {
            block.kernel = Some(line);
        } else {
            match section {
                Section::Referrals => block.referrals.push(line),
                Section::Opens if !line.trim().is_empty() => block.opens.push(line),
                Section::Opens => {}
                Section::None => collected.unknown_lines += u64::from(!line.trim().is_empty()),
            }
        }
    }
    blocks
}

/// The most lines of an answer that says that there is nothing: `0 entries...` with what dfsutil prints around.
const NOTHING_LINES_MAX: usize = 6;

/// The entries of a client, or why there are none although it may have some.
fn referrals(
    block: &Block<'_>,
    cache: impl Fn(&str) -> Result<ClientCache, String>,
) -> Result<ClientCache, String> {
    if let Some(code) = block.exit.filter(|code| *code != "0") {
        return Err(format!("its program ended with code {code}"));
    }
    let lines = &block.referrals;
    let written: Vec<&str> =
        lines.iter().map(|line| line.trim()).filter(|line| !is_around(line)).collect();
    if written.is_empty() {
        return Err("nothing was printed".to_owned());
    }
    let text = lines.join("\n");
    if is_nothing(&written) {
        return Ok(cache(&text).unwrap_or_default());
    }
    let first: String = written.first().map_or("", |line| line).chars().take(100).collect();
    let one = cache(&text).map_err(|why| format!("{why}: {first:?}"))?;
    if one.referrals.is_empty() {
        Err(format!("none of {} lines is an entry", written.len()))
    } else {
        Ok(one)
    }
}

/// Whether an answer says that there is no entry: `0 entries...` in any language, or the empty table of Linux.
fn is_nothing(written: &[&str]) -> bool {
    let is_count = |line: &&&str| {
        let mut words = line.split_whitespace();
        words.next() == Some("0")
            && words.next().is_some_and(|word| word.starts_with(char::is_alphabetic))
            && words.count() <= 1
    };
    let is_table = matches!(written, [title, rule] if *title == "DFS cache" && rule.bytes().all(|byte| byte == b'-'));
    is_table
        || written.len() <= NOTHING_LINES_MAX
            && written.iter().filter(is_count).count() == 1
            && !written.iter().any(|line| line.contains("0x"))
}

/// Connections with open files to servers that the client has from the namespace.
fn opens(block: &Block<'_>, cache: &ClientCache) -> Vec<String> {
    let targets = cache.referrals.iter().flat_map(|referral| &referral.targets);
    let hosts =
        cache.referrals.iter().map(|referral| referral.entry.split('\\').next().unwrap_or(""));
    let servers = Servers::new(targets.map(|target| target.server.as_str()).chain(hosts));
    let open = block.opens.iter().filter_map(|line| {
        let (share, count) = line.split_once('\t')?;
        let count = count.trim().parse::<u64>().ok().filter(|count| *count > 0)?;
        let server = share.trim_start_matches('\\').split('\\').next()?;
        servers.contains(server).then(|| format!("{share}: {count} open"))
    });
    open.take(OPENS_MAX).collect()
}

/// `2026-11-26T18:00:00Z` in seconds since 1970.
fn seconds(text: &str) -> Option<i64> {
    let text = text.strip_suffix('Z')?;
    let (date, time) = text.split_once('T')?;
    let number = |text: &str| {
        let is_digits =
            !text.is_empty() && text.len() <= 4 && text.bytes().all(|b| b.is_ascii_digit());
        is_digits.then(|| text.parse::<i64>().ok()).flatten()
    };
    let mut date = date.split('-').map(number);
    let (year, month, day) = (date.next()??, date.next()??, date.next()??);
    let mut time = time.split(':').map(number);
    let (hour, minute, second) = (time.next()??, time.next()??, time.next()??);
    let is_time = hour < 24 && minute < 60 && second < 61;
    let is_date = (1..=12).contains(&month) && (1..=31).contains(&day);
    (is_time && is_date)
        .then(|| days(year, month, day) * 86_400 + hour * 3_600 + minute * 60 + second)
}

/// Days since 1970-01-01 (H. Hinnant, "chrono-compatible low-level date algorithms").
fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let of_era = year - era * 400;
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::namespace::model::{CachedReferral, CachedTarget};

    /// An entry for each line `entry server...`.
    fn entries(text: &str) -> Result<ClientCache, String> {
        let lines = text.lines().filter(|line| !line.trim().is_empty());
        let referrals = lines.map(|line| {
            let mut words = line.split_whitespace();
            let entry = words.next().unwrap_or_default().to_owned();
            let server =
                |name: &str| CachedTarget { server: name.to_owned(), ..CachedTarget::default() };
            CachedReferral {
                entry,
                targets: words.map(server).collect(),
                ..CachedReferral::default()
            }
        });
        Ok(ClientCache { referrals: referrals.collect(), ..ClientCache::default() })
    }

    const TEXT: &str = "\u{feff}smbscope-client: PC1 2026-11-26T18:00:00Z
smbscope-address: 10.0.0.17
smbscope-section: referrals
a.com\\Public FILE1 FILE2

smbscope-section: opens
\\\\file1.a.com\\Public\t2
\\\\file2\\Public\t0
\\\\printer\\x\t5
smbscope-client: PC2 2026-02-30
smbscope-failed: WinRM cannot complete the operation
smbscope-server: FILE1 2026-11-26T18:00:01Z
smbscope-section: opens
10.0.0.17\tC:\\DFSRoots\\Public\\a.txt
10.0.0.99\tC:\\DFSRoots\\Public\\b.txt
";

    #[test]
    fn clients_servers_and_failures_are_read() {
        assert!(is_collected(TEXT) && !is_collected("Entry: \\a\\b\n"));
        let all = read(TEXT, "", entries);
        assert_eq!(all.caches.len(), 1);
        let one = &all.caches[0];
        assert_eq!((one.client.as_str(), one.read_at_s), ("PC1", Some(1_795_716_000)));
        assert_eq!(one.referrals[0].targets.len(), 2);
        assert_eq!(
            one.open_files,
            ["\\\\file1.a.com\\Public: 2 open", "FILE1: C:\\DFSRoots\\Public\\a.txt"]
        );
        // Its server knows what a client uses that was not collected.
        assert_eq!(all.uncollected[0].client, "10.0.0.99");
        assert_eq!(all.uncollected[0].open_files, ["FILE1: C:\\DFSRoots\\Public\\b.txt"]);
        assert_eq!((all.unread[0].name.as_str(), all.unread[0].is_server), ("PC2", false));
        assert_eq!(all.aliases.get("10.0.0.17").map(String::as_str), Some("PC1"));
        assert_eq!((all.unknown_lines, all.left_out), (0, 0));
    }

    #[test]
    fn what_is_not_understood_is_not_an_empty_cache() {
        let of = |inside: &str, cache: fn(&str) -> Result<ClientCache, String>| {
            let text = format!(
                "smbscope-client: PC1 2026-11-26T18:00:00Z\nsmbscope-section: referrals\n{inside}"
            );
            let all = read(&text, "", cache);
            (all.caches.len(), all.unread.first().map(|one| one.why.clone()).unwrap_or_default())
        };
        let none = |_: &str| Ok(ClientCache::default());
        assert_eq!(of("", none).1, "nothing was printed");
        assert_eq!(of("Eintrag: \\a\\b\n", none).1, "none of 1 lines is an entry");
        assert_eq!(of("x\n", |_| Err("damaged".to_owned())).1, "damaged: \"x\"");
        assert_eq!(of("\n0 entries...\n", none), (1, String::new()));
        assert_eq!(of("DFS cache\n---------\n", none), (1, String::new()));
        assert_eq!(of("0 entries...\nsmbscope-exit: 5\n", none).1, "its program ended with code 5");
        for error in ["0x80070005: Zugriff verweigert", "0 entries\nSYSTEM ERROR 0x5", "0: Fehler"]
        {
            assert_eq!(of(error, none).0, 0, "{error}");
        }
    }

    /// Without the wrapper, the file's name is the client, unless a line names it; an error is not an answer either.
    #[test]
    fn outputs_of_clients_are_read_as_they_are() {
        let none = |_: &str| Err("no form".to_owned());
        for text in
            ["", "\r\n\r\n", "Zugriff verweigert", "Client: PC1\nCollected: 2026-11-28T12:00:00Z\n"]
        {
            let all = read(text, "PC1", none);
            assert_eq!((all.caches.len(), all.unread[0].name.as_str()), (0, "PC1"), "{text}");
        }
        let all = read(
            "Client: A\nEntry: x\nClient: B\nno such command\nClient: C\n0 Einträge...\n",
            "f",
            |text| match text.contains("Entry") {
                true => entries("a.com\\Public FILE1"),
                false => Err("no form".to_owned()),
            },
        );
        let names: Vec<_> = all.caches.iter().map(|one| one.client.as_str()).collect();
        assert_eq!((names, all.unread[0].name.as_str()), (vec!["A", "C"], "B"));
    }

    /// Kernels that stay with a server that is gone, as distributions name them.
    #[test]
    fn kernels_without_failover_are_known() {
        let debian = "Linux version 6.1.0-18-amd64 (debian-kernel@lists.debian.org) #1 SMP Debian 6.1.76-1 (2024-02-01)";
        for (version, expected) in [
            (debian, true),
            ("Linux version 6.1.53 (x)", false),
            ("Linux version 6.1.54-1-lts (x)", true),
            ("Linux version 6.1.134+ (x)", true),
            ("Linux version 6.1.135 (x)", false),
            ("Linux version 6.6.76 (gcc 6.1.99)", false),
            ("Linux version 5.14.0 (x)", false),
        ] {
            let text = format!("{version}\nEntry: x\n");
            let cache = |_: &str| entries("a.com\\Public FILE1");
            let all = read(&text, "linux1", cache);
            let wrapped = format!("smbscope-client: linux1 \nsmbscope-section: referrals\n{text}");
            let in_wrapper = read(&wrapped, "", cache);
            for one in [&all.caches[0], &in_wrapper.caches[0]] {
                assert_eq!(one.is_without_failover, expected, "{version}");
            }
        }
    }

    #[test]
    fn times_are_utc_and_complete() {
        assert_eq!(seconds("1970-01-01T00:00:00Z"), Some(0));
        assert_eq!(seconds("2024-02-29T23:59:59Z"), Some(1_709_251_199));
        for text in
            ["", "2024-02-29", "2024-13-01T00:00:00Z", "2024-01-01T24:00:00Z", "x-y-zTa:b:cZ"]
        {
            assert_eq!(seconds(text), None, "{text}");
        }
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_read(text in "(smbscope-(client|server|section|address): ?[a-z0-9 :TZ-]{0,12}\n|[a-z\\\\\t0-9]{0,9}\n){0,20}") {
            let all = read(&text, "PC", entries);
            proptest::prop_assert!(all.caches.len() <= text.lines().count().max(1));
        }
    }
}
