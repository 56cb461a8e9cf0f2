//! Sessions with their channels, and trees: the user and the share of an operation.

use smbscope_tables::operation::Operation;
use smbscope_wire::status::Status;

use super::Resolver;
use super::bounded::Entity as _;
use super::connections::ConnectionState;
use crate::outcome::{Details, Effect, OperationEnd};

impl Resolver {
    /// The index and number of the session. Indexes are reused, so what belongs to a session is
    /// found by its number.
    pub(super) fn session(
        &mut self,
        connection: &mut ConnectionState,
        done: &OperationEnd,
        details: &Details,
        row: &mut Operation,
    ) -> Option<(u32, u64)> {
        let setup = match done.effect {
            Effect::Session(index) => details.sessions.get(index as usize),
            _ => None,
        };
        // Also if the server refuses at once, so that there is no number.
        if let Some(user) = setup.filter(|one| one.refused).and_then(|one| one.user.as_ref()) {
            row.set_user(self.builder.names.user.intern(user));
        }
        // In SMB1 these numbers are valid.
        let is_one = |id| row.protocol() == Some(1) || !matches!(id, 0 | u64::MAX);
        let id = row.session_id().filter(|&id| is_one(id))?;
        if let Some(setup) = setup.filter(|setup| setup.refused) {
            if let Some(&(_, place, _)) = connection.sessions.iter().find(|session| session.0 == id)
                && let Some(session) = self.sessions.get_mut(place)
                && session.id == id
            {
                // No user logged on in it before, so there is no session.
                session.is_refused |= !session.user.is_known();
            }
            self.timeline.setup(connection, (id, None), setup, row, done.time);
            return None;
        }
        let known = connection.sessions.iter().position(|&(known, _, _)| known == id);
        if let Some(at) = known.filter(|&at| at > 0) {
            connection.sessions.swap(0, at);
        }
        let known =
            connection.sessions.first().filter(|_| known.is_some()).map(|&(_, place, _)| place);
        // The session may have been forgotten for the limit, and its index reused. Operations that
        // end after the logoff still belong to it, until its id is given to another session.
        let known = known.filter(|&place| {
            let session = self.sessions.get(place).filter(|session| session.id == id);
            session.is_some_and(|session| setup.is_none() || session.ended.is_none())
        });
        let place = match known {
            Some(place) => place,
            None => {
                connection.sessions.retain(|&(known, _, _)| known != id);
                let address = (connection.client, connection.server, id);
                let elsewhere = match setup {
                    Some(setup) if !setup.binding => None,
                    Some(setup) => setup
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
                        let place = self.sessions.insert(self.sessions_seen, &mut |state| {
                            self.rows.sessions.extend(state.row(self.recording.text()));
                        });
                        self.sessions.get_mut(place)?.begin(id, connection.number, done.time);
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
                session.channels.join();
                if session.client.is_empty() {
                    session.client = connection.client_name.shared().unwrap_or_default();
                    session.row.server = connection.server_name.text().to_owned();
                }
                connection.join(id, place, channel);
                if setup.is_none() {
                    self.timeline.join(connection, id, channel);
                }
                place
            }
        };
        let channel = connection.sessions.first().map_or(0, |&(_, _, channel)| channel);
        row.set_channel(channel);
        if let Some(setup) = setup {
            self.timeline.setup(connection, (id, Some(channel)), setup, row, done.time);
        }
        let session = self.sessions.get_mut(place)?;
        let number = session.key();
        session.row.operations += 1;
        session.is_refused = false;
        session.row.end = session.row.end.max(done.time);
        if let Some(setup) = setup {
            session.learn(setup);
            self.sessions.measure(place, &mut |state| {
                self.rows.sessions.extend(state.row(self.recording.text()));
            });
            if let Some(guid) = setup.client_guid.filter(|_| !setup.binding) {
                if self.by_guid.len() > 2 * self.limits.sessions {
                    self.by_guid.clear();
                }
                self.by_guid.insert((guid, id), place);
            }
        }
        let session = self.sessions.get_mut(place)?;
        let previous = setup.and_then(|setup| setup.previous).filter(|_| row.status() == Some(0));
        if session.user.is_known() {
            row.set_user(session.user.in_pool(&mut self.builder.names, |names| &mut names.user));
        }
        if done.effect == Effect::Logoff {
            session.ended = Some((done.time, row.operation()));
            self.by_address.remove(&(connection.client, connection.server, id));
        }
        if let Some(previous) = previous.filter(|&previous| previous != id)
            && let Some(&place) =
                self.by_address.get(&(connection.client, connection.server, previous))
            && let Some(replaced) = self.sessions.get_mut(place).filter(|one| one.id == previous)
        {
            replaced.channels.replace(done.time);
        }
        Some((place, number))
    }

    pub(super) fn tree(
        &mut self,
        connection: &mut ConnectionState,
        session: Option<(u32, u64)>,
        done: &OperationEnd,
        details: &Details,
        row: &mut Operation,
    ) -> Option<u32> {
        let answer = match done.effect {
            Effect::Tree(index) => details.trees.get(index as usize),
            _ => None,
        };
        if let Some(refused) = answer.filter(|one| one.refused) {
            // There is no tree, but the share explains the failure.
            if let Some(share) = refused.share {
                row.set_share(self.builder.names.share.intern(details.text(share)));
            }
            return None;
        }
        let key = (session?.1, row.tree_id()?);
        let place = match self.trees.find(&key, connection.tree) {
            Some(place) if answer.is_none() => place,
            None if row.status() == Some(Status::NETWORK_NAME_DELETED.0) => return None,
            _ => {
                let place = self.trees.insert(key, &mut |state| {
                    self.rows.trees.push(state.row(self.recording.text()));
                });
                self.trees_seen += 1;
                self.trees.get_mut(place)?.begin(self.trees_seen, row, done.time);
                place
            }
        };
        connection.tree = place;
        let tree = self.trees.get_mut(place)?;
        tree.row.operations += 1;
        tree.row.end = tree.row.end.max(done.time);
        if done.effect == Effect::TreeDisconnect {
            tree.ended = Some((done.time, row.operation()));
        }
        if let Some(one) = answer {
            tree.learn(one, one.share.map(|share| details.text(share)));
            self.trees.measure(place, &mut |state| {
                self.rows.trees.push(state.row(self.recording.text()));
            });
        }
        let tree = self.trees.get_mut(place)?;
        if tree.share.is_known() {
            row.set_share(tree.share.in_pool(&mut self.builder.names, |names| &mut names.share));
        }
        Some(place)
    }
}
