//! What is wrong with channels, from the finished timelines. A closed list: [`ChannelFindingKind`].
//!
//! Why servers refuse: MS-SMB2 section 3.3.5.5.2, and Samba's smb2_sesssetup.c. Idle states: kernel
//! Documentation/admin-guide/pm/cpuidle.rst.

use std::collections::BTreeSet;

use smbscope_findings::{Confidence, Figure, Finding, KindInfo, Severity, kinds};
use smbscope_tables::tables::Interface;

use super::data::*;

kinds! {
    /// What can be wrong with channels. A closed list.
    pub enum ChannelFindingKind {
        ChannelLost = LOST,
        /// The first byte, a channel, or the plateau comes late.
        SlowRampUp = SLOW_RAMP_UP,
        SecondPathBringsLittle = LITTLE,
        InterfaceUnused = UNUSED,
        BindRefused = REFUSED,
        RssWithoutNeed = RSS,
        /// Deep idle states go with delays.
        PowerSaving = POWER,
    }
}

/// Delays below this are not slow, ns ...
const SLOW_NS: i64 = 2_000_000_000;
/// ... nor those that are a smaller share of the transfer.
const SLOW_SHARE: f64 = 0.05;
/// A session that was open longer before its first byte was not about to transfer anything, ns.
const IDLE_NS: i64 = 120_000_000_000;
/// Fewest bytes of a session about which something is said.
const BYTES_MIN: u64 = 64 << 20;
/// Additional paths gain enough if they reach this share of what they promise.
const GAIN_ENOUGH: f64 = 0.8;
/// Share of the time in deep idle states that dominates.
const DEEP: f64 = 0.5;
/// Findings of one kind.
const EACH_MAX: usize = 4;

const SECOND_NS: f64 = 1e9;

pub(super) fn findings(
    sessions: &[SessionTimeline],
    interfaces: &[Interface],
) -> Vec<ChannelFinding> {
    let mut found = Vec::new();
    let mut add = |all: Vec<ChannelFinding>| found.extend(all.into_iter().take(EACH_MAX));
    add(sessions.iter().filter_map(lost).collect());
    add(sessions.iter().filter_map(slow_ramp_up).collect());
    add(sessions.iter().filter_map(little_gain).collect());
    add(sessions.iter().filter_map(refused).collect());
    add(sessions.iter().filter_map(|one| unused(one, interfaces)).collect());
    add(sessions.iter().filter_map(|one| rss_without_need(one, interfaces)).collect());
    add(sessions.iter().filter_map(|one| power_saving(one, sessions)).collect());
    found
}

fn finding(
    one: &SessionTimeline,
    kind: ChannelFindingKind,
    what: String,
    (confidence, because): (Confidence, &str),
    figures: Vec<Figure>,
) -> ChannelFinding {
    Finding::new(kind, what)
        .with_confidence(confidence, because)
        .with_period(Some(one.start_ns), Some(one.start_ns.saturating_add(one.lasted_ns)))
        .with_figures(figures)
        .with_details(OnSession { recording: one.recording.clone(), session_id: one.session_id })
}

/// A figure that the sentence has, too.
const fn figure(name: &'static str, value: f64, unit: &'static str) -> Figure {
    Figure::new(name, value, unit, "")
}

fn seconds(ns: i64) -> String {
    format!("{:.1} s", ns as f64 / SECOND_NS)
}

/// Whether a delay is long, for itself and within the session.
fn is_slow(ns: i64, one: &SessionTimeline) -> bool {
    ns >= SLOW_NS && ns as f64 >= SLOW_SHARE * one.lasted_ns as f64
}

const LOST: KindInfo = KindInfo::new("channel-lost", "A channel was lost")
    .with_severity(Severity::High)
    .with_remedies(&[
    (
        "network",
        "check cable, adapter and switch port of that path: ip -s link and ethtool -S INTERFACE (Windows: \
         Get-NetAdapterStatistics), and the logs of both ends at that time",
    ),
    (
        "client",
        "how long a silent path delays its requests is the client's choice: Linux retries for \
         net.ipv4.tcp_retries2, smbscope load for --path-timeout",
    ),
]);

/// A channel that ended while the session needed it.
fn lost(one: &SessionTimeline) -> Option<ChannelFinding> {
    // In a capture all channels may end at once, because the client did.
    let last_byte = one.channels.iter().filter_map(|channel| channel.last_byte_ns).max();
    let is_lost = |channel: &&ChannelTimeline| {
        channel.lost_ns.is_some_and(|at| channel.repeated.is_some() || last_byte > Some(at))
    };
    let lost: Vec<_> = one.channels.iter().filter(is_lost).collect();
    let first = lost.iter().copied().min_by_key(|one| one.lost_ns)?;
    let at = first.lost_ns?;
    let after = |at: i64| seconds(at.saturating_sub(one.start_ns).max(0));
    let reason = first.lost_reason.as_deref().unwrap_or("the reason is not recorded");
    let mut what = format!(
        "the channel to {} was lost {} after the start ({reason})",
        first.server,
        after(at)
    );
    if lost.len() > 1 {
        what = format!("{} channels were lost; {what}", lost.len());
    }
    let repeated: Option<u64> = lost.iter().filter_map(|one| one.repeated).reduce(|a, b| a + b);
    match repeated {
        Some(1) => what.push_str("; 1 request was repeated on others"),
        Some(repeated) => what.push_str(&format!("; {repeated} requests were repeated on others")),
        None => {}
    }
    let back = (one.channels.iter())
        .filter(|next| next.server == first.server && next.opened_ns > Some(at))
        .filter_map(|next| next.first_byte_ns)
        .min();
    what.push_str(&match back {
        Some(again) => format!("; a new channel to it carries data starting at {}", after(again)),
        None => "; no other one to it carries data afterwards".to_owned(),
    });
    let mut figures = vec![
        figure("lost", lost.len() as f64, ""),
        figure("lost_after", at.saturating_sub(one.start_ns) as f64, "ns"),
    ];
    figures.extend(repeated.map(|repeated| figure("repeated", repeated as f64, "")));
    figures.extend(back.map(|again| {
        let away_ns = again.saturating_sub(at) as f64;
        Figure::new("away", away_ns, "ns", "the path carried nothing for {}")
    }));
    let confidence = match repeated {
        Some(_) => (Confidence::Measured, "the load generator lost it"),
        None => (
            Confidence::Likely,
            "requests on it have no reply, and it ended or fell silent while the recording continues",
        ),
    };
    Some(finding(one, ChannelFindingKind::ChannelLost, what, confidence, figures))
}

const IDLE_STATES: (&str, &str) = (
    "client and server",
    "try one run without deep idle states: cpupower idle-set --disable-by-latency 30 (undo: --enable-all), or \
     powercfg /setactive SCHEME_MIN; profile High performance in the BIOS makes it last",
);
const LOOKS_LATE: (&str, &str) = (
    "Windows",
    "the client looks for more paths only while data flows: start the transfer with a small one, or check \
     Get-SmbMultichannelConnection before it",
);

const SLOW_RAMP_UP: KindInfo = KindInfo::new("slow-ramp-up", "Channels start slowly")
    .with_severity(Severity::Medium)
    .with_remedies(&[IDLE_STATES, LOOKS_LATE]);

/// Long until the first byte, until a channel joins, or until the plateau.
fn slow_ramp_up(one: &SessionTimeline) -> Option<ChannelFinding> {
    if one.bytes() < BYTES_MIN {
        return None;
    }
    let first = one.first_byte_after_ns?;
    let waits = is_slow(first, one) && first <= IDLE_NS;
    let begin = one.start_ns.saturating_add(first);
    // A loss before the plateau explains that it comes late, and a later channel replaces what was lost.
    let lost_at = one.channels.iter().filter_map(|channel| channel.lost_ns).min();
    let climb = (one.plateau_after_ns)
        .filter(|at| lost_at.is_none_or(|lost| one.start_ns.saturating_add(*at) < lost))
        .map(|at| at - first)
        .filter(|&ns| is_slow(ns, one));
    let replaces = |channel: &ChannelTimeline| {
        lost_at.is_some_and(|lost| channel.opened_ns.or(channel.first_byte_ns) > Some(lost))
    };
    // A channel of a path that was used later: what it carried before counts as its delay.
    let late = (one.channels.iter())
        .filter(|channel| !replaces(channel))
        .filter_map(|channel| Some((channel, channel.first_byte_ns?.saturating_sub(begin))))
        .filter(|(_, ns)| is_slow(*ns, one))
        .max_by_key(|(_, ns)| *ns);
    if !waits && climb.is_none() && late.is_none() {
        return None;
    }
    let mut parts = Vec::new();
    if waits {
        parts.push(format!("{} pass until the first byte", seconds(first)));
    }
    // Opened late: the client decided to, for which CPUs need no time.
    let opened_late = late.and_then(|(channel, ns)| {
        let opened = channel.opened_ns?.saturating_sub(begin);
        (2 * opened > ns).then_some(opened)
    });
    if let Some((channel, ns)) = late {
        parts.push(format!(
            "the channel to {} carries its first byte {} after that of the session",
            channel.server,
            seconds(ns)
        ));
        if let Some(opened) = opened_late {
            parts.push(format!("the client opened it {} after that byte", seconds(opened)));
        }
    }
    if let Some(ns) = climb {
        parts.push(format!("{} more until 90 % of the plateau", seconds(ns)));
    }
    let total = one.plateau_after_ns.unwrap_or(first).max(first);
    let what =
        format!("{}, of {} that the transfer took", parts.join("; "), seconds(one.lasted_ns));
    let confidence = if waits && climb.is_none() && late.is_none() {
        (
            Confidence::Likely,
            "the connection was open and had nothing to carry; a client that prepares a transfer looks like one that \
             waits for a person",
        )
    } else {
        (Confidence::Measured, "times of the first bytes, and the rate of each interval")
    };
    let figures = vec![
        Figure::new("first_byte", first as f64, "ns", "{} until the first byte"),
        Figure::new("plateau", total as f64, "ns", "{} until the plateau"),
        figure("lasted", one.lasted_ns as f64, "ns"),
        Figure::new(
            "share",
            total as f64 / one.lasted_ns.max(1) as f64,
            "share",
            "{} of the transfer",
        ),
    ];
    // Counters that show CPUs awake rule idle states out.
    let is_awake = one.power.as_ref().is_some_and(|power| power.deep_idle_before < DEEP);
    // The plateau is that of all channels, and so comes with the last one.
    let with_it = late.map_or(0, |(_, ns)| ns.saturating_add(SLOW_NS));
    let is_decided = opened_late.is_some() && !waits && climb.is_none_or(|ns| ns <= with_it);
    let found = finding(one, ChannelFindingKind::SlowRampUp, what, confidence, figures);
    let is_idle_possible = !is_awake && !is_decided;
    Some(if is_idle_possible { found } else { found.with_remedies([LOOKS_LATE]) })
}

const LITTLE: KindInfo = KindInfo::new("second-path-brings-little", "An additional path adds little throughput")
    .with_severity(Severity::Medium)
    .with_remedies(&[
    (
        "network",
        "compare with the network alone: smbscope net send HOST --like RUN; if it is not faster, the paths share a \
         link, an adapter or CPUs",
    ),
    (
        "client and server",
        "check that both adapters have their own receive queues and CPUs: smbscope plan cores",
    ),
    (
        "application",
        "keep more requests in flight, or larger ones, so that all paths have work",
    ),
]);

/// Additional paths gain less than they promise.
fn little_gain(one: &SessionTimeline) -> Option<ChannelFinding> {
    if let Some(versus) = one.versus.as_ref().filter(|versus| versus.promised > 1.0)
        && versus.factor < GAIN_ENOUGH * versus.promised
    {
        let share = versus.factor / versus.promised;
        let what = format!(
            "{} paths moved the same amount {:.1} times as fast as {} (recording {}): {:.0} % of what they promise \
             ({:.1}); without the time until the first byte it is {:.1} times",
            one.paths,
            versus.factor,
            versus.paths,
            versus.recording,
            100.0 * share,
            versus.promised,
            versus.transfer_factor
        );
        let figures = vec![
            figure("factor", versus.factor, ""),
            figure("promised", versus.promised, ""),
            figure("share", share, "share"),
            figure("transfer_factor", versus.transfer_factor, ""),
        ];
        let confidence = (Confidence::Measured, "two recordings of the same amount of data");
        let kind = ChannelFindingKind::SecondPathBringsLittle;
        return Some(finding(one, kind, what, confidence, figures));
    }
    let gain = one.gain.filter(|gain| gain.factor < GAIN_ENOUGH * gain.promised)?;
    let what = format!(
        "with {} paths the session carries {:.1} times what one carried before: {:.1} are promised",
        one.paths, gain.factor, gain.promised
    );
    let figures = vec![
        Figure::new("before", 8.0 * gain.before_bytes_per_second, "bits/s", "{} with one"),
        Figure::new("after", 8.0 * gain.after_bytes_per_second, "bits/s", "{} with all"),
        figure("factor", gain.factor, ""),
        figure("promised", gain.promised, ""),
    ];
    let confidence =
        (Confidence::Likely, "plateaus before and after within one session; its load may differ");
    let kind = ChannelFindingKind::SecondPathBringsLittle;
    Some(finding(one, kind, what, confidence, figures))
}

const REFUSED: KindInfo =
    KindInfo::new("bind-refused", "The server refused a channel").with_severity(Severity::Medium);

/// Channels that the server refused.
fn refused(one: &SessionTimeline) -> Option<ChannelFinding> {
    let refused: Vec<_> = one.channels.iter().filter(|one| one.bind_status.is_some()).collect();
    let first = refused.first()?;
    let status = first.bind_status.as_deref()?;
    let servers: BTreeSet<_> = refused.iter().map(|one| one.server.as_str()).collect();
    let servers: Vec<_> = servers.into_iter().take(4).collect();
    let is_loopback = servers.iter().any(|server| {
        server.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
    });
    let (reason, remedies): (_, &[_]) = match status {
        "STATUS_ACCESS_DENIED" => (
            "servers that require encryption for everything refuse it, because a channel that is being added is not \
             encrypted yet",
            &[
                (
                    "Samba",
                    "set smb encrypt = required for shares instead of [global], or server smb encrypt = desired",
                ),
                ("Windows", "Set-SmbServerConfiguration -EncryptData $false, and encrypt shares"),
            ],
        ),
        "STATUS_USER_SESSION_DELETED" if is_loopback => (
            "the server offered its loopback address, which leads the client to itself: the session is not known \
             there",
            &[(
                "Samba",
                "leave the loopback interface out: interfaces = eth0 eth1, bind interfaces only = yes",
            )],
        ),
        "STATUS_USER_SESSION_DELETED" => (
            "the session is not known at that address: it leads to another node or machine, or the session ended",
            &[("Samba", "offer only addresses of this node: interfaces = ..., or a clustered one")],
        ),
        "STATUS_REQUEST_NOT_ACCEPTED" => (
            "the server does not accept channels, or the connection is one already",
            &[
                ("Samba", "server multi channel support = yes"),
                ("Windows", "Set-SmbServerConfiguration -EnableMultiChannel $true"),
            ],
        ),
        "STATUS_INSUFFICIENT_RESOURCES" => (
            "the session has as many channels as the server allows",
            &[(
                "client",
                "fewer channels for each server: max_channels, MaximumConnectionCountPerServer",
            )],
        ),
        _ => ("the server's log may have the reason", &[]),
    };
    let what = format!(
        "the server refused {} of {} connections to {} ({status}): {reason}",
        refused.len(),
        one.channels.len(),
        servers.join(", ")
    );
    let figures = vec![figure("refused", refused.len() as f64, "")];
    let confidence = (Confidence::Measured, "the reply to the session setup with the binding flag");
    let found = finding(one, ChannelFindingKind::BindRefused, what, confidence, figures);
    Some(found.with_remedies(remedies.iter().copied()))
}

const UNUSED: KindInfo = KindInfo::new("interface-unused", "An interface was offered and never used")
    .with_severity(Severity::Low)
    .with_remedies(&[
        (
            "client",
            "Windows: Get-SmbMultichannelConnection -IncludeNotSelected shows what it thinks of them; Linux: mount \
             options multichannel, max_channels=4",
        ),
        ("server", "offer only interfaces that clients reach (Samba: interfaces = ...)"),
]);

/// Interfaces that could have carried more.
fn unused(one: &SessionTimeline, interfaces: &[Interface]) -> Option<ChannelFinding> {
    if one.bytes() < BYTES_MIN {
        return None;
    }
    let reason = |row: &Interface| match row.reason.as_str() {
        "subnet" => Some("the client has no address in its subnet"),
        "no_route" => Some("the client has no route to it"),
        "connect_failed" => Some("no connection to it could be opened"),
        "limit" => Some("the client has all the channels that it wants"),
        "loopback" => Some("other machines cannot reach it"),
        "not_tried" => Some("the client did not try; why is not recorded"),
        // Used, of a slower class, or a finding of its own.
        _ => None,
    };
    let mut seen = BTreeSet::new();
    let names: Vec<_> = (interfaces.iter())
        .filter(|row| row.recording == one.recording && row.session_id == one.session_id)
        .filter(|row| seen.insert(&row.address))
        .filter_map(|row| {
            let speed = row.link_bits_per_second as f64 / 1e9;
            Some(format!("{} ({speed:.1} Gbit/s): {}", row.address, reason(row)?))
        })
        .collect();
    if names.is_empty() {
        return None;
    }
    let what = format!("the server offered interfaces that no channel used: {}", names.join("; "));
    let figures = vec![figure("interfaces", names.len() as f64, "")];
    let confidence = (Confidence::Measured, "the server's list and the connections of the session");
    Some(finding(one, ChannelFindingKind::InterfaceUnused, what, confidence, figures))
}

const RSS: KindInfo = KindInfo::new("rss-without-need", "Several channels on one interface gain nothing")
    .with_severity(Severity::Low)
    .with_remedies(&[
        (
            "Samba",
            "say what the interface is: interfaces = \"eth0;if_index=2,speed=10000000000\" without capability=RSS",
        ),
        ("Windows", "Set-SmbClientConfiguration -ConnectionCountPerRssNetworkInterface 1"),
]);

/// Several channels on one path, of which one would have carried as much.
fn rss_without_need(one: &SessionTimeline, interfaces: &[Interface]) -> Option<ChannelFinding> {
    let claims = (interfaces.iter())
        .filter(|row| row.recording == one.recording && row.session_id == one.session_id)
        .any(|row| row.used && row.rss_capable);
    let bound: Vec<_> = one.channels.iter().filter(|one| one.channel.is_some()).collect();
    let most = bound.iter().map(|one| one.share).fold(0.0, f64::max);
    let is_one_path = bound.iter().all(|other| other.server == one.server);
    if !claims || bound.len() < 2 || !is_one_path || one.bytes() < BYTES_MIN || most < 0.9 {
        return None;
    }
    let what = format!(
        "the interface {} claims RSS, so the client opened {} channels to it, of which one carries {:.0} % of the \
         bytes: the others only cost their setup",
        one.server,
        bound.len(),
        100.0 * most
    );
    let figures = vec![figure("largest_share", most, "share")];
    let confidence = (Confidence::Likely, "bytes of the channels; other loads may use them");
    Some(finding(one, ChannelFindingKind::RssWithoutNeed, what, confidence, figures))
}

const POWER: KindInfo = KindInfo::new("power-saving", "Power saving goes with slow transfers")
    .with_severity(Severity::Medium)
    .with_remedies(&[
    (
        "Linux, for one run",
        "cpupower idle-set --disable-by-latency 30 and cpupower frequency-set -g performance; undo: cpupower \
         idle-set --enable-all and the governor that was set",
    ),
    (
        "Windows, for one run",
        "powercfg /setactive SCHEME_MIN (High performance); undo: powercfg /setactive SCHEME_BALANCED",
    ),
    (
        "BIOS, to stay",
        "system profile Performance: C1E and C-states off, or limited to C1; it costs idle power",
    ),
]);

/// Deep idle states dominate, and the ramp is slow; or another run without them is faster.
fn power_saving(one: &SessionTimeline, all: &[SessionTimeline]) -> Option<ChannelFinding> {
    let power = one.power.as_ref().filter(|power| power.deep_idle_before >= DEEP)?;
    let first = one.first_byte_after_ns.unwrap_or(0);
    let ramp = one.plateau_after_ns.filter(|&ns| is_slow(ns, one) && first <= IDLE_NS)?;
    let shallow = all.iter().filter(|other| {
        let idle = other.power.as_ref().map(|power| power.deep_idle_before);
        let is_alike = one.bytes().abs_diff(other.bytes()) as f64 <= 0.1 * one.bytes() as f64;
        idle.is_some_and(|idle| idle < power.deep_idle_before / 2.0)
            && is_alike
            && other.paths == one.paths
            && (other.lasted_ns as f64) < 0.9 * one.lasted_ns as f64
    });
    let faster = shallow.min_by_key(|other| other.lasted_ns);
    let mut what = format!(
        "CPUs of the {} spend {:.0} % of the time until the plateau in deep idle states, and it takes {} to \
         reach it",
        power.source,
        100.0 * power.deep_idle_before,
        seconds(ramp)
    );
    let mut figures = vec![
        figure("deep_idle", power.deep_idle_before, "share"),
        figure("ramp_up", ramp as f64, "ns"),
    ];
    let confidence = match faster {
        Some(other) => {
            let saved = 1.0 - other.lasted_ns as f64 / one.lasted_ns.max(1) as f64;
            what.push_str(&format!(
                "; recording {} with {:.0} % took {} instead of {}: {:.0} % less",
                other.recording,
                100.0 * other.power.as_ref().map_or(0.0, |power| power.deep_idle_before),
                seconds(other.lasted_ns),
                seconds(one.lasted_ns),
                100.0 * saved
            ));
            figures.push(figure("saved", saved, "share"));
            (Confidence::Measured, "a run of the same amount without deep idle states was faster")
        }
        None => (
            Confidence::Possible,
            "idle CPUs are deeply idle because they wait, or the wait is long because they are deeply idle: \
             only a run without these states shows which",
        ),
    };
    Some(finding(one, ChannelFindingKind::PowerSaving, what, confidence, figures))
}
