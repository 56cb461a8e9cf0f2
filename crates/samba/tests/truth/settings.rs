//! Settings that change how data is moved: their rows are right.

use smbscope_client::Config;
use smbscope_tables::slice::Kind;

use crate::client::Client;
use crate::recorder::{Row, alone, slices_add_up};
use crate::wire::Joined;
use smbscope_testing::samba::{Samba, samba, samba_4_22};

const ROUNDS: usize = 20;
const SIZES: [usize; 3] = [4096, 65_536, 1 << 20];

/// Writes and reads of several sizes, recorded and captured; returns the rows of both.
fn run(lab: &Samba) -> Option<Vec<Row>> {
    let mut client = Client::connect(lab, Config::default());
    let first = client.open("file");
    let bytes = vec![7; SIZES[2]];
    // The pool then has its threads, and the next open knows the size, as sendfile requires.
    client.write(first, 0, &bytes);
    client.read(first, 0, 65_536);
    client.close(first);
    let file = client.open("file");
    let joined = Joined::from_lab(lab, || {
        for _ in 0..ROUNDS {
            for size in SIZES {
                client.write(file, 0, &bytes[..size]);
                assert_eq!(client.read(file, 0, size as u32) as usize, size);
            }
            client.flush(file);
        }
    })?;
    client.close(file);
    client.end();
    joined.check();
    assert_eq!(joined.recorded.progress.without_slices, 0);
    assert_eq!(slices_add_up(&joined.recorded.parts), ROUNDS * (2 * SIZES.len() + 1));
    let rows = joined.recorded.rows();
    for (command, size) in ["Write", "Read"].iter().flat_map(|c| SIZES.map(|size| (c, size))) {
        let fits = |row: &&Row| row.command == *command && row.transferred == Some(size as i64);
        let of: Vec<_> = rows.iter().filter(fits).collect();
        assert_eq!(of.len(), ROUNDS, "{command} of {size}");
        eprintln!("{size}: {}", of[ROUNDS / 2].told());
    }
    Some(rows)
}

fn set(lab: &mut smbscope_lab::Options, lines: &[(&str, &str)]) {
    lab.set.extend(lines.iter().map(|(name, value)| ((*name).into(), (*value).into())));
}

/// Rows of a command.
fn of<'a>(rows: &'a [Row], command: &'a str) -> impl Iterator<Item = &'a Row> {
    rows.iter().filter(move |row| row.command == command)
}

#[test]
fn plain() {
    let _alone = alone();
    let Some(lab) = samba(|_| {}) else { return };
    let Some(_rows) = run(&lab) else { return };
}

#[test]
fn with_sendfile() {
    let _alone = alone();
    // smbd uses it only for reads that its pool does not do.
    let change = |options: &mut _| set(options, &[("use sendfile", "yes"), ("aio read size", "0")]);
    let Some(lab) = samba(change) else { return };
    let Some(rows) = run(&lab) else { return };
    assert!(of(&rows, "Read").all(|row| row.slice(Kind::Io).is_none()));
}

#[test]
fn with_receivefile() {
    let _alone = alone();
    let change = |options: &mut _| set(options, &[("min receivefile size", "16384")]);
    let Some(lab) = samba(change) else { return };
    let Some(_rows) = run(&lab) else { return };
}

#[test]
fn with_io_uring() {
    let _alone = alone();
    let Some(dir) = samba_4_22() else { return };
    let module = dir.join("root/usr/lib/x86_64-linux-gnu/samba/vfs/io_uring.so");
    if !module.exists() {
        return smbscope_testing::skip!("no vfs_io_uring in {}", dir.display());
    }
    // smbd searches its compiled-in folder: it is made to find its own libraries there.
    let mine = dir.join("root/usr/lib/x86_64-linux-gnu/samba").display().to_string();
    let mount = "mount --bind \"$0\" /usr/lib/x86_64-linux-gnu/samba && exec \"$@\"";
    let change = |options: &mut smbscope_lab::Options| {
        set(options, &[("vfs objects", "io_uring")]);
        let enter = ["unshare", "--mount", "sh", "-c", mount, &mine];
        options.enter = enter.iter().map(Into::into).collect();
        options.samba = Some(dir.clone());
    };
    let Some(lab) = samba(change) else { return };
    let Some(rows) = run(&lab) else { return };
    for row in ["Read", "Write", "Flush"].iter().flat_map(|command| of(&rows, command)) {
        assert_eq!((row.slice(Kind::Io), row.slice(Kind::Flush)), (None, None), "{}", row.told());
        assert!(row.ns(Kind::IoWait) > 0, "{}", row.told());
    }
}
