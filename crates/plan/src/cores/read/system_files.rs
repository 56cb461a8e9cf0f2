//! Files below `/sys` and `/proc` with their contents, a line each, as `grep . FILES` prints them:
//! `/sys/class/net/eth0/device/numa_node:1`.

use super::Piece;
use crate::input::lines::Lines;

/// Files of one output.
const FILES_MAX: usize = 65_536;

pub(super) fn starts(line: &str) -> bool {
    file(line).is_some()
}

pub(super) fn read(lines: &mut Lines<'_>, pieces: &mut Vec<Piece>) {
    let mut files = Vec::new();
    while let Some((path, value)) = lines.peek().and_then(file) {
        if files.len() < FILES_MAX {
            files.push((path.to_owned(), value.to_owned()));
        }
        lines.skip(1);
    }
    pieces.push(Piece::SystemFiles(files));
}

/// Path without its leading slash, and content.
fn file(line: &str) -> Option<(&str, &str)> {
    let (path, value) = line.trim().strip_prefix('/')?.rsplit_once(':')?;
    let is_path = (path.starts_with("sys/") || path.starts_with("proc/")) && !path.contains(' ');
    is_path.then_some((path, value))
}
