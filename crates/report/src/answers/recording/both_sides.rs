//! Requests of a client's log and of its server, joined.

use smbscope_analysis::both_sides::{BothSides, SidesOfCommand};

use crate::answers::recording::fields::column;
use crate::document::{Block, Cell, Section, Table};
use crate::value::format;

pub(crate) fn both_sides(sides: &BothSides) -> Section {
    let of = "sides_of_command";
    let mean = |ns: fn(&SidesOfCommand) -> f64| {
        move |row: &SidesOfCommand| match row.joined {
            0 => Cell::Empty,
            _ => Cell::duration(Some(ns(row).round() as i64)),
        }
    };
    let columns = vec![
        column(of, "command", 0, |row: &SidesOfCommand| Cell::Text(row.command.clone())),
        column(of, "client_requests", 1, |row: &SidesOfCommand| Cell::Count(row.client_requests)),
        column(of, "joined", 0, |row: &SidesOfCommand| Cell::Count(row.joined)),
        column(of, "total_ns", 0, mean(|row| row.total_ns)),
        column(of, "before_ns", 0, mean(|row| row.before_ns)),
        column(of, "server_ns", 0, mean(|row| row.server_ns)),
        column(of, "between_ns", 0, mean(|row| row.between_ns)),
        column(of, "between_p95_ns", 2, mean(|row| row.between_p95_ns as f64)),
        column(of, "after_ns", 0, mean(|row| row.after_ns)),
    ];
    let ahead_ns = sides.server_clock_ahead_ns;
    let clock = match ahead_ns {
        0 => "Both clocks agree.".to_owned(),
        _ => format!(
            "The server's clock is {} {} the client's.",
            format::duration(ahead_ns.saturating_abs()),
            if ahead_ns > 0 { "ahead of" } else { "behind" }
        ),
    };
    let mut note = format!(
        "{} of the client's {} requests were found among {} of the server. {clock} Elsewhere in this report both sides count.",
        format::count(sides.joined),
        format::count(sides.client_requests),
        format::count(sides.server_requests)
    );
    if sides.limited > 0 {
        note.push_str(&format!(" {} more requests were not joined.", format::count(sides.limited)));
    }
    Section {
        id: "both-sides",
        title: "Client and server",
        help: "Requests of the client's log and of the server's, joined by command, bytes, file and time. Between is what the client waited for the server beyond the server's own time: transport and network.",
        blocks: vec![
            Block::Note(note),
            Block::Table(Table::new("Mean times of joined requests", "", &sides.commands, columns)),
        ],
    }
}
