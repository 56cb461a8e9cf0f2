//! Compounds, protection, handles, and the connections with their transport and credits.

use smbscope_analysis::summary::{ConnectionRow, Count, Report};

use crate::answers::recording::fields::{column, distribution, fact, field};
use crate::document::{Block, Cell, Facts, Section, Table};
use crate::value::format;

pub(crate) fn compounds(report: &Report) -> Section {
    let compounds = &report.compounds;
    let of = |name: &str, value: Cell| fact("compounds", name, value);
    let mut blocks = Vec::new();
    if compounds.members > 0 {
        let mut rows = vec![
            of("chains", Cell::Count(compounds.chains)),
            of("members", Cell::Count(compounds.members))
                .noted(format!("{} of all operations", format::share(compounds.members_share))),
            of("related", Cell::Count(compounds.related)),
            of("largest", Cell::Count(compounds.largest)),
        ];
        if compounds.incomplete > 0 {
            rows.push(of("incomplete", Cell::Count(compounds.incomplete)));
        }
        blocks.push(Block::Facts(Facts { caption: "Compound chains".to_owned(), rows }));
        let columns = vec![
            column("count", "name", 0, |row: &Count| Cell::Text(row.name.clone())).titled("Chain"),
            column("count", "count", 0, |row: &Count| Cell::Count(row.count)).titled("Chains"),
        ];
        blocks.push(Block::Table(
            Table::new(
                "What chains consist of",
                field("compounds", "patterns").help,
                &compounds.patterns,
                columns,
            )
            .cut(10, 40, "select compound, string_agg(command, '+' order by compound_index) from operations where compound is not null group by compound"),
        ));
        if compounds.others > 0 {
            blocks.push(Block::Note(format!(
                "{} chains have patterns past the limit on their number.",
                format::count(compounds.others)
            )));
        }
    }
    Section {
        id: "compounds",
        title: "Compounding",
        help: "A compound carries several operations in one message and saves a round trip for each operation after the first.",
        blocks,
    }
}

pub(crate) fn protection(report: &Report) -> Section {
    let all = report.totals.tally.operations;
    let part = |count: u64| match all {
        0 => String::new(),
        _ => format!("{} of all operations", format::share(count as f64 / all as f64)),
    };
    let protection = &report.protection;
    let of =
        |name: &str, count: u64| fact("protection", name, Cell::Count(count)).noted(part(count));
    let wire = Facts {
        caption: "On the wire".to_owned(),
        rows: vec![
            of("signed", protection.signed),
            of("encrypted", protection.encrypted),
            of("encrypted_unread", protection.encrypted_unread),
            of("compressed", protection.compressed),
            fact("protection", "dialects", words(&protection.dialects)),
        ],
    };
    let (sessions, trees) = (&report.sessions, &report.trees);
    let of = |name: &str, count: u64| fact("sessions", name, Cell::Count(count));
    let logons = Facts {
        caption: "Sessions and trees".to_owned(),
        rows: vec![
            of("sessions", sessions.sessions),
            fact("sessions", "mechanisms", words(&sessions.mechanisms)),
            of("guests", sessions.guests),
            of("encrypted", sessions.encrypted).titled("Sessions that require encryption"),
            of("multichannel", sessions.multichannel)
                .noted(format!("most connections of one: {}", sessions.channels_max)),
            fact("trees", "trees", Cell::Count(trees.trees)),
            fact("trees", "continuously_available", Cell::Count(trees.continuously_available)),
            fact("trees", "encrypted", Cell::Count(trees.encrypted))
                .titled("Trees that require encryption"),
        ],
    };
    let handles = &report.handles;
    let of = |name: &str, count: u64| fact("handles", name, Cell::Count(count));
    let open = &handles.open;
    let opens = Facts {
        caption: "Opens, leases and breaks".to_owned(),
        rows: vec![
            of("handles", handles.handles),
            of("opened_before", handles.opened_before),
            of("still_open", handles.still_open),
            of("never_used", handles.never_used),
            of("directories", handles.directories),
            of("durable", handles.durable),
            of("persistent", handles.persistent),
            of("write_through", handles.write_through),
            fact("handles", "open", Cell::duration(open.p50_ns)).noted(match open.max_ns {
                Some(max) => format!(
                    "median; p95 {}, max {} (n {})",
                    open.p95_ns.map_or_else(String::new, format::duration),
                    format::duration(max),
                    format::count(open.n)
                ),
                None => "not known for any open".to_owned(),
            }),
            fact("handles", "oplocks", words(&handles.oplocks)),
            fact("handles", "leases", words(&handles.leases)),
            fact("breaks", "breaks", Cell::Count(report.breaks.breaks))
                .noted(format!("{} acknowledged", format::count(report.breaks.acknowledgements))),
            fact("breaks", "changes", words(&report.breaks.changes)),
        ],
    };
    Section {
        id: "protection",
        title: "Signing, encryption, dialects, leases",
        help: "How the traffic was protected, which sessions and opens there were, and which oplocks and leases were revoked.",
        blocks: vec![Block::Facts(wire), Block::Facts(logons), Block::Facts(opens)],
    }
}

/// "RWH: 12, RH: 3".
fn words(words: &[Count]) -> Cell {
    if words.is_empty() {
        return Cell::Empty;
    }
    let shown = words.iter().take(12);
    let mut list: Vec<_> =
        shown.map(|word| format!("{}: {}", word.name, format::count(word.count))).collect();
    if words.len() > 12 {
        list.push("…".to_owned());
    }
    Cell::Text(list.join(", "))
}

fn both(to_server: u64, to_client: u64) -> Cell {
    match (to_server, to_client) {
        (0, 0) => Cell::Empty,
        _ => Cell::Text(format!("{} / {}", format::count(to_server), format::count(to_client))),
    }
}

pub(crate) fn connections(report: &Report) -> Section {
    let connections = &report.connections;
    let of = |name: &str, value: Cell| fact("connections", name, value);
    let mut rows = vec![
        of("connections", Cell::Count(connections.connections)),
        of("bytes_to_server", Cell::Bytes(connections.bytes_to_server)),
        of("bytes_to_client", Cell::Bytes(connections.bytes_to_client)),
    ];
    // A source without packets does not know about losses.
    if connections.packets > 0 {
        rows.insert(1, of("packets", Cell::Count(connections.packets)));
        rows.extend([
            of("retransmissions", Cell::Count(connections.retransmissions))
                .noted(per_packets(connections.retransmissions, connections.packets)),
            of("out_of_order", Cell::Count(connections.out_of_order)),
            of("gaps", Cell::Count(connections.gaps)).noted(match connections.gap_bytes {
                0 => String::new(),
                bytes => format!("{} missing", format::bytes(bytes)),
            }),
            of("zero_windows", Cell::Count(connections.zero_windows)),
            of("resets", Cell::Count(connections.resets)),
        ]);
    }
    let mut blocks = vec![Block::Facts(Facts { caption: "All connections".to_owned(), rows })];
    if !connections.rows.is_empty() {
        let tables = [transport(&connections.rows), protocol(&connections.rows)];
        for mut table in tables.into_iter().chain(rdma(&connections.rows)) {
            table.total = connections.connections;
            blocks.push(Block::Table(table));
        }
    }
    if connections.others > 0 {
        blocks.push(Block::Note(format!(
            "The times of operations are unknown for {} connections beyond the limit.",
            format::count(connections.others)
        )));
    }
    Section {
        id: "connections",
        title: "Connections",
        help: "The TCP connections, and the credits that limit operations in flight. Pairs of values are client to server / server to client.",
        blocks,
    }
}

fn per_packets(count: u64, packets: u64) -> String {
    match packets {
        0 => String::new(),
        _ => format!("{} of packets", format::share(count as f64 / packets as f64)),
    }
}

fn name(row: &ConnectionRow) -> Cell {
    let c = &row.connection;
    let address = |host: &str, port: u64| {
        if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
    };
    // It has no operations, and neither losses nor windows.
    let transport = if c.transport.as_deref() == Some("quic") { " (QUIC)" } else { "" };
    Cell::Text(format!(
        "{} → {}{transport}",
        address(&c.client, c.client_port),
        address(&c.server, c.server_port)
    ))
}

const SQL: &str = "select * from connections order by operations desc";

fn transport(rows: &[ConnectionRow]) -> Table {
    let of = "connection_row";
    let mut columns = vec![
        column(of, "client", 0, name).titled("Connection"),
        column(of, "operations", 1, |row: &ConnectionRow| Cell::Count(row.connection.operations)),
        column(of, "busy_share", 1, |row: &ConnectionRow| Cell::Share(row.busy_share)),
        column(of, "vantage", 1, |row: &ConnectionRow| Cell::text(&row.connection.vantage))
            .titled("Taken at"),
        column(of, "client_rtt_ns", 0, |row: &ConnectionRow| {
            Cell::duration(row.connection.client_rtt_ns)
        })
        .titled("Client side")
        .grouped("Round trip"),
        column(of, "client_rtt_samples", 3, |row: &ConnectionRow| {
            Cell::Count(row.connection.client_rtt_samples)
        })
        .titled("n")
        .grouped("Round trip"),
        column(of, "server_rtt_ns", 0, |row: &ConnectionRow| {
            Cell::duration(row.connection.server_rtt_ns)
        })
        .titled("Server side")
        .grouped("Round trip"),
        column(of, "server_rtt_samples", 3, |row: &ConnectionRow| {
            Cell::Count(row.connection.server_rtt_samples)
        })
        .titled("n")
        .grouped("Round trip"),
        column(of, "retransmissions_to_server", 0, |row: &ConnectionRow| {
            both(row.connection.retransmissions_to_server, row.connection.retransmissions_to_client)
        })
        .titled("Retransmitted"),
        column(of, "out_of_order_to_server", 3, |row: &ConnectionRow| {
            both(row.connection.out_of_order_to_server, row.connection.out_of_order_to_client)
        })
        .titled("Out of order"),
        column(of, "gaps_to_server", 2, |row: &ConnectionRow| {
            both(row.connection.gaps_to_server, row.connection.gaps_to_client)
        })
        .titled("Gaps"),
        column(of, "zero_windows_to_server", 2, |row: &ConnectionRow| {
            both(row.connection.zero_windows_to_server, row.connection.zero_windows_to_client)
        })
        .titled("Zero windows"),
        column(of, "client_window_max", 2, |row: &ConnectionRow| {
            Cell::bytes(row.connection.client_window_max)
        })
        .titled("Client")
        .grouped("Largest window"),
        column(of, "server_window_max", 2, |row: &ConnectionRow| {
            Cell::bytes(row.connection.server_window_max)
        })
        .titled("Server")
        .grouped("Largest window"),
        column(of, "in_flight_max_to_server", 3, |row: &ConnectionRow| {
            Cell::Bytes(row.connection.in_flight_max_to_server)
        })
        .titled("To server")
        .grouped("Most unacknowledged"),
        column(of, "in_flight_max_to_client", 3, |row: &ConnectionRow| {
            Cell::Bytes(row.connection.in_flight_max_to_client)
        })
        .titled("To client")
        .grouped("Most unacknowledged"),
        column(of, "window_bound_bits_per_second", 1, |row: &ConnectionRow| {
            rate(row.bound.window_bound_bits_per_second)
        })
        .titled("By bytes in flight")
        .grouped("TCP carries at most"),
        column(of, "loss_bound_bits_per_second", 2, |row: &ConnectionRow| {
            rate(row.bound.loss_bound_bits_per_second)
        })
        .titled("By loss")
        .grouped("TCP carries at most"),
        column(of, "bytes_to_server", 1, |row: &ConnectionRow| {
            Cell::Bytes(row.connection.bytes_to_server)
        })
        .titled("To server")
        .grouped("TCP payload"),
        column(of, "bytes_to_client", 1, |row: &ConnectionRow| {
            Cell::Bytes(row.connection.bytes_to_client)
        })
        .titled("To client")
        .grouped("TCP payload"),
    ];
    columns
        .extend(distribution(of, "elapsed", [3, 2, 2, 3, 3], |row: &ConnectionRow| &row.elapsed));
    columns.push(column(of, "end_reason", 3, |row: &ConnectionRow| {
        Cell::Text(row.connection.end_reason.clone())
    }));
    Table::new(
        "Connections: transport",
        "Round trips on each side of the capture point, losses, windows and bytes of the connections with the most operations.",
        rows,
        columns,
    )
    .cut(10, 50, SQL)
}

fn rate(bits_per_second: Option<f64>) -> Cell {
    bits_per_second.map_or(Cell::Empty, |bits| Cell::Measure(bits, format::bits(bits)))
}

/// What RDMA did, if it carries any of the connections.
fn rdma(rows: &[ConnectionRow]) -> Option<Table> {
    let of = "connection_row";
    let is_rdma = |row: &ConnectionRow| row.connection.rdma_bytes.is_some();
    if !rows.iter().any(is_rdma) {
        return None;
    }
    let columns = vec![
        column(of, "client", 0, name).titled("Connection"),
        column(of, "transport", 0, |row: &ConnectionRow| Cell::text(&row.connection.transport)),
        column(of, "queue_pair_client", 2, |row: &ConnectionRow| {
            Cell::count(row.connection.queue_pair_client)
        })
        .titled("Client")
        .grouped("Queue pair"),
        column(of, "queue_pair_server", 2, |row: &ConnectionRow| {
            Cell::count(row.connection.queue_pair_server)
        })
        .titled("Server")
        .grouped("Queue pair"),
        column(of, "rdma_reads", 0, |row: &ConnectionRow| Cell::count(row.connection.rdma_reads)),
        column(of, "rdma_writes", 0, |row: &ConnectionRow| Cell::count(row.connection.rdma_writes)),
        column(of, "rdma_bytes", 0, |row: &ConnectionRow| Cell::bytes(row.connection.rdma_bytes)),
        column(of, "naks", 0, |row: &ConnectionRow| Cell::count(row.connection.naks)),
    ];
    let help = "What RDMA moved for the connections with the most operations.";
    Some(Table::new("Connections: RDMA", help, rows, columns).cut(10, 50, SQL))
}

fn protocol(rows: &[ConnectionRow]) -> Table {
    let of = "connection_row";
    let columns = vec![
        column(of, "client", 0, name).titled("Connection"),
        column(of, "dialect", 0, |row: &ConnectionRow| Cell::text(&row.connection.dialect)),
        column(of, "signed", 0, |row: &ConnectionRow| Cell::some(row.connection.signed)),
        column(of, "signing_algorithm", 2, |row: &ConnectionRow| {
            Cell::text(&row.connection.signing_algorithm)
        }),
        column(of, "encrypted", 0, |row: &ConnectionRow| Cell::some(row.connection.encrypted)),
        column(of, "cipher", 2, |row: &ConnectionRow| Cell::text(&row.connection.cipher)),
        column(of, "compounds", 2, |row: &ConnectionRow| Cell::some(row.connection.compounds)),
        column(of, "breaks", 1, |row: &ConnectionRow| Cell::some(row.connection.breaks)),
        column(of, "leases", 1, |row: &ConnectionRow| words(&row.leases)),
        column(of, "oplocks", 3, |row: &ConnectionRow| words(&row.oplocks)),
        column(of, "credit_charge", 2, |row: &ConnectionRow| Cell::Count(row.credit_charge))
            .titled("Charged")
            .grouped("Credits"),
        column(of, "credits_requested", 3, |row: &ConnectionRow| {
            Cell::Count(row.credits_requested)
        })
        .titled("Asked")
        .grouped("Credits"),
        column(of, "credits_granted", 2, |row: &ConnectionRow| Cell::Count(row.credits_granted))
            .titled("Granted")
            .grouped("Credits"),
        column(of, "credits_min", 1, |row: &ConnectionRow| Cell::count(row.connection.credits_min))
            .titled("Fewest")
            .grouped("Credits"),
        column(of, "credits_max", 1, |row: &ConnectionRow| Cell::Count(row.connection.credits_max))
            .titled("Most")
            .grouped("Credits"),
        column(of, "outstanding_max", 1, |row: &ConnectionRow| {
            Cell::Count(row.connection.outstanding_max)
        })
        .titled("Most in flight"),
        column(of, "max_read_bytes", 3, |row: &ConnectionRow| {
            Cell::bytes(row.connection.max_read_bytes)
        })
        .titled("MaxRead"),
        column(of, "max_write_bytes", 3, |row: &ConnectionRow| {
            Cell::bytes(row.connection.max_write_bytes)
        })
        .titled("MaxWrite"),
    ];
    Table::new(
        "Connections: protocol and credits",
        "Dialect, protection, leases and credits of the connections with the most operations.",
        rows,
        columns,
    )
    .cut(10, 50, SQL)
}

#[cfg(test)]
mod tests {
    use smbscope_tables::tables::Connection;

    use super::*;

    #[test]
    fn connections_over_quic_are_marked() {
        let of = |transport: &str| {
            let connection = Connection {
                client: "10.0.0.1".to_owned(),
                server: "fe80::2".to_owned(),
                server_port: 443,
                transport: Some(transport.to_owned()),
                ..Connection::default()
            };
            name(&ConnectionRow { connection, ..ConnectionRow::default() })
        };
        assert_eq!(of("quic"), Cell::Text("10.0.0.1:0 → [fe80::2]:443 (QUIC)".to_owned()));
        assert_eq!(of("tcp"), Cell::Text("10.0.0.1:0 → [fe80::2]:443".to_owned()));
    }

    #[test]
    fn connections_over_rdma_have_a_table_of_their_own() {
        let row = |rdma_bytes| ConnectionRow {
            connection: Connection {
                transport: Some("roce".into()),
                rdma_bytes,
                ..Connection::default()
            },
            ..ConnectionRow::default()
        };
        assert!(rdma(&[row(None)]).is_none(), "TCP alone");
        assert!(rdma(&[row(None), row(Some(7))]).is_some());
    }
}
