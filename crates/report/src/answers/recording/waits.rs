//! What clients waited for before SMB and apart from it.

use smbscope_analysis::explain::{Diagnosis, WaitGroup};

use crate::answers::diagnosis::fields::column;
use crate::document::{Block, Cell, Section, Table};

pub(crate) fn waits(diagnosis: &Diagnosis) -> Option<Section> {
    let rows = &diagnosis.waits;
    // Connections made at once are not worth a section.
    let is_news = |row: &WaitGroup| row.unanswered > 0 || row.kind != "connect";
    if !rows.iter().any(is_news) {
        return None;
    }
    let of = "wait_group";
    let names = |names: &[String]| match names {
        [] => Cell::Empty,
        names => Cell::Text(names.join(", ")),
    };
    let columns = vec![
        column(of, "kind", 0, |row: &WaitGroup| Cell::Code(row.kind.clone())),
        column(of, "protocol", 1, |row: &WaitGroup| Cell::Text(row.protocol.clone())),
        column(of, "server", 0, |row: &WaitGroup| Cell::Text(row.server.clone())),
        column(of, "subjects", 1, move |row: &WaitGroup| names(&row.subjects)),
        column(of, "n", 0, |row: &WaitGroup| Cell::Count(row.n)),
        column(of, "unanswered", 0, |row: &WaitGroup| Cell::Count(row.unanswered)),
        column(of, "attempts", 2, |row: &WaitGroup| Cell::Count(row.attempts)),
        column(of, "sum_ns", 0, |row: &WaitGroup| Cell::Duration(row.sum_ns)),
        column(of, "longest_ns", 0, |row: &WaitGroup| Cell::Duration(row.longest_ns)),
        column(of, "clients", 1, move |row: &WaitGroup| names(&row.clients)),
    ];
    Some(Section {
        id: "waits",
        title: "Waits outside of operations",
        help: "Names, connections, tickets and retransmitted data that clients waited for before SMB and apart from it. Without an answer, the time is that to the last attempt.",
        blocks: vec![Block::Table(
            Table::new("Waits by kind and server", "The longest sum first.", rows, columns).cut(
                8,
                20,
                "select kind, protocol, server, count(*), sum(coalesce(ended_at, last_attempt) - started_at) from waits group by 1, 2, 3",
            ),
        )],
    })
}
