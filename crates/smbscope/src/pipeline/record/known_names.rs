//! Names of sessions and shares that were open before a recording began, from Samba's own tables.
//!
//! A recording that begins mid-stream sees neither their logon nor their tree connect. `smbstatus --json`
//! (Samba 4.17 and later) lists both, with the ids that are on the wire. What the recording shows itself is
//! never replaced; rows of the tables `sessions` and `trees` say where their name came from.

use std::collections::{BTreeSet, HashMap};
#[cfg(target_os = "linux")]
use std::fs::File;
use std::io::Read as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::Duration;

use arrow::array::{Array as _, ArrayRef, AsArray as _, RecordBatch, StringDictionaryBuilder};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Int32Type, UInt64Type};
use serde_json::Value;
use smbscope_store::Part;

use crate::subprocess::program;

/// What rows say of a name's origin.
const NAMED_BY: &str = "smbstatus";
/// The program gets this time; a large server's tables take a second.
const WAIT_MAX: Duration = Duration::from_secs(5);
/// Its output is read up to here: a session takes about a kilobyte.
const OUTPUT_MAX: u64 = 64 << 20;
#[cfg(target_os = "linux")]
/// Longest file of a lab's logons: a line has about twenty bytes.
const LOGONS_MAX: u64 = 64 << 20;
/// Servers on one machine whose tables are read.
const SERVERS_MAX: usize = 8;

/// Names by the ids on the wire.
#[derive(Debug, Default)]
pub struct KnownNames {
    users: HashMap<u64, String>,
    /// By session and tree.
    shares: HashMap<(u64, u64), String>,
}

impl KnownNames {
    /// The names that all running Sambas know; none without a Samba, without `smbstatus`, or without the right
    /// to read its tables.
    pub fn of_running() -> KnownNames {
        let mut known = KnownNames::default();
        for configuration in configurations() {
            let output = smbstatus(configuration.as_deref());
            known.add(&output.unwrap_or_default());
            #[cfg(target_os = "linux")]
            known.add_logons(configuration.as_deref());
        }
        known
    }

    /// Whether nothing is known.
    pub fn is_empty(&self) -> bool {
        self.users.is_empty() && self.shares.is_empty()
    }

    fn add(&mut self, json: &[u8]) {
        let Ok(value) = serde_json::from_slice::<Value>(json) else { return };
        let rows = |name: &str| value[name].as_object().into_iter().flat_map(|rows| rows.values());
        // Ids are numbers in text.
        let id = |row: &Value, name: &str| {
            row[name].as_u64().or_else(|| row[name].as_str()?.parse::<u64>().ok())
        };
        for row in rows("sessions") {
            if let (Some(session), Some(user)) = (id(row, "session_id"), row["username"].as_str()) {
                self.users.insert(session, user.to_owned());
            }
        }
        for row in rows("tcons") {
            let ids = id(row, "session_id").zip(id(row, "tcon_id"));
            if let (Some(ids), Some(share)) = (ids, row["service"].as_str()) {
                self.shares.insert(ids, share.to_owned());
            }
        }
    }

    /// Sets the names of a lab's users: its Samba knows all of them as one user of the system.
    #[cfg(target_os = "linux")]
    fn add_logons(&mut self, configuration: Option<&str>) {
        let Some(folder) = configuration.and_then(|path| Path::new(path).parent()) else { return };
        let path = smbscope_lab::Lab::logons(folder);
        // The user who runs an smbd chooses the path: a pipe would never end.
        if !path.is_file() {
            return;
        }
        let Ok(file) = File::open(&path) else { return };
        let mut text = String::new();
        let _ = file.take(LOGONS_MAX).read_to_string(&mut text);
        for (id, name) in text.lines().filter_map(|line| line.split_once(' ')) {
            // Only sessions that Samba has now: ids of earlier ones may be used again.
            let id = u64::from_str_radix(id, 16).ok();
            if let Some(user) = id.and_then(|id| self.users.get_mut(&id)) {
                name.clone_into(user);
            }
        }
    }

    fn share(&self, session: Option<u64>, tree: Option<u64>) -> Option<&str> {
        self.shares.get(&(session?, tree?)).map(String::as_str)
    }

    fn user(&self, session: Option<u64>) -> Option<&str> {
        self.users.get(&session?).map(String::as_str)
    }

    /// Fills in what the part does not know itself.
    pub fn part(&self, part: Part) -> anyhow::Result<Part> {
        Ok(match part {
            Part::Operations(batch) => Part::Operations(self.operations(&batch)?),
            Part::Sessions(mut rows) => {
                for row in rows.iter_mut().filter(|row| row.user.is_none()) {
                    row.user = self.user(Some(row.session_id)).map(str::to_owned);
                    row.named_by = row.user.as_ref().map(|_| NAMED_BY.to_owned());
                }
                Part::Sessions(rows)
            }
            Part::Trees(mut rows) => {
                for row in rows.iter_mut().filter(|row| row.share.is_none()) {
                    let service = self.share(Some(row.session_id), Some(row.tree_id));
                    // Rows of trees do not have the server's address.
                    row.share = service.map(str::to_owned);
                    row.named_by = row.share.as_ref().map(|_| NAMED_BY.to_owned());
                }
                Part::Trees(rows)
            }
            part => part,
        })
    }

    fn operations(&self, batch: &RecordBatch) -> anyhow::Result<RecordBatch> {
        let ids = |name: &str| -> Option<ArrayRef> {
            cast(batch.column_by_name(name)?, &DataType::UInt64).ok()
        };
        let (Some(sessions), Some(trees)) = (ids("session_id"), ids("tree_id")) else {
            return Ok(batch.clone());
        };
        let (sessions, trees) =
            (sessions.as_primitive::<UInt64Type>(), trees.as_primitive::<UInt64Type>());
        let at = |row| {
            let session = sessions.is_valid(row).then(|| sessions.value(row));
            (session, trees.is_valid(row).then(|| trees.value(row)))
        };
        let servers = batch.column_by_name("server").map(|column| cast(column, &DataType::Utf8));
        let servers = servers.transpose()?;
        let server = |row| match &servers {
            Some(servers) if servers.is_valid(row) => servers.as_string::<i32>().value(row),
            _ => "",
        };
        let mut columns = batch.columns().to_vec();
        for (name, is_user) in [("user", true), ("share", false)] {
            let Ok(place) = batch.schema().index_of(name) else { continue };
            let Some(column) = columns.get_mut(place).filter(|column| column.null_count() > 0)
            else {
                continue;
            };
            let texts = cast(column, &DataType::Utf8)?;
            let texts = texts.as_string::<i32>();
            let mut filled = StringDictionaryBuilder::<Int32Type>::new();
            for row in 0..batch.num_rows() {
                let (session, tree) = at(row);
                if texts.is_valid(row) {
                    filled.append_value(texts.value(row));
                } else if is_user {
                    filled.append_option(self.user(session));
                } else {
                    let service = self.share(session, tree);
                    filled.append_option(service.map(|service| unc(server(row), service)));
                }
            }
            *column = Arc::new(filled.finish());
        }
        Ok(RecordBatch::try_new(batch.schema(), columns)?)
    }
}

/// A share as rows have it; the server by its address, because the name that clients use is not known.
fn unc(server: &str, service: &str) -> String {
    format!("\\\\{server}\\{service}")
}

/// The configurations of the running smbd processes; `None` for the system's.
fn configurations() -> Vec<Option<String>> {
    let mut found = BTreeSet::new();
    for entry in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
        let is_smbd = std::fs::read_to_string(entry.path().join("comm"))
            .is_ok_and(|name| name.trim() == "smbd");
        if is_smbd && let Ok(line) = std::fs::read(entry.path().join("cmdline")) {
            found.insert(configuration(&line));
        }
        if found.len() >= SERVERS_MAX {
            break;
        }
    }
    found.into_iter().collect()
}

/// The configuration file in a command line (words that end with a zero byte).
fn configuration(line: &[u8]) -> Option<String> {
    let line = String::from_utf8_lossy(line);
    let mut words = line.split('\0');
    while let Some(word) = words.next() {
        if let Some(path) = word.strip_prefix("--configfile=") {
            return Some(path.to_owned());
        }
        if matches!(word, "-s" | "--configfile") {
            return words.next().map(str::to_owned);
        }
    }
    None
}

/// What `smbstatus --json` prints.
fn smbstatus(configuration: Option<&str>) -> Option<Vec<u8>> {
    let mut command = Command::new(program("smbstatus")?);
    command.arg("--json");
    if let Some(path) = configuration.filter(|path| Path::new(path).is_file()) {
        command.arg(format!("--configfile={path}"));
    }
    let mut child =
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().ok()?;
    let stdout = child.stdout.take()?;
    let (sender, received) = channel();
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        let read = stdout.take(OUTPUT_MAX).read_to_end(&mut bytes);
        let _ = sender.send(read.map(|_| bytes));
    });
    let output = received.recv_timeout(WAIT_MAX).ok().and_then(Result::ok);
    // It has ended, or it is too slow or too long.
    let _ = child.kill();
    let _ = child.wait();
    output
}

#[cfg(test)]
mod tests {
    use smbscope_tables::builder::OperationBuilder;
    use smbscope_tables::operation::Operation;
    use smbscope_tables::tables::{Session, Tree};

    use super::*;

    /// As Samba 4.17 prints it, shortened.
    const STATUS: &str = r#"{"sessions": {"3639217376": {"session_id": "3639217376", "username": "anna",
        "hostname": "ipv4:127.0.0.1:50396"}}, "tcons": {"3813255619": {"service": "projects",
        "tcon_id": "3813255619", "session_id": "3639217376", "machine": "127.0.0.1"}}}"#;

    fn known() -> KnownNames {
        let mut known = KnownNames::default();
        known.add(STATUS.as_bytes());
        known
    }

    #[test]
    fn the_ids_of_the_wire_find_names() {
        let known = known();
        assert_eq!(known.user(Some(3_639_217_376)), Some("anna"));
        assert_eq!(known.share(Some(3_639_217_376), Some(3_813_255_619)), Some("projects"));
        assert_eq!(
            (known.user(Some(1)), known.user(None), known.share(Some(1), None)),
            (None, None, None)
        );
        for text in ["", "[]", "{", "{\"sessions\": 1, \"tcons\": {\"a\": 2}}"] {
            let mut known = KnownNames::default();
            known.add(text.as_bytes());
            assert!(known.is_empty());
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn users_of_a_lab_have_their_own_names() {
        let folder = tempfile::tempdir().unwrap();
        let logons = smbscope_lab::Lab::logons(folder.path());
        std::fs::create_dir_all(logons.parent().unwrap()).unwrap();
        std::fs::write(&logons, "7 user00009\nx y\n\nd8ea0ce0 user00003\n").unwrap();
        let conf = folder.path().join("smb.conf");
        let mut known = known();
        known.add_logons(conf.to_str());
        assert_eq!(known.user(Some(0xd8ea_0ce0)), Some("user00003"));
        // Samba has no such session now.
        assert_eq!(known.user(Some(7)), None);
    }

    #[test]
    fn only_what_the_rows_do_not_know_is_filled_in() {
        let known = known();
        let rows = [(Some(3_639_217_376), Some(3_813_255_619)), (Some(7), Some(8)), (None, None)];
        let mut builder = OperationBuilder::new(None).unwrap();
        for (number, (session, tree)) in rows.into_iter().enumerate() {
            let mut row = Operation::default();
            row.set_operation(number as u64);
            session.into_iter().for_each(|id| row.set_session_id(id));
            tree.into_iter().for_each(|id| row.set_tree_id(id));
            builder.append(&[Box::new(row)]);
        }
        let Part::Operations(batch) =
            known.part(Part::Operations(builder.finish().unwrap())).unwrap()
        else {
            panic!()
        };
        let texts = |name: &str| {
            let column = cast(batch.column_by_name(name).unwrap(), &DataType::Utf8).unwrap();
            column.as_string::<i32>().iter().map(|text| text.map(str::to_owned)).collect::<Vec<_>>()
        };
        assert_eq!(texts("user"), [Some("anna".to_owned()), None, None]);
        assert_eq!(texts("share"), [Some("\\\\\\projects".to_owned()), None, None]);
        let session = |user: Option<&str>| Session {
            session_id: 3_639_217_376,
            user: user.map(str::to_owned),
            ..Session::default()
        };
        let Part::Sessions(rows) =
            known.part(Part::Sessions(vec![session(None), session(Some("LAB\\anna"))])).unwrap()
        else {
            panic!()
        };
        assert_eq!(
            (rows[0].user.as_deref(), rows[0].named_by.as_deref()),
            (Some("anna"), Some(NAMED_BY))
        );
        assert_eq!(
            (rows[1].user.as_deref(), rows[1].named_by.as_deref()),
            (Some("LAB\\anna"), None)
        );
        let tree = Tree { session_id: 3_639_217_376, tree_id: 3_813_255_619, ..Tree::default() };
        let Part::Trees(rows) = known.part(Part::Trees(vec![tree])).unwrap() else { panic!() };
        assert_eq!(rows[0].share.as_deref(), Some("projects"));
    }

    #[test]
    fn the_configuration_is_in_the_command_line() {
        let of = |words: &[&str]| configuration(words.join("\0").as_bytes());
        assert_eq!(of(&["/usr/sbin/smbd", "--foreground"]), None);
        assert_eq!(of(&["smbd", "--configfile=/lab/smb.conf"]).as_deref(), Some("/lab/smb.conf"));
        assert_eq!(of(&["smbd", "-s", "/lab/smb.conf", "-D"]).as_deref(), Some("/lab/smb.conf"));
    }
}
