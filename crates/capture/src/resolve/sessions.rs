//! Sessions with their channels, and trees: whose an operation is, and on which share.

use smbscope_tables::operation::Operation;
use smbscope_wire::status::Status;

use super::Resolver;
use super::bounded::Entity as _;
use super::connections::Link;
use crate::outcome::{Done, Effect, Told};

impl Resolver {
    /// The session's place and number. Places are used again, so what belongs to a session is
    /// found by its number.
    pub(super) fn session(
        &mut self,
        link: &mut Link,
        done: &Done,
        told: &Told,
        row: &mut Operation,
    ) -> Option<(u32, u64)> {
        // SMB1 has none without a session.
        let is_one = |id| row.protocol() == Some(1) || !matches!(id, 0 | u64::MAX);
        let id = row.session_id().filter(|&id| is_one(id))?;
        let told = match done.effect {
            Effect::Session(index) => told.sessions.get(index as usize),
            _ => None,
        };
        if let Some(told) = told.filter(|told| told.refused) {
            if let Some(user) = &told.user {
                row.set_user(self.builder.names.user.intern(user));
            }
            if let Some(&(_, place, _)) = link.sessions.iter().find(|session| session.0 == id)
                && let Some(session) = self.sessions.get_mut(place)
                && session.id == id
            {
                // Nobody logged on in it before: there is no session.
                session.is_refused |= !session.user.is_known();
            }
            return None;
        }
        let known = link.sessions.iter().position(|&(known, _, _)| known == id);
        if let Some(at) = known.filter(|&at| at > 0) {
            link.sessions.swap(0, at);
        }
        let known = link.sessions.first().filter(|_| known.is_some()).map(|&(_, place, _)| place);
        // It may have been forgotten for the limit, and its place be another's. What ends after its
        // logoff is still its own, until the number is given to another.
        let known = known.filter(|&place| {
            let session = self.sessions.get(place).filter(|session| session.id == id);
            session.is_some_and(|session| told.is_none() || session.ended.is_none())
        });
        let place = match known {
            Some(place) => place,
            None => {
                link.sessions.retain(|&(known, _, _)| known != id);
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
                        let place = self.sessions.insert(self.sessions_seen, &mut |state| {
                            self.rows.sessions.extend(state.row(self.recording.text()));
                        });
                        self.sessions.get_mut(place)?.begin(id, link.number, done.time);
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
                    session.client = link.client_name.shared().unwrap_or_default();
                    session.row.server = link.server_name.text().to_owned();
                }
                link.join(id, place, channel);
                place
            }
        };
        row.set_channel(link.sessions.first().map_or(0, |&(_, _, channel)| channel));
        let session = self.sessions.get_mut(place)?;
        let number = session.key();
        session.row.operations += 1;
        session.is_refused = false;
        session.row.end = session.row.end.max(done.time);
        if let Some(told) = told {
            session.learn(told);
            if let Some(guid) = told.client_guid.filter(|_| !told.binding) {
                if self.by_guid.len() > 2 * self.limits.sessions {
                    self.by_guid.clear();
                }
                self.by_guid.insert((guid, id), place);
            }
        }
        let previous = told.and_then(|told| told.previous).filter(|_| row.status() == Some(0));
        if session.user.is_known() {
            row.set_user(session.user.in_pool(&mut self.builder.names, |names| &mut names.user));
        }
        if done.effect == Effect::Logoff {
            session.ended = Some((done.time, row.operation()));
            self.by_address.remove(&(link.client, link.server, id));
        }
        if let Some(previous) = previous.filter(|&previous| previous != id)
            && let Some(&place) = self.by_address.get(&(link.client, link.server, previous))
            && let Some(replaced) = self.sessions.get_mut(place).filter(|one| one.id == previous)
        {
            replaced.channels.replace(done.time);
        }
        Some((place, number))
    }

    pub(super) fn tree(
        &mut self,
        link: &mut Link,
        session: Option<(u32, u64)>,
        done: &Done,
        told: &Told,
        row: &mut Operation,
    ) -> Option<u32> {
        let tree_told = match done.effect {
            Effect::Tree(index) => told.trees.get(index as usize),
            _ => None,
        };
        if let Some(refused) = tree_told.filter(|one| one.refused) {
            // There is no tree, but who looks for the cause wants to know of which share.
            if let Some(share) = refused.share {
                row.set_share(self.builder.names.share.intern(told.text(share)));
            }
            return None;
        }
        let key = (session?.1, row.tree_id()?);
        let place = match self.trees.find(&key, link.tree) {
            Some(place) if tree_told.is_none() => place,
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
        link.tree = place;
        let tree = self.trees.get_mut(place)?;
        tree.row.operations += 1;
        tree.row.end = tree.row.end.max(done.time);
        if done.effect == Effect::TreeDisconnect {
            tree.ended = Some((done.time, row.operation()));
        }
        if let Some(one) = tree_told {
            tree.learn(one, one.share.map(|share| told.text(share)));
        }
        if tree.share.is_known() {
            row.set_share(tree.share.in_pool(&mut self.builder.names, |names| &mut names.share));
        }
        Some(place)
    }
}
