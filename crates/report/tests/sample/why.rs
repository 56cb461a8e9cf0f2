//! An explanation with a value in every field.

use smbscope_analysis::explain::why::{
    Blocking, Break, BreakAnswer, Brief, Explanation, FoundBy, Holder, Likes, Neighbours,
    OpenHistory, Reason, Step, StepKind, Subject, Timer,
};

use super::HOSTILE;

const MS: i64 = 1_000_000;

/// An open that waits for a break.
pub fn explanation() -> Explanation {
    let brief = brief("Create", 0, 30_004);
    let step = |kind, ms| Step {
        kind,
        slice: None,
        is_part: false,
        at_ns: Some(0),
        duration_ns: Some(ms * MS),
        error_ns: Some(MS),
        frame: Some(7),
    };
    Explanation {
        found_by: FoundBy::Between,
        reason: Reason::BreakNotAcknowledged,
        reason_share: Some(0.99),
        operation: Subject {
            brief: brief.clone(),
            start_ns: Some(1_767_603_600_000_000_000),
            client_port: Some(50_000),
            server: Some("10.0.0.2".into()),
            server_port: Some(445),
            user: Some("LAB\\alice".into()),
            share: Some("\\\\nas\\home".into()),
            encrypted: false,
            pending_at_ns: Some(2 * MS),
            compound_size: Some(3),
            compound_member: None,
        },
        steps: vec![
            step(StepKind::RequestTransfer, 0),
            Step { duration_ns: None, error_ns: None, ..step(StepKind::Interim, 0) },
            step(StepKind::Server, 30_003),
            Step { is_part: true, ..step(StepKind::Break, 30_000) },
            Step { is_part: true, slice: Some("lock_wait"), ..step(StepKind::Slice, 30_000) },
            Step { is_part: true, slice: Some("disk"), ..step(StepKind::Slice, 1) },
            Step { is_part: true, ..step(StepKind::Unexplained, 2) },
            step(StepKind::Network, 1),
            step(StepKind::ResponseTransfer, 0),
        ],
        breaks: vec![broken(3, None), broken(9, Some(12)), broken(11, None)],
        breaks_count: 5,
        breaks_waited_ns: 30_000 * MS,
        waiters: vec![self::brief("Create", -3, 60)],
        holders: vec![Holder {
            brief: self::brief("Create", -100, 1),
            is_same_client: true,
            from_ns: -99 * MS,
            until_ns: Some(500 * MS),
            until_frame: Some(99),
        }],
        holders_count: 3,
        neighbours: Neighbours {
            blocking: Blocking::Behind,
            in_flight: 2,
            in_flight_answered: 1,
            sent: 20,
            sent_answered: 3,
            waiting: 1,
            released_by: Some(self::brief("Echo", 30_003, 1)),
            forwarded: Some(self::brief("Create", 1, 2)),
            blocker: Some(self::brief("Ioctl", -5, 30_000)),
            shown: vec![self::brief("Ioctl", -5, 30_000), Brief::default()],
            left_out: 20,
        },
        open: Some(OpenHistory {
            handle: 4,
            uses: 9,
            shown: vec![brief, self::brief("Read", 30_010, 2), self::brief("Close", 30_050, 1)],
        }),
        likes: Likes {
            command: Some("Create".into()),
            detail: Some("FILE_OPEN".into()),
            from_bytes: Some(4096),
            below_bytes: Some(8192),
            operations: 258,
            p50_ns: Some(9 * MS),
            p95_ns: Some(20 * MS),
            max_ns: Some(30_004 * MS),
            slower: 0,
            times_median: Some(3333.8),
            same_duration: 1,
            same_duration_any: 2,
        },
        timer: Some(Timer { constant_ns: 30_000 * MS, name: Some("a test"), operations: 2 }),
        filter: Some("tcp.port == 50000".into()),
        left_out: 4,
    }
}

fn brief(command: &str, at_ms: i64, ms: i64) -> Brief {
    Brief {
        recording: Some("monday.pcapng".into()),
        capture_file: Some("monday.pcapng".into()),
        operation: Some(120),
        connection: Some(1),
        client: Some("10.0.0.1".into()),
        command: Some(command.into()),
        detail: Some("FILE_OPEN".into()),
        path: Some(HOSTILE.into()),
        offset_bytes: Some(65_536),
        bytes: Some(4096),
        status: Some("STATUS_SHARING_VIOLATION".into()),
        at_ns: Some(at_ms * MS),
        elapsed_ns: Some(ms * MS),
        waits: false,
        request_frame: Some(7),
        response_frame: Some(12),
    }
}

fn broken(at_ms: i64, answer_ms: Option<i64>) -> Break {
    Break {
        is_lease: answer_ms.is_some(),
        client: Some("10.0.0.3".into()),
        client_port: Some(50_001),
        is_same_client: false,
        is_same_connection: false,
        at_ns: at_ms * MS,
        frame: Some(8),
        from: Some("RHW".into()),
        to: Some("R".into()),
        opened_frame: Some(4),
        needs_acknowledgement: Some(true),
        answer: answer_ms.map(|ms| BreakAnswer {
            is_close: false,
            at_ns: ms * MS,
            took_ns: (ms - at_ms) * MS,
            frame: Some(9),
            status: Some("STATUS_SUCCESS".into()),
        }),
        waited_ns: answer_ms.map_or(30_000, |ms| ms - at_ms) * MS,
    }
}
