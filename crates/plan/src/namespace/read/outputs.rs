//! Text with outputs of programs one after the other, and the prompts between them.
//!
//! Owns the order in which they are recognised line by line.

use super::fragments::after;
use super::{Context, Damage, Damaged, cache, objects, shares, view};
use crate::input::lines::Lines;

/// Lines that programs print around what is read.
const AROUND: [&str; 8] = [
    "DFS Utility Version",
    "Microsoft (R) DFS",
    "Microsoft(R) DFS",
    "Copyright ",
    "Done processing this command",
    "Done with",
    "The command completed successfully",
    "All rights reserved",
];

pub(super) fn read(text: &str, context: &mut Context<'_>) -> Damaged<()> {
    let mut lines = Lines::new(text);
    let mut caches = cache::Caches::new(context);
    let mut found = 0_usize;
    while let Some(line) = lines.peek() {
        let trimmed = line.trim();
        if trimmed.is_empty() || is_prompt(trimmed) {
            lines.skip(1);
        } else if cache::starts(trimmed) {
            caches.read(&mut lines)?;
            found += 1;
        } else if view::starts(trimmed) {
            view::read(&mut lines, context)?;
            found += 1;
        } else if shares::starts(&lines) {
            shares::read(&mut lines, context);
            found += 1;
        } else if let Some(table) = objects::table(&lines) {
            objects::read_table(&mut lines, &table, context)?;
            found += 1;
        } else if objects::list_starts(&lines) {
            objects::read_list(&mut lines, context)?;
            found += 1;
        } else {
            if !AROUND.iter().any(|known| after(trimmed, known).is_some()) {
                context.note(lines.number(), line);
            }
            lines.skip(1);
        }
    }
    found += usize::from(caches.finish(context));
    if found == 0 {
        return Err(Damage::new(
            1,
            "no known form; expected an export of dfsutil, dfsutil /view, LDIF, Get-DfsnRoot, -Folder, -FolderTarget or \
             -RootTarget as list, table, CSV, JSON or CliXML, commands New-Dfsn*, dfsutil cache referral, net share, net view, a \
             log of robocopy, smb.conf, or lines LINK<tab>msdfs:SERVER\\SHARE",
        ));
    }
    Ok(())
}

/// Whether a line is a command that was typed.
fn is_prompt(line: &str) -> bool {
    let is_drive = line.as_bytes().get(1..3) == Some(b":\\");
    (line.starts_with("PS ") || is_drive) && line.contains('>')
}
