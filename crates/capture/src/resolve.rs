//! What spans connections: numbers, sessions with their channels, trees, opens and names.
//!
//! Takes what the shards made, in the order of the packets, so that the result does not depend on
//! how many shards there were. Everything kept is bounded; what is forgotten is counted.

mod entities;

use std::collections::VecDeque;
use std::net::IpAddr;

use arrow::error::ArrowError;
use hashbrown::HashMap;
use smbscope_event::builder::{Names, OperationBuilder, extension_of};
use smbscope_event::operation::{Column, Operation};
use smbscope_event::tables::{Coverage, Handle, Referral, Session, Tree};

use crate::decoder::{Options, Part};
use crate::limits::Limits;
use crate::output::{self, Done, Effect, Output};
pub use entities::add_counters;
use entities::{Entities, HandleState, Known, SessionState, TreeState};

type Map<K, V> = HashMap<K, V, foldhash::fast::RandomState>;

/// Rows are handed to the builder in groups that stay in the cache.
const GROUP: usize = 128;
/// Rows of the small tables that make a part.
const TABLE_ROWS: usize = 4_096;
/// Text of one batch; beyond it the batch ends early.
const TEXT_BYTES: usize = 4 << 20;
/// Sessions of one connection that are looked up without a hash.
const LINKS: usize = 64;

/// A connection as the shards number it.
type LinkKey = (u32, u32);

struct Link {
    number: u64,
    client: IpAddr,
    server: IpAddr,
    client_name: Known,
    server_name: Known,
    client_port: u16,
    server_port: u16,
    /// Sessions on the connection and their channel number, the latest used first.
    sessions: Vec<(u64, u32, u32)>,
    /// Path of the create that a compound began with.
    chain: (u64, Known),
}

/// Adds to rows what spans connections, and makes the parts.
pub struct Resolver {
    limits: Limits,
    batch_rows: usize,
    tables: crate::decoder::Tables,
    builder: OperationBuilder,
    group: Vec<Operation>,
    recording: String,
    recording_name: Known,
    links: Map<LinkKey, Link>,
    by_guid: Map<([u8; 16], u64), u32>,
    by_address: Map<(IpAddr, IpAddr, u64), u32>,
    sessions: Entities<u64, SessionState>,
    trees: Entities<(u32, u32), TreeState>,
    handles: Entities<(u32, [u8; 16]), HandleState>,
    connections_seen: u64,
    sessions_seen: u64,
    operations: u64,
    handle_numbers: u64,
    rows: Rows,
    /// Counters of the file at hand.
    pub coverage: Box<Coverage>,
    vantages: Map<(Option<String>, String), u64>,
    parts: VecDeque<Part>,
}

#[derive(Default)]
struct Rows {
    connections: Vec<smbscope_event::tables::Connection>,
    sessions: Vec<Session>,
    trees: Vec<Tree>,
    handles: Vec<Handle>,
    referrals: Vec<Referral>,
}

impl Resolver {
    /// A resolver without any state.
    pub fn new(options: &Options) -> Result<Resolver, ArrowError> {
        let projection: &[usize] = &[];
        let wanted = match &options.projection {
            _ if !options.tables.operations => Some(projection),
            wanted => wanted.as_deref(),
        };
        Ok(Resolver {
            limits: options.limits,
            batch_rows: options.batch_rows.max(1),
            tables: options.tables,
            builder: OperationBuilder::new(wanted)?,
            group: Vec::with_capacity(GROUP),
            recording: String::new(),
            recording_name: Known::default(),
            links: Map::default(),
            by_guid: Map::default(),
            by_address: Map::default(),
            sessions: Entities::new(options.limits.sessions),
            trees: Entities::new(options.limits.sessions),
            handles: Entities::new(options.limits.handles),
            connections_seen: 0,
            sessions_seen: 0,
            operations: 0,
            handle_numbers: 0,
            rows: Rows::default(),
            coverage: Box::default(),
            vantages: Map::default(),
            parts: VecDeque::new(),
        })
    }

    /// The next part that is complete.
    pub fn next_part(&mut self) -> Option<Part> {
        self.parts.pop_front()
    }

    /// Operations so far.
    pub fn operations(&self) -> u64 {
        self.operations
    }

    /// Rows come from this input from now on.
    pub fn begin_recording(&mut self, name: &str) {
        name.clone_into(&mut self.recording);
        self.recording_name = Known::new(name);
        *self.coverage = Coverage::default();
        self.vantages.clear();
    }

    /// Takes what the shards made of one chunk.
    pub fn take(&mut self, outputs: &[Output]) -> Result<(), ArrowError> {
        let mut started: Vec<(u64, u32, &output::Started)> = Vec::new();
        for (shard, output) in outputs.iter().enumerate() {
            started.extend(output.started.iter().map(|one| (one.order, shard as u32, one)));
        }
        started.sort_by_key(|&(order, shard, _)| (order, shard));
        for (_, shard, one) in started {
            self.connections_seen += 1;
            let link = Link {
                number: self.connections_seen,
                client: one.client.ip(),
                server: one.server.ip(),
                client_name: Known::new(&one.client.ip().to_string()),
                server_name: Known::new(&one.server.ip().to_string()),
                client_port: one.client.port(),
                server_port: one.server.port(),
                sessions: Vec::new(),
                chain: (0, Known::default()),
            };
            self.links.insert((shard, one.link), link);
        }
        if let [output] = outputs {
            for done in &output.done {
                self.operation(0, done, output)?;
            }
        } else {
            self.merge(outputs)?;
        }
        let mut ended: Vec<(u64, LinkKey, &smbscope_event::tables::Connection)> = Vec::new();
        for (shard, output) in outputs.iter().enumerate() {
            for (link, order, row) in &output.ended {
                ended.push((*order, (shard as u32, *link), row));
            }
            add_counters(&mut self.coverage, &output.coverage);
        }
        ended.sort_by_key(|&(order, key, _)| (order, key));
        for (_, key, row) in ended {
            self.connection_ended(key, row);
        }
        self.emit_tables(TABLE_ROWS);
        Ok(())
    }

    /// Operations of several shards in the order of the packets that ended them.
    fn merge(&mut self, outputs: &[Output]) -> Result<(), ArrowError> {
        let mut next = vec![0_usize; outputs.len()];
        loop {
            let earliest = outputs
                .iter()
                .zip(&next)
                .enumerate()
                .filter_map(|(shard, (output, &at))| Some((output.done.get(at)?.order, shard)))
                .min();
            let Some((_, shard)) = earliest else { return Ok(()) };
            if let (Some(output), Some(at)) = (outputs.get(shard), next.get_mut(shard)) {
                if let Some(done) = output.done.get(*at) {
                    self.operation(shard as u32, done, output)?;
                }
                *at += 1;
            }
        }
    }

    #[inline]
    fn operation(&mut self, shard: u32, done: &Done, output: &Output) -> Result<(), ArrowError> {
        self.operations += 1;
        self.coverage.operations += 1;
        let mut row = done.row;
        row.set_operation(self.operations);
        let names = &mut self.builder.names;
        row.set_recording(self.recording_name.in_pool(names, |names| &mut names.recording));
        let Some(link) = self.links.get_mut(&(shard, done.link)) else {
            return self.push(row);
        };
        row.set_connection(link.number);
        row.set_client(link.client_name.in_pool(names, |names| &mut names.client));
        row.set_client_port(link.client_port);
        row.set_server(link.server_name.in_pool(names, |names| &mut names.server));
        row.set_server_port(link.server_port);
        if done.chain != 0 {
            // Unique in the recording without any table: a connection numbers its own.
            row.set_compound(link.number << 32 | done.chain & 0xffff_ffff);
        }
        let time = row.response_end().or(row.request_end()).or(row.request_start()).unwrap_or(0);
        let session = self.session(shard, done, output, &mut row, time);
        let tree = self.tree(session, done, output, &mut row, time);
        self.file(shard, session, tree, done, output, &mut row, time);
        if let Effect::Referrals(first, count) = done.effect {
            self.referrals(&row, output, first, count);
        }
        self.push(row)
    }

    fn push(&mut self, row: Operation) -> Result<(), ArrowError> {
        if !self.tables.operations {
            return Ok(());
        }
        self.group.push(row);
        if self.group.len() == GROUP {
            self.builder.append(&self.group);
            self.group.clear();
            if self.builder.len() >= self.batch_rows || self.builder.names.text_bytes() > TEXT_BYTES
            {
                self.parts.push_back(Part::Operations(self.builder.finish()?));
            }
        }
        Ok(())
    }

    fn session(
        &mut self,
        shard: u32,
        done: &Done,
        output: &Output,
        row: &mut Operation,
        time: i64,
    ) -> Option<u32> {
        let id = row.session_id().filter(|&id| id != 0 && id != u64::MAX)?;
        let link = self.links.get_mut(&(shard, done.link))?;
        let told = match done.effect {
            Effect::Session(index) => output.sessions.get(index as usize),
            _ => None,
        };
        if let Some(told) = told.filter(|told| told.refused) {
            if let Some(user) = &told.user {
                row.set_user(self.builder.names.user.intern(user));
            }
            return None;
        }
        let known = link.sessions.iter().position(|&(known, _, _)| known == id);
        let place = match known {
            Some(0) => link.sessions[0].1,
            Some(at) => {
                link.sessions.swap(0, at);
                link.sessions[0].1
            }
            None => {
                let address = (link.client, link.server, id);
                let elsewhere = match told {
                    Some(told) if !told.binding => None,
                    Some(told) => told
                        .client_guid
                        .and_then(|guid| self.by_guid.get(&(guid, id)))
                        .or_else(|| self.by_address.get(&address)),
                    None if row.protocol() == Some(1) => None,
                    None => self.by_address.get(&address),
                };
                let elsewhere = elsewhere.copied().filter(|&place| {
                    self.sessions.get(place).is_some_and(|session| session.id == id)
                });
                let place = match elsewhere {
                    Some(place) => place,
                    None => {
                        self.sessions_seen += 1;
                        let state = SessionState::new(self.sessions_seen, id, link.number, time);
                        let (place, evicted) = self.sessions.insert(state);
                        if let Some(state) = evicted {
                            self.rows.sessions.push(state.row(&self.recording));
                        }
                        place
                    }
                };
                if self.by_address.len() > 2 * self.limits.sessions {
                    self.by_address.clear();
                }
                if row.protocol() != Some(1) {
                    self.by_address.insert(address, place);
                }
                let session = self.sessions.get_mut(place)?;
                let channel = session.row.channels as u32;
                session.row.channels += 1;
                if session.row.client.is_empty() {
                    session.row.client = link.client_name.text().to_owned();
                    session.row.server = link.server_name.text().to_owned();
                }
                link.sessions.insert(0, (id, place, channel));
                link.sessions.truncate(LINKS);
                place
            }
        };
        row.set_channel(link.sessions.first().map_or(0, |&(_, _, channel)| channel));
        let session = self.sessions.get_mut(place)?;
        session.row.operations += 1;
        session.row.end = session.row.end.max(time);
        if let Some(told) = told {
            session.learn(told);
            if let Some(guid) = told.client_guid.filter(|_| !told.binding) {
                if self.by_guid.len() > 2 * self.limits.sessions {
                    self.by_guid.clear();
                }
                self.by_guid.insert((guid, id), place);
            }
        }
        if session.user.is_known() {
            row.set_user(session.user.in_pool(&mut self.builder.names, |names| &mut names.user));
        }
        if done.effect == Effect::Logoff {
            link.sessions.retain(|&(known, _, _)| known != id);
            self.by_address.remove(&(link.client, link.server, id));
        }
        Some(place)
    }

    fn tree(
        &mut self,
        session: Option<u32>,
        done: &Done,
        output: &Output,
        row: &mut Operation,
        time: i64,
    ) -> Option<u32> {
        let (session, id) = (session?, row.tree_id()?);
        let key = (session, id);
        let told = match done.effect {
            Effect::Tree(index) => output.trees.get(index as usize),
            _ => None,
        };
        let place = match self.trees.find(&key) {
            Some(place) if told.is_none() => place,
            _ => {
                let state = TreeState::new(key, row, time);
                let (place, evicted) = self.trees.insert(state);
                if let Some(state) = evicted {
                    self.rows.trees.push(state.row(&self.recording));
                }
                place
            }
        };
        let tree = self.trees.get_mut(place)?;
        tree.row.operations += 1;
        tree.row.end = tree.row.end.max(time);
        if let Some(told) = told {
            tree.learn(told, told.share.map(|share| output.text(share)));
        }
        if tree.share.is_known() {
            row.set_share(tree.share.in_pool(&mut self.builder.names, |names| &mut names.share));
        }
        Some(place)
    }

    #[allow(clippy::too_many_arguments)]
    fn file(
        &mut self,
        shard: u32,
        session: Option<u32>,
        tree: Option<u32>,
        done: &Done,
        output: &Output,
        row: &mut Operation,
        time: i64,
    ) {
        let path = done.path.map(|path| output.text(path));
        if let Effect::Open(index) = done.effect
            && let (Some(session), Some(file)) = (session, row.file_id())
        {
            self.handle_numbers += 1;
            let mut state = HandleState::new((session, file), self.handle_numbers, row);
            state.open(row, output.opens.get(index as usize), path, time);
            self.describe(&mut state, session, tree);
            let (_, evicted) = self.handles.insert(state);
            self.handle_ended(evicted);
        }
        let handle = match (session, row.file_id()) {
            (Some(session), Some(file)) => self.handle(session, tree, file, row),
            _ => None,
        };
        let names = &mut self.builder.names;
        let Some(link) = self.links.get_mut(&(shard, done.link)) else { return };
        if let Some(place) = handle
            && let Some(state) = self.handles.get_mut(place)
        {
            row.set_handle(state.row.handle);
            state.count(row);
            if path.is_none() && state.path.is_known() {
                set_path(row, names, &mut state.path);
            }
            match done.effect {
                Effect::Close(size) => {
                    state.close(row, size, time);
                    let closed = self.handles.retire(place);
                    self.handle_ended(closed);
                    return;
                }
                Effect::Rename(name) => state.path = Known::new(output.text(name)),
                _ => {}
            }
        }
        if let Some(path) = path {
            let mut known = Known::new(path);
            set_path(row, names, &mut known);
            if done.chain != 0 {
                link.chain = (done.chain, known);
            }
        } else if !row.has(Column::path) && done.chain != 0 && link.chain.0 == done.chain {
            // Members that work on a file that could not be opened.
            set_path(row, names, &mut link.chain.1);
        }
    }

    /// The open that a row works on; one that was opened before the capture began gets a number
    /// and no path.
    fn handle(
        &mut self,
        session: u32,
        tree: Option<u32>,
        file: [u8; 16],
        row: &Operation,
    ) -> Option<u32> {
        if let Some(place) = self.handles.find(&(session, file)) {
            return Some(place);
        }
        self.coverage.paths_unknown += 1;
        self.handle_numbers += 1;
        let mut state = HandleState::new((session, file), self.handle_numbers, row);
        self.describe(&mut state, session, tree);
        let (place, evicted) = self.handles.insert(state);
        self.handle_ended(evicted);
        Some(place)
    }

    fn describe(&self, state: &mut HandleState, session: u32, tree: Option<u32>) {
        if !self.tables.handles {
            return;
        }
        if let Some(session) = self.sessions.get(session) {
            state.row.client.clone_from(&session.row.client);
            state.row.user = session.user.is_known().then(|| session.user.text().to_owned());
        }
        if let Some(tree) = tree.and_then(|tree| self.trees.get(tree)) {
            state.row.share = tree.share.is_known().then(|| tree.share.text().to_owned());
        }
    }

    fn handle_ended(&mut self, state: Option<HandleState>) {
        if let Some(state) = state {
            self.coverage.handles_forgotten += u64::from(state.row.closed_at.is_none());
            if self.tables.handles {
                self.rows.handles.push(state.row(&self.recording));
            }
        }
    }

    fn referrals(&mut self, row: &Operation, output: &Output, first: u32, count: u32) {
        let range = first as usize..(first as usize).saturating_add(count as usize);
        for told in output.referrals.get(range).unwrap_or_default() {
            self.rows.referrals.push(Referral {
                recording: self.recording.clone(),
                operation: row.operation().unwrap_or_default(),
                ..told.clone()
            });
        }
    }

    fn connection_ended(&mut self, key: LinkKey, row: &smbscope_event::tables::Connection) {
        let Some(link) = self.links.remove(&key) else { return };
        let vantage = (row.vantage.clone(), row.vantage_reason.clone());
        if self.vantages.len() < 64 {
            *self.vantages.entry(vantage).or_default() += row.operations.max(1);
        }
        if self.tables.connections {
            self.rows.connections.push(smbscope_event::tables::Connection {
                recording: self.recording.clone(),
                connection: link.number,
                ..row.clone()
            });
        }
    }

    fn emit_tables(&mut self, at_least: usize) {
        fn emit<T>(rows: &mut Vec<T>, at_least: usize, part: fn(Vec<T>) -> Part) -> Option<Part> {
            (rows.len() >= at_least).then(|| part(std::mem::take(rows)))
        }
        let rows = &mut self.rows;
        self.parts.extend(emit(&mut rows.connections, at_least, Part::Connections));
        self.parts.extend(emit(&mut rows.sessions, at_least, Part::Sessions));
        self.parts.extend(emit(&mut rows.trees, at_least, Part::Trees));
        self.parts.extend(emit(&mut rows.handles, at_least, Part::Handles));
        self.parts.extend(emit(&mut rows.referrals, at_least, Part::Referrals));
    }

    /// Where the capture was taken: what most operations' connections say.
    fn judge_vantage(&mut self) {
        let mut judged: Vec<_> = self.vantages.drain().collect();
        judged.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        let known: Vec<_> = judged.iter().filter(|((vantage, _), _)| vantage.is_some()).collect();
        let coverage = &mut *self.coverage;
        match known.as_slice() {
            [] => {
                coverage.vantage = None;
                coverage.vantage_reason = "no round trip was seen on both sides".to_owned();
            }
            [((first, reason), operations), rest @ ..] => {
                let same = rest.iter().filter(|((vantage, _), _)| vantage == first);
                let agree = operations + same.map(|(_, operations)| operations).sum::<u64>();
                let all: u64 = known.iter().map(|(_, operations)| operations).sum();
                // One odd connection in a hundred does not make a capture mixed.
                if agree * 100 >= all * 99 {
                    coverage.vantage.clone_from(first);
                    coverage.vantage_reason.clone_from(reason);
                } else {
                    coverage.vantage = Some("mixed".to_owned());
                    let word = first.as_deref().unwrap_or_default();
                    coverage.vantage_reason = format!(
                        "{} % of the operations were seen from: {word} ({reason})",
                        agree * 100 / all.max(1)
                    );
                }
            }
        }
    }

    /// The input ends; with `last` so does everything that was open.
    pub fn end_recording(&mut self, last: bool) -> Result<(), ArrowError> {
        if last {
            for state in self.handles.drain() {
                if self.tables.handles {
                    self.rows.handles.push(state.row(&self.recording));
                }
                if self.rows.handles.len() >= TABLE_ROWS {
                    self.parts.push_back(Part::Handles(std::mem::take(&mut self.rows.handles)));
                }
            }
            let recording = &self.recording;
            self.rows.trees.extend(self.trees.drain().map(|state| state.row(recording)));
            self.rows.sessions.extend(self.sessions.drain().map(|state| state.row(recording)));
            self.by_guid.clear();
            self.by_address.clear();
            self.links.clear();
        }
        self.builder.append(&self.group);
        self.group.clear();
        if !self.builder.is_empty() {
            self.parts.push_back(Part::Operations(self.builder.finish()?));
        }
        if !self.tables.sessions {
            self.rows.sessions.clear();
        }
        if !self.tables.trees {
            self.rows.trees.clear();
        }
        self.emit_tables(1);
        self.judge_vantage();
        self.coverage.recording.clone_from(&self.recording);
        self.parts.push_back(Part::Coverage(std::mem::take(&mut self.coverage)));
        Ok(())
    }
}

fn set_path(row: &mut Operation, names: &mut Names, path: &mut Known) {
    let fresh = path.generation() != names.generation + 1;
    row.set_path(path.in_pool(names, |names| &mut names.path));
    if fresh {
        path.extension = extension_of(path.text()).map(|extension| {
            if extension.bytes().any(|byte| byte.is_ascii_uppercase() || !byte.is_ascii()) {
                names.extension.intern(&extension.to_lowercase())
            } else {
                names.extension.intern(extension)
            }
        });
    }
    if let Some(extension) = path.extension {
        row.set_extension(extension);
    }
}
