//! The screen's contents, with and without colour.

use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::buffer::Buffer;
use smbscope_analysis::live::{Key, Live, Options};
use smbscope_tables::builder::OperationBuilder;
use smbscope_tables::code;
use smbscope_tables::operation::Operation;

use super::*;
use crate::pipeline::record::source::Packets;

const S: i64 = 1_000_000_000;

/// Two seconds of a server that was looked into: reads by alice, a write by bob that took long, and an
/// escape sequence for a name.
fn live() -> Live {
    let mut builder = OperationBuilder::new(None).unwrap();
    let mut add = |command: u16, user: &str, ms: i64, slices: [i64; 3]| {
        let mut row = Operation::default();
        row.set_protocol(2);
        row.set_command(code::command(2, command));
        row.set_status(if user == "bob" { 0xc000_0022 } else { 0 });
        row.set_user(builder.names.user.intern(user));
        row.set_transferred_bytes(65_536);
        row.set_request_start(11 * S);
        row.set_request_end(11 * S);
        row.set_response_start(11 * S + ms * 1_000_000);
        row.set_response_end(11 * S + ms * 1_000_000);
        row.derive_durations();
        let [queue, processing, io] = slices.map(|percent| ms * 10_000 * percent);
        row.set_queue_ns(queue);
        row.set_processing_ns(processing);
        row.set_io_ns(io);
        builder.append(&[row]);
    };
    for _ in 0..20 {
        add(8, "alice", 1, [50, 50, 0]);
    }
    add(9, "bob", 180, [0, 25, 75]);
    add(16, "eve\u{1b}[2J", 1, [0, 100, 0]);
    let mut live = Live::new(Options::default(), 10 * S);
    live.operations(&builder.finish().unwrap()).unwrap();
    live.advance(12 * S);
    live
}

fn status() -> Status {
    Status {
        what: "3 processes of smbd on TCP port 445".into(),
        elapsed: Duration::from_secs(3_725),
        seen: Received {
            operations: 22,
            packets: Some(Packets { count: 99, bytes: 4_096, ..Packets::default() }),
            ..Received::default()
        },
        ..Status::default()
    }
}

fn drawn(state: &mut State, status: &Status, width: u16, colour: bool) -> Buffer {
    let mut terminal = Terminal::new(TestBackend::new(width, 16)).unwrap();
    let mut snapshot = live().snapshot(state.key, state.span);
    let rows = state.rows(&mut snapshot);
    state.scroll(rows.len(), page(16));
    let shown = Shown { state, status, snapshot: &snapshot, rows: &rows, colour };
    terminal.draw(|frame| draw(frame, &shown)).unwrap();
    terminal.backend().buffer().clone()
}

fn text(buffer: &Buffer) -> Vec<String> {
    let width = usize::from(buffer.area.width);
    let lines = buffer.content().chunks(width);
    let line = |cells: &[ratatui::buffer::Cell]| {
        cells.iter().map(ratatui::buffer::Cell::symbol).collect::<String>().trim_end().to_owned()
    };
    lines.map(line).collect()
}

#[test]
fn a_wide_screen_shows_every_column_and_a_bar() {
    let mut state = State { key: Key::User, ..State::default() };
    let lines = text(&drawn(&mut state, &status(), 160, false));
    insta::assert_snapshot!(lines.join("\n"));
}

#[test]
fn a_narrow_screen_keeps_what_matters_most() {
    let mut state = State { key: Key::User, sort: Sort::P99, ..State::default() };
    let lines = text(&drawn(&mut state, &status(), 80, false));
    let title = &lines[4];
    assert!(title.contains("Ops/s") && title.contains("p99▼") && title.contains("Where the"));
    assert!(!title.contains("p95") && lines.iter().all(|line| line.chars().count() <= 80));
    assert!(lines[5].starts_with("bob "), "{lines:?}");
    // Nothing panics on a screen of no use.
    for width in [1, 5, 20, 40] {
        drawn(&mut state, &status(), width, true);
    }
}

#[test]
fn what_has_no_room_is_left_out_whole() {
    let mut state = State { key: Key::User, ..State::default() };
    let widest = text(&drawn(&mut state, &status(), 200, false));
    let words = |line: &str| line.split(", ").map(str::to_owned).collect::<Vec<_>>();
    for width in 20..120 {
        let lines = text(&drawn(&mut state, &status(), width, false));
        for line in [1, 2] {
            let (all, shown) = (words(&widest[line]), words(&lines[line]));
            let is_whole = shown.iter().all(|word| word.is_empty() || all.contains(word));
            assert!(is_whole, "{width}: {}", lines[line]);
        }
        assert!(width < 70 || lines[1].contains("p99 180 ms"), "{width}: {}", lines[1]);
        let legend = &lines[lines.len() - 2];
        assert!(!legend.contains('I') || legend.contains("I I/O"), "{width}: {legend}");
    }
}

#[test]
fn bars_are_letters_and_with_colour_also_coloured() {
    let mut state = State { key: Key::User, ..State::default() };
    let plain = drawn(&mut state, &status(), 120, false);
    let coloured = drawn(&mut state, &status(), 120, true);
    assert_eq!(text(&plain), text(&coloured), "the same without colour");
    let line = &text(&plain)[5];
    let bar = line.rsplit(' ').next().unwrap();
    let (queue, processing) = bar.split_at(bar.find('P').unwrap());
    assert!(line.starts_with("alice") && queue.chars().all(|c| c == 'Q'), "{line}");
    assert!(queue.len().abs_diff(processing.len()) <= 1, "{bar}");
    assert!(plain.content().iter().all(|cell| cell.fg == Color::Reset && cell.bg == Color::Reset));
    assert!(coloured.content().iter().any(|cell| cell.bg
        == parts::colour(smbscope_analysis::live::Part::Slice(
            smbscope_tables::slice::Kind::Queue
        ))));
    let names = text(&plain).join("\n");
    assert!(names.contains("eve\\u{1b}[2J"), "text from outside is harmless: {names}");
    assert!(names.contains("Q queue") && names.contains("P processing") && names.contains("I I/O"));
}

#[test]
fn what_is_wrong_or_under_way_stands_out() {
    let mut status = status();
    status.seen.packets = Some(Packets { dropped: 7, ..Packets::default() });
    status.recording = Some(("run-1".into(), Duration::from_secs(12)));
    status.message = "recording to run-1".into();
    let mut state = State { paused: true, filter: "ALI".into(), ..State::default() };
    state.key = Key::User;
    let buffer = drawn(&mut state, &status, 120, true);
    let lines = text(&buffer);
    for wanted in [
        "1:02:05",
        "PAUSED",
        "7 dropped",
        "RECORDING 12 s",
        "to run-1",
        "only names with \"ALI\"",
        "recording to run-1",
    ] {
        assert!(lines.iter().any(|line| line.contains(wanted)), "{wanted}: {lines:?}");
    }
    let red: String = buffer
        .content()
        .iter()
        .filter(|cell| cell.fg == Color::Red)
        .map(|cell| cell.symbol())
        .collect();
    assert!(red.contains("7 dropped"), "{red}");
    assert!(lines.iter().any(|line| line.starts_with("alice")));
    assert!(!lines.iter().any(|line| line.starts_with("bob")), "filtered");
    // While it is typed, it replaces the message.
    state.typing = true;
    assert!(text(&drawn(&mut state, &status, 120, true))[3].starts_with("/ALI"));
    state.filter = "nobody".into();
    let lines = text(&drawn(&mut state, &status, 120, true));
    assert_eq!(lines[5], "no operations with such a name");
}

#[test]
fn the_keys_are_explained() {
    let mut state = State { help: true, ..State::default() };
    let lines = text(&drawn(&mut state, &status(), 100, true)).join("\n");
    assert!(lines.contains("any key goes back") && lines.contains("by command, share"), "{lines}");
}
