//! The fields of the plan of a namespace's move. It is data.

use smbscope_plan::namespace::stages::StageId;

use crate::document::by_field;
use crate::value::Format::*;
use crate::value::Presence::*;
use crate::value::{Closed, Fields, Object, Rows, all, values_of};

/// The objects of the plan of a namespace's move.
pub static FIELDS: Fields = Fields::new("namespace", objects, closed);

by_field! { column }

fn objects() -> Vec<Object> {
    all(OBJECTS)
}

/// Fields whose values are a closed list.
fn closed() -> Vec<Closed> {
    let stages: Vec<_> = StageId::ALL.iter().map(|stage| stage.name()).collect();
    vec![
        values_of("namespace_finding", "severity", &["high", "medium", "low"]),
        values_of("move_plan", "to", &["standalone", "domain_v1", "domain_v2", "samba"]),
        values_of("move_stage", "id", &stages),
        values_of("move_stage", "impact", &["nothing", "pause", "failures"]),
        values_of("move_command", "tool", &["any", "dfsutil", "power-shell"]),
        values_of("stage_progress", "id", &stages),
        values_of("stage_progress", "status", &["pending", "running", "done", "undone"]),
        values_of("gate_verdict", "stage", &stages),
    ]
}

#[rustfmt::skip]
pub(crate) const OBJECTS: &[Rows] = &[
    ("namespace_plan", "A namespace, the plan of its move, where it is, and what its gates say.", &[], &[
        ("version", "Version", Text, Always, "Version of smbscope that made it."),
        ("inputs", "Inputs", Texts, Always, "The files that were read."),
        ("verdict", "Verdict", Text, Always, "What it says first, in one sentence."),
        ("reasons", "Reasons", Texts, Always, "More sentences."),
        ("namespace", "Namespace", Object("namespace_summary"), Nullable, "The namespace that was read; null if only the state of a move was."),
        ("findings", "Findings", List("namespace_finding"), Always, "What is wrong with it."),
        ("plan", "Plan", Object("move_plan"), Nullable, "The plan of the move."),
        ("progress", "Progress", List("stage_progress"), Always, "Where the move is; empty without a state file."),
        ("gates", "Gates", List("gate_verdict"), Always, "What gates say now, the latest last."),
    ]),
    ("namespace_summary", "A namespace without its links.", &[], &[
        ("host", "Host", Text, Always, "The domain or server of its path."),
        ("name", "Name", Text, Always, "Its name."),
        ("kind", "Kind", Code, Nullable, "standalone, domain_v1 (Windows 2000 Server mode), domain_v2 (Windows Server 2008 mode) or samba; null if the input does not say it."),
        ("state", "State", Text, Always, "online, offline, or the number of another state."),
        ("ttl_s", "TTL, s", Count, Nullable, "How long clients keep the list of namespace servers, s."),
        ("links", "Links", Count, Always, "Number of links."),
        ("targets", "Targets", Count, Always, "Number of targets of links."),
        ("servers", "Namespace servers", List("namespace_server"), Always, "Its namespace servers."),
        ("target_servers", "Servers of targets", List("namespace_target"), Always, "Servers that links lead to, the most used first; at most 1,000."),
    ]),
    ("namespace_server", "A namespace server.", &[], &[
        ("server", "Server", Text, Always, "Its name as written."),
        ("share", "Share", Text, Always, "The share of the root."),
        ("state", "State", Text, Always, "online, offline, or the number of another state."),
    ]),
    ("namespace_target", "A server that links lead to.", &[], &[
        ("server", "Server", Text, Always, "Its name as written."),
        ("targets", "Targets", Count, Always, "Targets of links on it."),
    ]),
    ("namespace_finding", "Something that is wrong with a namespace.", &[], &[
        ("severity", "Severity", Code, Always, "high, medium or low."),
        ("about", "About", Text, Always, "The link, server or file."),
        ("sentence", "Finding", Text, Always, "What is wrong, with the evidence."),
        ("repair", "Repair", Text, Nullable, "What to do."),
    ]),
    ("move_plan", "The plan of a move.", &[], &[
        ("root", "Root", Text, Always, "The path of the namespace."),
        ("host", "Host", Text, Always, "The domain of its path."),
        ("domains", "Domains", Texts, Always, "Names of the domain, and of other domains that links lead to."),
        ("name", "Name", Text, Always, "Its name."),
        ("from", "From", Code, Nullable, "Its kind before; null if the input does not say it."),
        ("to", "To", Code, Always, "Its kind after."),
        ("new_servers", "New servers", Texts, Always, "Namespace servers that join, as in referrals after the move."),
        ("old_servers", "Old servers", Texts, Always, "Namespace servers that leave, as the namespace has them."),
        ("kept_servers", "Servers that stay", Texts, Always, "Namespace servers that stay."),
        ("rewritten_servers", "Rewritten servers", Texts, Always, "Short names of link targets, which the rewrite makes FQDNs."),
        ("links", "Links", Count, Always, "Number of links."),
        ("targets", "Targets", Count, Always, "Number of targets of links."),
        ("root_ttl_s", "TTL of the root, s", Count, Always, "How long clients keep the list of namespace servers, s."),
        ("link_ttl_s", "TTL of links, s", Count, Always, "The longest TTL of a link, s."),
        ("assumed", "Assumptions", Object("move_assumptions"), Always, "What the waits assume."),
        ("clients", "Clients", Texts, Always, "Clients whose caches the gates expect."),
        ("stages", "Stages", List("move_stage"), Always, "The stages in their order."),
        ("lost", "Not imported", List("move_lost"), Always, "What an import does not bring back."),
        ("notes", "Notes", Texts, Always, "Things to know before the first stage."),
    ]),
    ("move_assumptions", "What the waits of a move assume.", &[], &[
        ("sync_s", "Poll, s", Count, Always, "The interval at which namespace servers and domain controllers read the PDC emulator, s."),
        ("replication_s", "Replication, s", Count, Always, "How long the directory takes to replicate to all sites, s."),
        ("open_s", "Open files, s", Count, Always, "The longest time for which a client has files open without a break, s."),
        ("has_renewing_clients", "Old clients", Flag, Always, "Whether there are clients that renew the TTL on use."),
        ("asleep_s", "Sleep, s", Count, Always, "The longest sleep of a client that the waits cover, s."),
    ]),
    ("move_stage", "A stage of a move.", &[], &[
        ("id", "Stage", Code, Always, "Its name."),
        ("title", "Title", Text, Always, "What is done."),
        ("why", "Why", Text, Always, "Why it is done."),
        ("who", "Who", Text, Always, "The rights that its commands need."),
        ("requires", "Requires", Texts, Always, "What must be true before it begins."),
        ("steps", "Steps", List("move_step"), Always, "What is done, in this order."),
        ("takes", "Takes", Object("move_estimate"), Always, "How long it takes without its wait."),
        ("impact", "Impact", Code, Always, "nothing, pause or failures: what users notice."),
        ("users", "Users", Text, Always, "What users notice, in a sentence."),
        ("wait", "Wait", Object("move_wait"), Nullable, "How long to wait at most; null without a wait."),
        ("since", "Since", Code, Nullable, "The stage whose change is waited for."),
        ("gate", "Gate", Code, Nullable, "short-ttl, new-listed, old-gone or links-rewritten: what clients must show before the next stage; null without a gate."),
        ("undo", "Undo", List("move_step"), Always, "How to go back."),
        ("undo_note", "Undo, note", Text, Always, "How to go back where commands are not enough; can be empty."),
    ]),
    ("move_step", "One thing to do.", &[], &[
        ("does", "Step", Text, Always, "What it does."),
        ("place", "Place", Text, Always, "Where it runs."),
        ("commands", "Commands", List("move_command"), Always, "Alternatives: one of them is run."),
        ("shows", "Shows", Text, Always, "What shows that it worked; can be empty."),
    ]),
    ("move_command", "Lines of one tool.", &[], &[
        ("tool", "Tool", Code, Always, "any, dfsutil or power-shell."),
        ("lines", "Lines", Texts, Always, "Lines for PowerShell."),
        ("note", "Note", Text, Always, "Something to know before it is run; can be empty."),
    ]),
    ("move_estimate", "How long a stage takes.", &[], &[
        ("least_s", "Least, s", Count, Always, "At least, s."),
        ("most_s", "Most, s", Count, Always, "At most, s."),
        ("because", "Because", Text, Always, "What it follows from."),
    ]),
    ("move_wait", "A waiting time.", &[], &[
        ("total_s", "Wait, s", Count, Always, "After this long no client that meets the assumptions holds the old list, s."),
        ("known_s", "Known after, s", Count, Always, "The part of it in which the change may be unknown to whom a client asks, s."),
        ("ttl_s", "TTL, s", Count, Always, "TTL of the lists that are waited for, s."),
        ("parts", "Parts", List("move_wait_part"), Always, "What it consists of."),
    ]),
    ("move_wait_part", "One reason to wait.", &[], &[
        ("seconds", "Time, s", Count, Always, "How long, s."),
        ("because", "Because", Text, Always, "The reason."),
    ]),
    ("move_lost", "Something that an import does not bring back.", &[], &[
        ("what", "Not imported", Text, Always, "What it is."),
        ("why", "Why", Text, Always, "Why it is not imported."),
        ("save", "Saved by", Object("move_step"), Always, "Saves it before."),
        ("restore", "Restored by", Object("move_step"), Nullable, "Brings it back; null if the new mode does not have it."),
    ]),
    ("stage_progress", "How far a stage is.", &[], &[
        ("id", "Stage", Code, Always, "Its name."),
        ("status", "Status", Code, Always, "pending, running, done or undone."),
        ("started_at_s", "Started", Count, Nullable, "When it began, s since 1970."),
        ("done_at_s", "Done", Count, Nullable, "When it was done, s since 1970."),
        ("forced", "Forced because", Text, Nullable, "Why it was done against its gate."),
        ("undone", "Undone because", Text, Nullable, "Why it was taken back."),
        ("gates", "Gate", List("gate_record"), Always, "What its gate said, the latest last; at most 100."),
    ]),
    ("gate_record", "What a gate said at a time.", &[], &[
        ("at_s", "At", Count, Always, "When, s since 1970."),
        ("is_go", "Go", Flag, Always, "Whether it was go."),
        ("judged", "Clients", Count, Always, "Clients that were judged."),
        ("held", "Held up by", Count, Always, "Clients that held it up."),
        ("missing", "Missing", Count, Always, "Expected clients without a cache."),
        ("names", "Names", Texts, Always, "Names of these, at most 100."),
        ("has_expected", "Has expected clients", Flag, Always, "Whether there was a list of expected clients."),
        ("waited_until_s", "Wait ends", Count, Nullable, "When the waiting time is over, s since 1970."),
        ("because", "Because", Texts, Always, "Why, one sentence each."),
    ]),
    ("gate_verdict", "Whether the next stage may begin.", &[], &[
        ("stage", "Stage", Code, Always, "The stage with the gate."),
        ("rule", "Rule", Code, Nullable, "What clients must show."),
        ("at_s", "At", Count, Always, "When it was judged, s since 1970."),
        ("is_go", "Go", Flag, Always, "Whether it is go."),
        ("judged", "Clients", Count, Always, "Clients that were judged."),
        ("ready", "Ready", Count, Always, "Clients that are ready."),
        ("held", "Held up by", List("gate_client"), Always, "Clients that hold it up, the latest first."),
        ("ready_clients", "Ready clients", List("gate_client"), Always, "Clients that are ready."),
        ("missing", "Missing", Texts, Always, "Expected clients without a cache or captured referral."),
        ("has_expected", "Has expected clients", Flag, Always, "Whether there is a list of expected clients."),
        ("undated", "Without a time", Count, Always, "Caches without a time, which were taken to be read now."),
        ("stale_answers", "Stale answers", List("stale_answer"), Always, "Servers that answer with the list from before the change."),
        ("until_s", "Until", Count, Nullable, "When the last client is ready, s since 1970; null if open files or missing clients decide."),
        ("waited_until_s", "Wait ends", Count, Nullable, "When the waiting time of the plan is over, s since 1970."),
        ("because", "Because", Texts, Always, "Why it is no-go, or what limits a go."),
    ]),
    ("gate_client", "A client at a gate.", &[], &[
        ("client", "Client", Text, Always, "Its name or address."),
        ("is_ready", "Ready", Flag, Always, "Whether it is ready."),
        ("reasons", "Because", List("gate_reason"), Always, "Why it is not."),
        ("ready_at_s", "Ready at", Count, Nullable, "When it is ready at the latest, s since 1970; null if it is, or if open files decide."),
        ("lists_new", "Lists new", Texts, Always, "New servers, and servers that stay, in its list."),
        ("lists_old", "Lists old", Texts, Always, "Old servers in its list."),
        ("uses", "Uses", Text, Nullable, "The namespace server that it uses."),
        ("open_files", "Open files", Count, Always, "Files that it has open through the namespace, as far as they were collected."),
        ("read_at_s", "Read at", Count, Nullable, "When its cache was read or its referral captured, s since 1970."),
        ("is_captured", "Captured", Flag, Always, "Whether it is known from a capture only."),
    ]),
    ("gate_reason", "Why a client is not ready.", &[], &[
        ("kind", "Kind", Code, Always, "lacks-new, holds-old, long-ttl, old-link, open-files, read-too-early, read-too-long-ago, unclear, no-failover or not-read."),
        ("entry", "Entry", Text, Always, "The entry of the cache, or an open file; can be empty."),
        ("servers", "Servers", Texts, Always, "Servers of the list, at most 8."),
        ("count", "Count", Count, Always, "How many lists or files."),
    ]),
    ("stale_answer", "A server that answers with the list from before a change.", &[], &[
        ("answered_by", "Answered by", Text, Always, "Its name or address."),
        ("at_s", "At", Count, Always, "When, s since 1970."),
        ("servers", "Servers", Texts, Always, "Servers of the answer, at most 8."),
    ]),
];
