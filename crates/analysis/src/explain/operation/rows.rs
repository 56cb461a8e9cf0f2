//! The rows of one batch as operations.

use arrow::array::RecordBatch;
use arrow::error::ArrowError;
use smbscope_tables::command_class::CommandClass;

use super::{Act, BYTES_MAX, Columns, Operation, TIME_MAX_NS, TextId, Times, duration, text_id};
use crate::rows::columns::{Resolved, Text};
use crate::rows::create_intent::CreateIntent;

/// The numbers of a column's texts in one batch, computed on first use.
struct TextIds(Vec<Option<TextId>>);

impl TextIds {
    fn new(column: &Text) -> TextIds {
        TextIds(vec![None; column.keys()])
    }

    fn get(&mut self, column: &Text, row: usize) -> Option<TextId> {
        self.get_of(column, row, |text| Some(text))
    }

    /// The number of a part of the text.
    fn get_of(
        &mut self,
        column: &Text,
        row: usize,
        part: impl FnOnce(&str) -> Option<&str>,
    ) -> Option<TextId> {
        let key = column.key(row)?;
        let known = self.0.get_mut(key)?;
        if known.is_none() {
            *known = part(column.text(key)?).map(text_id);
        }
        *known
    }
}

/// A batch, with what its texts mean.
pub(in crate::explain) struct Rows {
    pub(in crate::explain) columns: Columns,
    clients: TextIds,
    servers: TextIds,
    shares: TextIds,
    paths: TextIds,
    folders: TextIds,
    /// By command; no act for a transaction, whose detail decides.
    acts: Vec<Option<Option<Act>>>,
    /// By detail: whether an open with it opens an existing file only.
    opens: Resolved,
    /// By detail: the number in [`Act::ALL`] of a transaction's subcommand.
    transactions: Resolved,
    /// By share: whether it is that of pipes.
    pipes: Resolved,
    commands: TextIds,
    has_slices: bool,
}

impl Rows {
    pub(in crate::explain) fn from_batch(batch: &RecordBatch) -> Result<Rows, ArrowError> {
        let columns = Columns::from_batch(batch)?;
        let acts = vec![None; columns.command.keys()];
        let [opens, transactions] = [(); 2].map(|()| Resolved::new(columns.detail.keys()));
        let pipes = Resolved::new(columns.share.keys());
        let commands = TextIds::new(&columns.command);
        let [clients, servers, shares, paths, folders] =
            [&columns.client, &columns.server, &columns.share, &columns.path, &columns.path]
                .map(TextIds::new);
        let has_slices = columns.has_slices();
        Ok(Rows {
            columns,
            clients,
            servers,
            shares,
            paths,
            folders,
            acts,
            opens,
            transactions,
            pipes,
            commands,
            has_slices,
        })
    }

    fn act(&mut self, row: usize) -> Act {
        let Rows { columns, acts, transactions, .. } = self;
        let Some(key) = columns.command.key(row) else { return Act::Other };
        let Some(known) = acts.get_mut(key) else { return Act::Other };
        let act = *known.get_or_insert_with(|| {
            match CommandClass::from_command(columns.command.text(key).unwrap_or("")) {
                CommandClass::Transaction => None,
                class => Some(Act::from_class(class)),
            }
        });
        act.unwrap_or_else(|| {
            let Some(key) = columns.detail.key(row) else { return Act::Other };
            let number = transactions.get(key, || {
                let detail = columns.detail.text(key).unwrap_or("");
                Act::from_class(CommandClass::of_subcommand(detail)) as u32
            });
            Act::ALL.get(number as usize).copied().unwrap_or(Act::Other)
        })
    }

    /// Whether an open opens an existing file only.
    fn opens_existing(&mut self, row: usize) -> bool {
        let Rows { columns, opens, .. } = self;
        columns.detail.key(row).is_some_and(|key| {
            opens.get(key, || u32::from(columns.detail.text(key) == Some("FILE_OPEN"))) == 1
        })
    }

    /// The operation in a row; `recording` is the number of its recording.
    pub(in crate::explain) fn operation(&mut self, row: usize, recording: u32) -> Operation<'_> {
        let act = self.act(row);
        let opens_existing = act == Act::Open && self.opens_existing(row);
        let Rows { columns, clients, servers, shares, paths, folders, pipes, commands, .. } = self;
        let columns = &*columns;
        let is_pipe = columns.share.key(row).is_some_and(|key| {
            let is_pipe = || columns.share.text(key).is_some_and(|share| share.ends_with("IPC$"));
            pipes.get(key, || u32::from(is_pipe())) == 1
        });
        let has_time = !columns.waits.is_set(row) && columns.elapsed_ns.get(row).is_some();
        let or_none = |ns: Option<i64>| duration(ns.unwrap_or(0));
        let elapsed_ns = or_none(columns.elapsed_ns.get(row));
        let busy_ns = or_none(columns.busy_ns.get(row)).min(elapsed_ns);
        let times = Times::from_row(columns, row, elapsed_ns);
        Operation {
            columns,
            row,
            recording,
            times,
            is_pipe,
            has_slices: self.has_slices,
            command: commands.get(&columns.command, row),
            client: clients.get(&columns.client, row),
            server_text: servers.get(&columns.server, row),
            share: shares.get(&columns.share, row),
            path: paths.get(&columns.path, row),
            folder: folders.get_of(&columns.path, row, |path| Some(path.rsplit_once('\\')?.0)),
            act,
            opens_existing,
            intent: CreateIntent::new(
                columns.desired_access.get(row),
                columns.create_options.get(row),
            ),
            is_timed: has_time,
            elapsed_ns,
            busy_ns: if has_time { busy_ns } else { 0 },
            connection: columns.connection.get(row).unwrap_or(0),
            handle: columns.handle.get(row).map(|handle| (recording, handle)),
            status: columns.status.get(row),
            explained: None,
            silent_ns: 0,
            server: 0,
            number: None,
            start: columns.request_start.get(row).map(|ns| ns.clamp(-TIME_MAX_NS, TIME_MAX_NS)),
            bytes: columns.transferred_bytes.get(row).unwrap_or(0).min(BYTES_MAX),
        }
    }
}
