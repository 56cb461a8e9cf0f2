//! Servers, a namespace in the directory, files of the move, and clients with their lists; and what must hold of them.

use std::collections::{BTreeMap, BTreeSet};

use smbscope_plan::namespace::model::{
    CachedReferral, CachedTarget, ClientCache, Flags, Kind, Link, Namespace, PriorityClass, State,
    Target,
};

/// A machine that can be a namespace server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Server {
    /// Service Dfs, and service Server, which carries every command to the machine on TCP 445.
    pub has_dfs: bool,
    pub has_server: bool,
    /// Shares with their security descriptors, by name in lower case.
    pub shares: BTreeMap<String, String>,
    pub uses_fqdn: bool,
}

/// The root in the directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Root {
    pub kind: Kind,
    pub ttl_s: u32,
    pub flags: Flags,
    pub comment: Option<String>,
    pub targets: Vec<Target>,
    /// Sorted by path.
    pub links: Vec<Link>,
    /// Whether explicit accounts may manage it, and which links have view permissions.
    pub is_delegated: bool,
    pub viewed: BTreeSet<String>,
}

/// A file of the move.
#[derive(Clone, Debug)]
pub enum File {
    Export(Vec<u8>),
    Servers(Vec<Target>),
    Links(Vec<Link>),
    Settings(BTreeMap<String, bool>),
    Delegation(bool),
    Access(BTreeSet<String>),
    Text,
}

/// A client that uses the namespace all the time.
#[derive(Clone, Debug)]
pub struct Client {
    pub list: Vec<String>,
    pub until_s: u64,
}

pub struct World {
    pub domain: &'static str,
    pub netbios: &'static str,
    pub name: String,
    pub root: Option<Root>,
    pub servers: BTreeMap<String, Server>,
    pub files: BTreeMap<String, File>,
    pub clients: Vec<Client>,
    pub now_s: u64,
    /// Links that a client could open at first.
    opened: BTreeSet<String>,
    redundancy: usize,
}

/// The default of a root that was just created.
pub fn new_root(kind: Kind, ttl_s: u32, target: Target) -> Root {
    Root {
        kind,
        ttl_s,
        flags: Flags {
            site_costing: Some(false),
            insite_referrals: Some(false),
            root_scalability: Some(false),
            access_based_enumeration: Some(false),
            target_failback: Some(false),
        },
        comment: None,
        targets: vec![target],
        links: Vec::new(),
        is_delegated: false,
        viewed: BTreeSet::new(),
    }
}

/// A target with the priority that a new one has.
pub fn new_target(server: &str, share: &str, state: State) -> Target {
    Target {
        server: server.to_owned(),
        share: share.to_owned(),
        state,
        priority_class: Some(PriorityClass::SiteCostNormal),
        priority_rank: Some(0),
        ..Target::default()
    }
}

impl World {
    pub fn new(
        domain: &'static str,
        netbios: &'static str,
        namespace: &Namespace,
        machines: &[(String, bool)],
        clients: usize,
    ) -> World {
        let root = Root {
            comment: namespace.comment.clone(),
            targets: namespace.targets.clone(),
            flags: namespace.flags,
            links: namespace
                .links
                .iter()
                .map(|link| Link { security: None, ..link.clone() })
                .collect(),
            is_delegated: true,
            viewed: namespace
                .links
                .iter()
                .filter(|link| link.security.is_some())
                .map(|link| link.path.clone())
                .collect(),
            ..new_root(namespace.kind.unwrap(), namespace.ttl_s.unwrap(), Target::default())
        };
        let server = |uses_fqdn: bool| Server {
            has_dfs: true,
            has_server: true,
            shares: BTreeMap::new(),
            uses_fqdn,
        };
        let mut servers: BTreeMap<_, _> =
            machines.iter().map(|(name, uses_fqdn)| (name.clone(), server(*uses_fqdn))).collect();
        for target in &namespace.targets {
            let label = target.server.split('.').next().unwrap().to_lowercase();
            let shares = &mut servers.get_mut(&label).unwrap().shares;
            shares.insert(target.share.to_lowercase(), "its own permissions".to_owned());
        }
        let mut world = World {
            domain,
            netbios,
            name: namespace.name.clone(),
            root: Some(root),
            servers,
            files: BTreeMap::new(),
            clients: vec![Client { list: Vec::new(), until_s: 0 }; clients],
            now_s: 0,
            opened: BTreeSet::new(),
            redundancy: 0,
        };
        // They ask at different times.
        for number in 0..clients {
            world.fetch(number);
            world.clients[number].until_s -=
                u64::from(namespace.ttl_s.unwrap()) * number as u64 / 8;
        }
        world.opened =
            world.links().into_iter().filter(|(_, open)| *open).map(|(path, _)| path).collect();
        world.redundancy = world.clients.iter().map(|one| world.serving(one)).min().unwrap();
        world
    }

    /// The first label of a host that DNS knows; none for others.
    pub fn machine(&self, host: &str) -> Option<String> {
        let host = host.trim_matches('\\').to_lowercase();
        let label = host.strip_suffix(&format!(".{}", self.domain)).unwrap_or(&host);
        self.servers.contains_key(label).then(|| label.to_owned())
    }

    pub fn server(&mut self, host: &str) -> &mut Server {
        let label = self.machine(host).unwrap_or_else(|| panic!("no machine {host}"));
        self.servers.get_mut(&label).unwrap()
    }

    pub fn root(&mut self) -> &mut Root {
        self.root.as_mut().expect("the root exists")
    }

    /// The root target of a path `\\server\share`.
    pub fn target(&mut self, path: &str) -> &mut Target {
        let (server, _) = self.split(path);
        let targets = &mut self.root().targets;
        let found = targets.iter_mut().find(|one| one.server.eq_ignore_ascii_case(&server));
        found.unwrap_or_else(|| panic!("{path} is not a root target"))
    }

    pub fn split(&self, path: &str) -> (String, String) {
        let (server, share) = path.trim_start_matches('\\').split_once('\\').expect("a UNC path");
        (server.to_owned(), share.to_owned())
    }

    /// Adds a root target: it needs a share, a running service, and no other target of the machine.
    pub fn join(&mut self, path: &str, state: State) {
        let (server, share) = self.split(path);
        let label = self.machine(&server).unwrap_or_else(|| panic!("no machine {server}"));
        let machine = &self.servers[&label];
        assert!(machine.has_dfs && machine.shares.contains_key(&share.to_lowercase()), "{path}");
        let others: Vec<_> = self.root().targets.iter().map(|one| one.server.clone()).collect();
        let is_member = others.iter().any(|other| self.machine(other).as_ref() == Some(&label));
        assert!(!is_member, "{path} is a root target already");
        self.root().targets.push(new_target(&server, &share, state));
    }

    /// Whether a server answers clients that have it in their list.
    fn serves(&self, host: &str) -> bool {
        let (Some(root), Some(label)) = (&self.root, self.machine(host)) else { return false };
        let is_target = |one: &Target| self.machine(&one.server).as_ref() == Some(&label);
        let Some(target) = root.targets.iter().find(|one| is_target(one)) else { return false };
        let machine = &self.servers[&label];
        machine.has_dfs
            && machine.has_server
            && machine.shares.contains_key(&target.share.to_lowercase())
    }

    fn serving(&self, client: &Client) -> usize {
        client.list.iter().filter(|host| self.serves(host)).count()
    }

    /// A client asks for the list of namespace servers.
    fn fetch(&mut self, number: usize) {
        let Some(root) = &self.root else { return };
        let online = root.targets.iter().filter(|target| target.state == State::Online);
        let list: Vec<_> = online.map(|target| target.server.clone()).collect();
        let until_s = self.now_s + u64::from(root.ttl_s);
        self.clients[number] = Client { list, until_s };
    }

    /// Whether DNS or NetBIOS know a host.
    pub fn resolves(&self, host: &str) -> bool {
        let host = host.to_lowercase();
        host == self.domain || host == self.netbios.to_lowercase() || self.machine(&host).is_some()
    }

    /// Whether a link of a path leads somewhere.
    pub fn opens(&self, path: &str) -> bool {
        let below = path.splitn(5, '\\').nth(4).unwrap().to_lowercase();
        self.links().iter().any(|(link, open)| *link == below && *open)
    }

    /// Whether each link leads somewhere.
    fn links(&self) -> Vec<(String, bool)> {
        let root = self.root.as_ref().unwrap();
        let leads =
            |target: &Target| target.state == State::Online && self.resolves(&target.server);
        let links = root.links.iter();
        links.map(|link| (link.path.to_lowercase(), link.targets.iter().any(leads))).collect()
    }

    /// Every client uses the namespace: how many could not.
    pub fn use_all(&mut self) -> Result<(), String> {
        for number in 0..self.clients.len() {
            if self.clients[number].until_s <= self.now_s {
                self.fetch(number);
            }
            let client = &self.clients[number];
            if self.serving(client) == 0 {
                return Err(format!("client {number} has {:?}, and none serves", client.list));
            }
        }
        let links = self.links();
        let dead =
            self.opened.iter().find(|path| !links.iter().any(|(one, open)| one == *path && *open));
        dead.map_or(Ok(()), |path| Err(format!("the link {path} leads nowhere")))
    }

    /// The least number of servers that answer a client.
    pub fn redundancy(&mut self) -> usize {
        for number in 0..self.clients.len() {
            if self.clients[number].until_s <= self.now_s {
                self.fetch(number);
            }
        }
        self.clients.iter().map(|client| self.serving(client)).min().unwrap()
    }

    pub fn first_redundancy(&self) -> usize {
        self.redundancy
    }

    /// The caches of all clients, which name the domain in one or the other way.
    pub fn caches(&self) -> Vec<ClientCache> {
        let cache = |(number, client): (usize, &Client)| {
            let host = if number % 2 == 0 { self.domain } else { self.netbios };
            let target = |server: &String| CachedTarget {
                server: server.clone(),
                ..CachedTarget::default()
            };
            ClientCache {
                client: format!("PC{number}"),
                read_at_s: Some(self.now_s as i64),
                referrals: vec![CachedReferral {
                    entry: format!(r"{host}\{}", self.name),
                    expires_s: Some(client.until_s.saturating_sub(self.now_s)),
                    use_count: Some(1),
                    targets: client.list.iter().map(target).collect(),
                    ..CachedReferral::default()
                }],
                open_files: Vec::new(),
                ..ClientCache::default()
            }
        };
        self.clients.iter().enumerate().map(cache).collect()
    }

    /// What an undo must bring back.
    pub fn snapshot(&self) -> (Option<Root>, BTreeMap<String, Server>) {
        let mut root = self.root.clone();
        if let Some(root) = &mut root {
            root.targets.sort_by_key(|target| target.server.to_lowercase());
            root.links.sort_by_key(|link| link.path.to_lowercase());
        }
        (root, self.servers.clone())
    }
}
