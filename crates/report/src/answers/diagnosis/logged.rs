//! Events that Windows logged on its own, in sentences.

use smbscope_analysis::explain::{Logged, LoggedOther};

use crate::value::format;

/// Events of the SMB server and client that report no trouble, in a sentence; `None` without any.
pub(crate) fn without_trouble(rows: &[LoggedOther]) -> Option<String> {
    const NUMBERS: usize = 8;
    let of = |provider: &str| -> u64 {
        rows.iter().filter(|row| row.provider == provider).map(|row| row.count).sum()
    };
    let whose = match (of("SMBServer"), of("SMBClient")) {
        (0, 0) => return None,
        (server, 0) => format!("{} of the SMB server", format::counted(server, "event")),
        (0, client) => format!("{} of the SMB client", format::counted(client, "event")),
        (server, client) => format!(
            "{} of the SMB server and {} of the client",
            format::counted(server, "event"),
            format::count(client)
        ),
    };
    let numbers = rows.iter().take(NUMBERS).map(|row| format!("{} x{}", row.event, row.count));
    let numbers = numbers.collect::<Vec<_>>().join(", ");
    let more = if rows.len() > NUMBERS { ", ..." } else { "" };
    Some(format!("{whose}, none of a kind that reports trouble ({numbers}{more})."))
}

/// What happened and how often.
pub(crate) fn times_of(row: &Logged) -> String {
    let times = match row.count {
        1 => "once".to_owned(),
        count => format!("{} times", format::count(count)),
    };
    let longest = match (row.longest_ns, row.threshold_ns) {
        (Some(longest), Some(threshold)) => format!(
            ", longest {} (limit {})",
            format::duration(longest),
            format::duration(threshold)
        ),
        (Some(longest), None) => format!(", longest {}", format::duration(longest)),
        _ => String::new(),
    };
    let open = match row.not_restored {
        0 => String::new(),
        open => format!(", {} not restored in the log", format::count(open)),
    };
    format!("{} ({times}{longest}{open})", row.title)
}

/// Events of one kind in a sentence.
pub(crate) fn sentence(row: &Logged) -> String {
    let mut text = times_of(row);
    let names = [
        ("commands", &row.commands),
        ("shares", &row.shares),
        ("files", &row.paths),
        ("clients", &row.clients),
        ("users", &row.users),
        ("servers", &row.servers),
        ("status", &row.statuses),
    ];
    for (what, names) in names.into_iter().filter(|(_, names)| !names.is_empty()) {
        text.push_str(&format!("; {what} {}", names.join(", ")));
    }
    text.push_str(&format!(". {}: {}.", row.side, row.remedy));
    text
}
