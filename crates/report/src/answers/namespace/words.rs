//! Words of the plan of a move.

use smbscope_plan::namespace::gate::{Reason, ReasonKind};
use smbscope_plan::namespace::progress::Status;
use smbscope_plan::namespace::stages::GateRule;

/// `13 h 20 min`, `45 s`.
pub(super) fn seconds(seconds: u64) -> String {
    let (days, hours) = (seconds / 86_400, seconds / 3_600 % 24);
    let (minutes, rest) = (seconds / 60 % 60, seconds % 60);
    let parts = match seconds {
        0..=119 => vec![(seconds, "s")],
        120..=3_599 => vec![(minutes, "min"), (rest, "s")],
        3_600..=86_399 => vec![(hours, "h"), (minutes, "min")],
        _ => vec![(days, "d"), (hours, "h")],
    };
    let shown = parts.iter().enumerate().filter(|(place, (count, _))| *place == 0 || *count > 0);
    shown.map(|(_, (count, unit))| format!("{count} {unit}")).collect::<Vec<_>>().join(" ")
}

/// Seconds since 1970 as the nanoseconds of a cell.
pub(super) fn nanoseconds(seconds: i64) -> i64 {
    seconds.saturating_mul(1_000_000_000)
}

pub(super) fn rule(rule: GateRule) -> &'static str {
    match rule {
        GateRule::ShortTtl => "no client has a list of the root that lasts longer than the new TTL",
        GateRule::NewListed => {
            "each client that has a list of namespace servers has a new one in it"
        }
        GateRule::OldGone => "no client has an old namespace server in its list",
        GateRule::LinksRewritten => {
            "no client has targets from before the cut-over, and no old namespace server"
        }
    }
}

pub(super) fn status(status: Status) -> &'static str {
    match status {
        Status::Pending => "to do",
        Status::Running => "in progress",
        Status::Done => "done",
        Status::Undone => "undone",
    }
}

/// `lists old servers: OLD1, OLD2 (contoso.com\Public)`.
pub(super) fn reason(reason: &Reason) -> String {
    let what = match reason.kind {
        ReasonKind::LacksNew => "lists no new server",
        ReasonKind::HoldsOld => "lists old servers",
        ReasonKind::LongTtl => "keeps its list longer than the new TTL",
        ReasonKind::OldLink => "has targets from before the cut-over",
        ReasonKind::OpenFiles => {
            let more = match reason.count {
                0 | 1 => String::new(),
                count => format!(" and {} more", count - 1),
            };
            return format!("has files open, which keep the list: {}{more}", reason.entry);
        }
        ReasonKind::ReadTooEarly => {
            return "was read before the change was known everywhere: collect it again".to_owned();
        }
        ReasonKind::NoFailover => {
            return "its kernel (Linux 6.1.54 to 6.1.134) does not fail over: unmount the share, or update the kernel, and collect it again".to_owned();
        }
        ReasonKind::NotRead => return format!("its answer says nothing: {}", reason.entry),
        ReasonKind::Unclear => {
            return format!(
                "has an entry that cannot be placed: {} ({}); if its host is the domain: --domain, if it is another share: --other-host",
                reason.servers.join(", "),
                reason.entry
            );
        }
        ReasonKind::ReadTooLongAgo => {
            return "its list has expired since it was read: collect it again".to_owned();
        }
    };
    let more = match reason.count {
        0 | 1 => String::new(),
        count => format!(", and {} more lists", count - 1),
    };
    format!("{what}: {} ({}{more})", reason.servers.join(", "), reason.entry)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_two_units_at_most() {
        for (value, shown) in [
            (0, "0 s"),
            (90, "90 s"),
            (300, "5 min"),
            (48_000, "13 h 20 min"),
            (3_600, "1 h"),
            (134_100, "1 d 13 h"),
        ] {
            assert_eq!(seconds(value), shown);
        }
    }
}
