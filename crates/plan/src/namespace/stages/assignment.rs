//! Which namespace servers join, leave and stay, each with the state that it has or will have.

use super::{Move, SERVERS_MAX};
use crate::namespace::model::{Namespace, State, Target};
use crate::namespace::names::{Servers, qualified, same_server};
use crate::script::names::{check_server, check_verbatim};

/// A namespace server with its root share.
#[derive(Clone, Debug)]
pub(super) struct Server {
    /// As the namespace has it, or will have it.
    pub(super) name: String,
    pub(super) share: String,
    pub(super) state: State,
}

impl Server {
    fn new(name: &str, share: &str) -> Server {
        Server { name: name.to_owned(), share: share.to_owned(), state: State::Online }
    }

    fn of(target: &Target) -> Server {
        Server { state: target.state, ..Server::new(&target.server, &target.share) }
    }

    pub(super) fn is_offline(&self) -> bool {
        self.state == State::Offline
    }
}

/// Which servers join, leave and stay.
#[derive(Clone, Debug, Default)]
pub(super) struct Assigned {
    pub(super) new: Vec<Server>,
    pub(super) old: Vec<Server>,
    pub(super) kept: Vec<Server>,
}

/// Assigns the servers, and says what contradicts the namespace.
pub(super) fn assigned(namespace: &Namespace, wanted: &Move, errors: &mut Vec<String>) -> Assigned {
    let mut all = Assigned::default();
    for name in wanted.new_servers.iter().chain(&wanted.old_servers) {
        errors.extend(check_server(name).err());
    }
    for target in &namespace.targets {
        errors.extend(check_server(&target.server).err());
        errors.extend(check_verbatim("root share", &target.share).err());
    }
    let too_many =
        [&wanted.new_servers, &wanted.old_servers].iter().any(|list| list.len() > SERVERS_MAX)
            || namespace.targets.len() > SERVERS_MAX;
    if too_many {
        errors.push(format!("more than {SERVERS_MAX} namespace servers"));
        return all;
    }
    let leaving = Servers::new(wanted.old_servers.iter().map(String::as_str));
    let joining = Servers::new(wanted.new_servers.iter().map(String::as_str));
    for name in &wanted.old_servers {
        if joining.contains(name) {
            errors.push(format!("server `{name}` is among the new and the old ones"));
        }
        let is_known = namespace.targets.iter().any(|target| same_server(&target.server, name));
        if !is_known && !namespace.targets.is_empty() {
            errors.push(format!("old server `{name}` is not a server of the namespace"));
        }
    }
    for target in &namespace.targets {
        let server = Server::of(target);
        let leaves = if wanted.old_servers.is_empty() {
            !joining.contains(&target.server)
        } else {
            leaving.contains(&target.server)
        };
        if leaves { all.old.push(server) } else { all.kept.push(server) }
    }
    let mut shares = namespace.targets.iter().map(|target| &target.share);
    let first = shares.next();
    let share =
        first.filter(|first| shares.all(|other| other == *first)).unwrap_or(&namespace.name);
    // An export without root targets: the names are all there is.
    if namespace.targets.is_empty() {
        let server = |name: &String| Server::new(name, share);
        all.old.extend(wanted.old_servers.iter().map(server));
    }
    let suffix = suffix(namespace, wanted);
    let mut seen: Vec<&String> = Vec::new();
    for name in &wanted.new_servers {
        if seen.iter().any(|other| same_server(other, name)) {
            errors.push(format!("new server `{name}` is given twice"));
        }
        seen.push(name);
        if all.kept.iter().any(|kept| same_server(&kept.name, name)) {
            continue;
        }
        all.new.push(Server::new(&qualified(name, suffix), share));
    }
    if all.new.is_empty() && all.kept.is_empty() {
        errors.push("no namespace server would be left: name the new ones".to_owned());
    }
    all
}

/// The domain of short names.
pub(super) fn suffix<'a>(namespace: &'a Namespace, wanted: &'a Move) -> Option<&'a str> {
    let host = Some(namespace.host.as_str()).filter(|host| host.contains('.'));
    wanted.suffix.as_deref().or(host)
}
