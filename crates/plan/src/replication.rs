//! Checks before a second server that holds the same data is set up: those that Test-SRTopology makes (Windows' Storage
//! Replica), and those of DRBD. What can be decided from a recording and the given link is decided; the rest is listed with
//! the command that decides it.
//!
//! It takes numbers and gives sentences. The arithmetic that yields the numbers is `smbscope_analysis::replication`: it
//! needs replays of recorded operations, and a dependency on it would make the tests of the other planners link Arrow.
//!
//! Sources: Microsoft's documentation of Storage Replica (requirements: round trip of 5 ms for synchronous copies, logs of
//! the same sector size on faster storage, at least 1 Gbit/s, TCP ports 445 and 5985 and ICMP, and 5445 for SMB Direct; limits of
//! Windows Server Standard), drbd.conf(5).

pub mod checks;
pub mod html;
pub mod topology_test;

/// Round trip that Storage Replica and its tests expect of synchronous copies at most, ns.
pub const SYNC_RTT_MAX_NS: i64 = 5_000_000;
/// Rate that its documentation recommends at least, bit/s.
pub const BANDWIDTH_MIN_BITS: f64 = 1e9;
/// The largest volume that it replicates in Windows Server Standard, bytes.
pub const STANDARD_BYTES_MAX: u64 = 2 << 40;
/// Its default log, bytes.
pub const LOG_DEFAULT_BYTES: u64 = 8 << 30;

/// The command that makes the checks which cannot be made from a recording.
pub const TEST_SR_TOPOLOGY: &str = "Test-SRTopology -SourceComputerName SOURCE -SourceVolumeName D: -SourceLogVolumeName E: \
     -DestinationComputerName DESTINATION -DestinationVolumeName D: -DestinationLogVolumeName E: -DurationInMinutes 30 \
     -ResultPath C:\\Temp";
