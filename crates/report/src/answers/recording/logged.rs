//! What the Windows SMB server and client logged on their own.

use smbscope_analysis::summary::Logged;

use crate::answers::recording::fields::column;
use crate::document::{Block, Cell, Section, Table};

pub(crate) fn logged(rows: &[Logged]) -> Option<Section> {
    if rows.is_empty() {
        return None;
    }
    let of = "logged";
    let names = |names: &[String]| match names {
        [] => Cell::Empty,
        names => Cell::Text(names.join(", ")),
    };
    let columns = vec![
        column(of, "title", 0, |row: &Logged| Cell::Text(row.title.to_owned())),
        column(of, "count", 0, |row: &Logged| Cell::Count(row.count)),
        column(of, "longest_ns", 0, |row: &Logged| Cell::duration(row.longest_ns)),
        column(of, "first_ns", 1, |row: &Logged| Cell::Time(row.first_ns)),
        column(of, "last_ns", 2, |row: &Logged| Cell::Time(row.last_ns)),
        column(of, "shares", 1, move |row: &Logged| names(&row.shares)),
        column(of, "clients", 0, move |row: &Logged| names(&row.clients)),
        column(of, "users", 2, move |row: &Logged| names(&row.users)),
        column(of, "servers", 1, move |row: &Logged| names(&row.servers)),
        column(of, "commands", 2, move |row: &Logged| names(&row.commands)),
        column(of, "statuses", 1, move |row: &Logged| names(&row.statuses)),
        column(of, "side", 1, |row: &Logged| Cell::Text(row.side.to_owned())),
        column(of, "remedy", 2, |row: &Logged| Cell::Text(row.remedy.to_owned())),
    ];
    Some(Section {
        id: "logged",
        title: "Logged by Windows itself",
        help: "Events that the SMB server and client write on their own: they have no operations, so no share of the time. The most costly kinds first.",
        blocks: vec![Block::Table(
            Table::new("Events by kind", "At most three names of each kind.", rows, columns).cut(
                12,
                40,
                "select kind, count(*), max(duration_ns) from server_events group by kind",
            ),
        )],
    })
}
