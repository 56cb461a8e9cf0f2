//! What the Windows SMB server and client logged on their own.

use smbscope_analysis::summary::{Logged, LoggedOther};

use crate::answers::recording::fields::column;
use crate::document::{Block, Cell, Section, Table};

pub(crate) fn logged(rows: &[Logged], other: &[LoggedOther]) -> Option<Section> {
    let tables = [trouble(rows), without_trouble(other)];
    let blocks: Vec<_> = tables.into_iter().flatten().map(Block::Table).collect();
    (!blocks.is_empty()).then_some(Section {
        id: "logged",
        title: "Logged by Windows itself",
        help: "Events that the SMB server and client write on their own: they have no operations, so no share of the time. The most costly kinds first.",
        blocks,
    })
}

fn trouble(rows: &[Logged]) -> Option<Table> {
    let of = "logged";
    let names = |names: &[String]| match names {
        [] => Cell::Empty,
        names => Cell::Text(names.join(", ")),
    };
    let columns = vec![
        column(of, "title", 0, |row: &Logged| Cell::Text(row.title.to_owned())),
        column(of, "count", 0, |row: &Logged| Cell::Count(row.count)),
        column(of, "longest_ns", 0, |row: &Logged| Cell::duration(row.longest_ns)),
        column(of, "not_restored", 2, |row: &Logged| Cell::Count(row.not_restored)),
        column(of, "first_ns", 1, |row: &Logged| Cell::Time(row.first_ns)),
        column(of, "last_ns", 1, |row: &Logged| Cell::Time(row.last_ns)),
        column(of, "shares", 0, move |row: &Logged| names(&row.shares)),
        column(of, "clients", 0, move |row: &Logged| names(&row.clients)),
        column(of, "users", 2, move |row: &Logged| names(&row.users)),
        column(of, "servers", 0, move |row: &Logged| names(&row.servers)),
        column(of, "commands", 2, move |row: &Logged| names(&row.commands)),
        column(of, "statuses", 1, move |row: &Logged| names(&row.statuses)),
        column(of, "side", 1, |row: &Logged| Cell::Text(row.side.to_owned())),
        column(of, "remedy", 2, |row: &Logged| Cell::Text(row.remedy.to_owned())),
    ];
    let table = Table::new("Events by kind", "At most three names of each kind.", rows, columns);
    let query = "select kind, count(*), max(duration_ns) from server_events group by kind";
    (!rows.is_empty()).then(|| table.cut(12, 40, query))
}

fn without_trouble(rows: &[LoggedOther]) -> Option<Table> {
    let of = "logged_other";
    let columns = vec![
        column(of, "event", 0, |row: &LoggedOther| Cell::Text(row.event.to_string())),
        column(of, "count", 0, |row: &LoggedOther| Cell::Count(row.count)),
        column(of, "title", 0, |row: &LoggedOther| {
            row.title.map_or(Cell::Empty, |title| Cell::Text(title.to_owned()))
        }),
        column(of, "provider", 0, |row: &LoggedOther| Cell::Text(row.provider.clone())),
        column(of, "first_ns", 1, |row: &LoggedOther| Cell::Time(row.first_ns)),
        column(of, "last_ns", 1, |row: &LoggedOther| Cell::Time(row.last_ns)),
    ];
    let help = "Information, by the number of the event.";
    let table = Table::new("Events that report no trouble", help, rows, columns);
    let query = "select provider, event, count(*) from server_events group by 1, 2";
    (!rows.is_empty()).then(|| table.cut(8, 40, query))
}
