//! The sentences of an explanation: the verdict, the breaks, the neighbours, and how unusual the
//! operation is.

use smbscope_analysis::explain::why::{
    Blocking, Break, Brief, Explanation, FoundBy, Reason, Step, StepKind, Timer,
};
use smbscope_tables::slice::Kind;

use crate::value::format::{self, bytes, count, duration, number};

/// Below this, an operation is not called slow even if others are much faster, ns.
const SLOW_MIN_NS: i64 = 1_000_000;
/// An operation of this many times the median or more is unusual.
const UNUSUAL: f64 = 2.0;

/// What happened, in a few sentences; the first is the most important.
pub(super) fn verdict(why: &Explanation) -> String {
    // A break says it all.
    let is_break = why.reason == Reason::Break && !why.breaks.is_empty();
    let mut sentences: Vec<_> = (!is_break).then(|| first(why)).into_iter().collect();
    let subject = &why.operation;
    if let (Some(at), true) = (subject.pending_at_ns, subject.brief.elapsed_ns.is_some()) {
        let interim = why.steps.iter().find(|step| step.kind == StepKind::Interim);
        let frame = interim.and_then(|step| step.frame);
        let frame = frame.map_or(String::new(), |frame| format!(", frame {frame}"));
        sentences.push(format!(
            "An interim response (STATUS_PENDING{frame}) came {} after the request.",
            duration(at)
        ));
    }
    sentences.extend(longest_slice(why));
    sentences.extend(breaks(why));
    sentences.extend(holder(why));
    let is_open = subject.brief.command.as_deref() == Some("Create");
    if is_open && why.breaks.is_empty() && subject.pending_at_ns.is_some() {
        sentences.push(
            "The recording shows no oplock or lease break for this file: if another client had to give one up, its \
             connection is not in the recording."
                .to_owned(),
        );
    }
    sentences.extend(blocker(why));
    sentences.extend(forwarded(why));
    sentences.extend(released(why));
    sentences.extend(why.timer.as_ref().map(timer));
    sentences.extend(usual(why));
    if why.found_by == FoundBy::Between {
        sentences.push(
            "The given frame is neither its request nor its reply, but lies between them; no other operation's frames \
             enclose it."
                .to_owned(),
        );
    }
    sentences.join(" ")
}

/// The longest slice of the server's time, of those that are disjoint.
fn longest_slice(why: &Explanation) -> Option<String> {
    let kind = |step: &&Step| Kind::ALL.iter().find(|kind| Some(kind.name()) == step.slice);
    let disjoint =
        why.steps.iter().filter(|step| kind(step).is_some_and(|kind| kind.group().is_some()));
    let longest = disjoint.max_by_key(|step| step.duration_ns)?;
    let (ns, elapsed) = (longest.duration_ns?, why.operation.brief.elapsed_ns?);
    Some(format!(
        "The longest slice of the server's time is {}: {} ({}).",
        kind(&longest)?.title().to_lowercase(),
        duration(ns),
        format::share(ns as f64 / elapsed.max(1) as f64)
    ))
}

/// The breaks of the file: the one that it waited for longest, and how many more there are.
fn breaks(why: &Explanation) -> Vec<String> {
    let Some(longest) = why.breaks.iter().max_by_key(|one| one.waited_ns) else {
        return Vec::new();
    };
    let mut sentences = Vec::new();
    if why.breaks_count > 1 {
        sentences.push(format!(
            "The server sent {} breaks of this file and waited {} in all for the answers.",
            count(why.breaks_count),
            duration(why.breaks_waited_ns)
        ));
    }
    let words = break_words(longest, why);
    sentences.push(match words.strip_prefix("The server") {
        Some(rest) if why.breaks_count > 1 => {
            format!("The longest of these waits: the server{rest}")
        }
        _ => words,
    });
    sentences
}

/// The lock or open of another client that was in the way.
fn holder(why: &Explanation) -> Option<String> {
    let longest = why.holders.first()?;
    let client = longest.brief.client.as_deref().map_or("a client".to_owned(), format::sanitized);
    let client =
        if longest.is_same_client { format!("{client}, the same client,") } else { client };
    let until = match longest.until_ns {
        Some(until) => format!("gave it up {} after the request", duration(until)),
        None => "did not give it up in the recording".to_owned(),
    };
    let what = match why.operation.brief.command.as_deref() {
        Some("Lock" | "LockingAndX") => "held a lock on the range",
        _ => "had the file open",
    };
    let others = match why.holders_count {
        1 => String::new(),
        n => format!("Of {} that were held meanwhile, the longest: ", count(n)),
    };
    Some(format!(
        "{others}{client} {what} since {} (frame {}) and {until}{}.",
        match longest.from_ns {
            at if at < 0 => format!("{} before the request", duration(-at)),
            at => format!("{} after the request", duration(at)),
        },
        longest.brief.request_frame.map_or("unknown".to_owned(), |frame| frame.to_string()),
        frame_words(longest.until_frame)
    ))
}

fn first(why: &Explanation) -> String {
    let subject = &why.operation;
    let brief = &subject.brief;
    let name = full_name(brief, subject.encrypted);
    let compound = match (subject.compound_member, subject.compound_size) {
        (Some(member), _) => format!(
            ", the compound whose member {} was named and whose first operation has its times,",
            u32::from(member) + 1
        ),
        (None, Some(size)) => format!(", with the {} operations of its compound,", size),
        (None, None) => String::new(),
    };
    let Some(elapsed) = brief.elapsed_ns else {
        return match why.reason {
            Reason::Break => format!("{name}: the server sent it without a request."),
            Reason::NoReply => format!(
                "{name} has no reply in the recording{}.",
                if brief.command.as_deref() == Some("Cancel") {
                    ": a Cancel never has one"
                } else {
                    ""
                }
            ),
            _ => format!(
                "{name} has no time: the recording does not have its request, or not its reply."
            ),
        };
    };
    if why.reason == Reason::WaitsByDesign {
        return format!(
            "{name} waited {}. It waits by design (a change notification, or a lock that another client holds), so its \
             time is not latency.",
            duration(elapsed)
        );
    }
    let part = match why.reason_share {
        Some(share) if share >= 0.95 => "nearly all of it".to_owned(),
        Some(share) if share >= 0.5 => format!("most of it ({})", format::share(share)),
        Some(share) => format!("the largest part ({})", format::share(share)),
        None => "all of it".to_owned(),
    };
    let place = match why.reason {
        Reason::BreakNotAcknowledged => {
            "waiting for a client that did not acknowledge a break of the file"
        }
        Reason::BreakAcknowledged => "waiting until clients had answered breaks of the file",
        Reason::Holder => "waiting for another open to unlock the range",
        Reason::OtherReplies => "waiting while replies to other requests occupied its connection",
        Reason::EarlierRequests => {
            "waiting for replies to requests that were sent before it on its connection"
        }
        Reason::Loss => "the recovery of lost segments by TCP",
        Reason::RequestTransfer => "the transfer of the request",
        Reason::ResponseTransfer => "the transfer of the reply",
        Reason::Network => "the network's round trip",
        Reason::Server => "at the server",
        _ => "the turnaround of server and network (the recording does not show their parts)",
    };
    let status = brief.status.as_deref().filter(|status| *status != "STATUS_SUCCESS");
    let status = status
        .map_or(String::new(), |status| format!(" and ended with {}", format::sanitized(status)));
    format!("{name}{compound} took {}{status}, {part} {place}.", duration(elapsed))
}

/// What happened to a break.
pub(super) fn break_words(one: &Break, why: &Explanation) -> String {
    let kind = if one.is_lease { "a lease break" } else { "an oplock break" };
    let change = match (&one.from, &one.to) {
        (Some(from), Some(to)) => format!(" ({from} to {to})"),
        (None, Some(to)) => format!(" (to {to})"),
        _ => String::new(),
    };
    let client = one.client.as_deref().map_or("a client".to_owned(), format::sanitized);
    let client = match (one.is_same_connection, one.is_same_client) {
        (true, _) => format!("{client}, on the same connection"),
        (false, true) => format!("{client}, the same client, on another connection"),
        (false, false) => client,
    };
    let when = match one.at_ns {
        _ if why.reason == Reason::Break => String::new(),
        at if at < 0 => format!(" {} before the request", duration(-at)),
        at => format!(" {} after the request", duration(at)),
    };
    let opened = one
        .opened_frame
        .map_or(String::new(), |frame| format!(", which opened the file in frame {frame}"));
    let mut text = format!(
        "The server sent {kind}{change}{when}{} to {client}{opened}.",
        frame_words(one.frame)
    );
    text.push_str(&match why.reason {
        Reason::Break => after_break(one, why.waiters.first()),
        _ => answer_words(one, why.operation.brief.elapsed_ns),
    });
    text
}

/// What followed a break that is explained itself; `waiter` is the open that waited longest for it.
fn after_break(one: &Break, waiter: Option<&Brief>) -> String {
    let reply = waiter.and_then(|waiter| Some(waiter.at_ns? + waiter.elapsed_ns?));
    let mut text = answer_words(one, reply);
    if let (Some(waiter), Some(elapsed)) = (waiter, waiter.and_then(|waiter| waiter.elapsed_ns)) {
        text.push_str(&format!(
            " The reply is that to the request which caused the break: {}{} took {}.",
            full_name(waiter, false),
            frame_words(waiter.request_frame),
            duration(elapsed)
        ));
    }
    text
}

/// What the client did after a break, and when the reply came, both after the operation's request.
fn answer_words(one: &Break, reply: Option<i64>) -> String {
    let reply_words = |reply: i64| {
        format!("the reply was complete {} after the break", duration(reply - one.at_ns))
    };
    let Some(answer) = &one.answer else {
        return match (one.needs_acknowledgement, reply) {
            (Some(false), _) => " It needs no acknowledgement, and none was recorded.".to_owned(),
            (_, Some(reply)) => format!(
                " The recording shows no acknowledgement from that client; {}.",
                reply_words(reply)
            ),
            (_, None) => " The recording shows no acknowledgement from that client.".to_owned(),
        };
    };
    let what = if answer.is_close { "closed the file" } else { "acknowledged it" };
    let status = answer.status.as_deref().filter(|status| *status != "STATUS_SUCCESS");
    let status = status.map_or(String::new(), |status| format!(", answered with {status}"));
    let (took, frame) = (duration(answer.took_ns), frame_words(answer.frame));
    let waited = one.waited_ns > 0 && one.needs_acknowledgement != Some(false);
    match reply {
        Some(reply) if answer.at_ns > reply && waited && answer.is_close => format!(
            " The recording shows no acknowledgement from that client; {}, and the client closed the file only after \
             that{frame}.",
            reply_words(reply)
        ),
        Some(reply) if answer.at_ns > reply => {
            format!(" The client {what} {took} later{frame}{status}, after the reply.")
        }
        Some(reply) => format!(
            " The client {what} {took} later{frame}{status}; the reply was complete {} after that.",
            duration(reply - answer.at_ns)
        ),
        None => format!(" The client {what} {took} later{frame}{status}."),
    }
}

fn frame_words(frame: Option<u64>) -> String {
    frame.map_or(String::new(), |frame| format!(" (frame {frame})"))
}

/// The request that an operation waited for.
fn blocker(why: &Explanation) -> Option<String> {
    let one = why.neighbours.blocker.as_ref()?;
    let frame = frame_words(one.request_frame);
    let took = one.elapsed_ns.map_or(String::new(), |ns| format!(", took {}", duration(ns)));
    Some(format!(
        "{} before it on its connection {} answered first; the longest, {}{frame}{took}.",
        requests(why.neighbours.in_flight_answered),
        if why.neighbours.in_flight_answered == 1 { "was" } else { "were" },
        full_name(one, false)
    ))
}

/// The same request on the other side of a proxy.
fn forwarded(why: &Explanation) -> Option<String> {
    let one = why.neighbours.forwarded.as_ref()?;
    let (took, elapsed) = (one.elapsed_ns?, why.operation.brief.elapsed_ns?);
    let frames = match (one.request_frame, one.response_frame) {
        (Some(request), Some(reply)) => format!(" (frames {request}, {reply})"),
        _ => String::new(),
    };
    let who = if took < elapsed / 2 {
        "the server is a proxy, and the time is lost in it"
    } else {
        "the server is a proxy, and the time is spent behind it"
    };
    Some(format!(
        "The same request left the server's address for another server {} later{frames} and took {} there: {who}.",
        duration(one.at_ns?),
        duration(took)
    ))
}

/// The request that released the reply.
fn released(why: &Explanation) -> Option<String> {
    let one = why.neighbours.released_by.as_ref()?;
    let reply = why.operation.brief.elapsed_ns?;
    Some(format!(
        "The reply was complete {} after the next request on the connection, {}{}, which the client sent after {} of \
         silence: that request may have released the reply.",
        duration(reply - one.at_ns?),
        short_name(one),
        frame_words(one.request_frame),
        duration(one.at_ns?)
    ))
}

fn timer(timer: &Timer) -> String {
    let others = match timer.operations {
        0 => String::new(),
        1 => "1 other operation took the same time within 1 %: ".to_owned(),
        n => format!("{} other operations took the same time within 1 %: ", count(n)),
    };
    let what = match timer.name {
        Some(name) => format!(
            "a timer of {} is suspected; {name} has this constant.",
            duration(timer.constant_ns)
        ),
        None => format!(
            "a timer of about {} is suspected (not one that smbscope knows).",
            duration(timer.constant_ns)
        ),
    };
    let mut text = format!("{others}{what}");
    if let Some(first) = text.get(..1).map(str::to_uppercase) {
        text.replace_range(..1, &first);
    }
    text
}

/// Whether the time is usual for operations of this kind.
fn usual(why: &Explanation) -> Option<String> {
    let likes = &why.likes;
    let (elapsed, median) = (why.operation.brief.elapsed_ns?, likes.p50_ns?);
    let times = likes.times_median?;
    if times < UNUSUAL && elapsed >= SLOW_MIN_NS {
        return Some(format!("That is usual for its kind: the median is {}.", duration(median)));
    }
    (elapsed < SLOW_MIN_NS).then(|| "That is not slow.".to_owned())
}

/// How unusual it is among operations of its kind.
pub(super) fn likes(why: &Explanation) -> String {
    let likes = &why.likes;
    let size = match (likes.from_bytes, likes.below_bytes) {
        (Some(from), Some(below)) => format!(" of {} to {}", bytes(from), bytes(below)),
        _ => String::new(),
    };
    let detail = likes.detail.as_ref().filter(|detail| likes.command.as_ref() != Some(*detail));
    let detail = detail.map_or(String::new(), |detail| format!(" ({detail})"));
    let command = likes.command.as_deref().unwrap_or("unknown");
    let kind = format::sanitized(&format!("{command}{detail}{size}"));
    let waits = if why.operation.brief.waits { ", waiting by design" } else { "" };
    if likes.operations == 0 || why.operation.brief.elapsed_ns.is_none() {
        return format!("{kind}{waits}: {} with a time.", operations(likes.operations));
    }
    let rank = match likes.slower {
        _ if likes.operations == 1 => "the only one".to_owned(),
        0 => format!("the slowest of {}", count(likes.operations)),
        slower => format!("{} of {} took longer", count(slower), count(likes.operations)),
    };
    let mut text = format!("{kind}{waits}: {rank}");
    if let (Some(p50), Some(p95), Some(max)) = (likes.p50_ns, likes.p95_ns, likes.max_ns) {
        text.push_str(&format!(
            "; median {}, p95 {}, longest {}",
            duration(p50),
            duration(p95),
            duration(max)
        ));
        if let Some(times) = likes.times_median.filter(|times| *times >= UNUSUAL) {
            text.push_str(&format!("; {} times the median", number(times)));
        }
    } else if let Some(max) = likes.max_ns.filter(|_| likes.operations > 1) {
        text.push_str(&format!("; longest {}, too few for percentiles", duration(max)));
    }
    text.push('.');
    if likes.same_duration_any > 0 && why.operation.brief.elapsed_ns >= Some(SLOW_MIN_NS) {
        text.push_str(&format!(
            " Others with the same time within 1 %: {} of this kind, {} of any.",
            count(likes.same_duration),
            count(likes.same_duration_any)
        ));
    }
    text
}

/// Whether it waited for its neighbours or they for it.
pub(super) fn blocking(why: &Explanation) -> String {
    let found = &why.neighbours;
    let mut text = match found.blocking {
        Blocking::Alone => return alone(found.waiting),
        _ => counts(why),
    };
    text.push_str(match found.blocking {
        Blocking::OnlyThis => " Requests that were sent later were answered first, so the connection was not blocked: only this request waited.",
        Blocking::Replies => " Their replies were on the wire for most of its wait.",
        Blocking::Behind => " It was answered just after requests that were sent before it: it waited in a line with them.",
        Blocking::OthersWaited => " No request that was sent after it was answered before it: they waited for the same thing, or for it.",
        Blocking::Alone | Blocking::Unknown => "",
    });
    if found.waiting > 0 {
        text.push_str(&format!(" {} by design.", waiting(found.waiting)));
    }
    text
}

/// How many requests there were with it.
fn counts(why: &Explanation) -> String {
    let found = &why.neighbours;
    let mut parts = Vec::new();
    if found.in_flight > 0 {
        parts.push(format!(
            "{} in flight when it was sent ({} answered while it waited)",
            requests(found.in_flight),
            count(found.in_flight_answered)
        ));
    }
    if found.sent > 0 {
        parts.push(format!(
            "{} sent while it waited ({} answered before it)",
            requests(found.sent),
            count(found.sent_answered)
        ));
    }
    format!("{}.", parts.join(", "))
}

fn alone(others: u64) -> String {
    match others {
        0 => "no other request was in flight or sent while it waited.".to_owned(),
        n => format!(
            "no other request was in flight or sent while it waited, except for {} by design.",
            waiting(n).to_lowercase()
        ),
    }
}

fn waiting(n: u64) -> String {
    match n {
        1 => "1 request that waits".to_owned(),
        n => format!("{} requests that wait", count(n)),
    }
}

fn requests(n: u64) -> String {
    format!("{} {}", count(n), if n == 1 { "request" } else { "requests" })
}

fn operations(n: u64) -> String {
    format!("{} {}", count(n), if n == 1 { "operation" } else { "operations" })
}

/// Command and detail.
pub(super) fn short_name(brief: &Brief) -> String {
    let command = brief.command.as_deref().unwrap_or("(unknown)");
    // The detail of a Lock is Lock, too.
    let detail = brief.detail.as_deref().filter(|detail| *detail != command);
    let detail = detail.map_or(String::new(), |detail| format!(" {detail}"));
    format::sanitized(&format!("{command}{detail}"))
}

/// The status unless it is success.
pub(super) fn status(brief: &Brief) -> String {
    let status = brief.status.as_deref().filter(|status| *status != "STATUS_SUCCESS");
    status.map_or(String::new(), |status| format!(" {}", format::sanitized(status)))
}

/// Command, detail, size and path, as the subject of a sentence.
fn full_name(brief: &Brief, is_encrypted: bool) -> String {
    if brief.command.is_none() {
        let what = if is_encrypted {
            "An encrypted operation"
        } else {
            "An operation whose request was not recorded"
        };
        return what.to_owned();
    }
    let range = match (brief.offset_bytes, brief.bytes) {
        (Some(offset), Some(size)) => format!(" of {} at {}", bytes(size), bytes(offset)),
        _ => String::new(),
    };
    let path = brief.path.as_deref().filter(|path| !path.is_empty());
    let path = path.map_or(String::new(), |path| format!(" on {}", format::sanitized(path)));
    format!("{}{range}{path}", short_name(brief))
}
