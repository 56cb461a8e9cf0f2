//! What the plan of a move draws and lists, as data: servers, links and targets of a namespace, and stages with their
//! steps.

/// A namespace with its servers.
#[derive(Clone, Debug, Default)]
pub(crate) struct NamespaceMap {
    /// `\\contoso.com\Public`.
    pub(crate) root: String,
    pub(crate) servers: Vec<MapServer>,
    /// Namespace servers that there was no room for.
    pub(crate) undrawn_servers: u64,
    pub(crate) links: Vec<MapLink>,
    /// Links that there was no room for.
    pub(crate) undrawn_links: u64,
    pub(crate) targets: Vec<MapTarget>,
    /// Servers of targets that there was no room for.
    pub(crate) undrawn_targets: u64,
}

/// What becomes of a namespace server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Role {
    Joins,
    Leaves,
    #[default]
    Stays,
}

/// A namespace server.
#[derive(Clone, Debug)]
pub(crate) struct MapServer {
    pub(crate) name: String,
    pub(crate) role: Role,
    pub(crate) is_offline: bool,
}

/// A link, or several below one folder.
#[derive(Clone, Debug)]
pub(crate) struct MapLink {
    pub(crate) path: String,
    /// More than one if it represents all links below a folder.
    pub(crate) links: u64,
    pub(crate) is_offline: bool,
    /// Places in [`NamespaceMap::targets`], and whether all its targets there are offline.
    pub(crate) to: Vec<(usize, bool)>,
    /// Targets on servers that are not drawn.
    pub(crate) undrawn: u64,
}

/// A server that links lead to.
#[derive(Clone, Debug)]
pub(crate) struct MapTarget {
    pub(crate) name: String,
    /// Targets of links on it.
    pub(crate) targets: u64,
    pub(crate) role: Option<Role>,
}

/// A stage of a checklist.
#[derive(Clone, Debug)]
pub(crate) struct StageCard {
    pub(crate) number: usize,
    /// Its name on the command line.
    pub(crate) name: String,
    pub(crate) title: String,
    pub(crate) why: String,
    /// How far it is, if the move has begun.
    pub(crate) status: Option<String>,
    pub(crate) is_done: bool,
    /// Whether users notice it.
    pub(crate) is_noticed: bool,
    /// Who, how long, what users notice, the wait, the gate.
    pub(crate) facts: Vec<(&'static str, String)>,
    /// What must be true before.
    pub(crate) requires: Vec<String>,
    pub(crate) steps: Vec<StepCard>,
    pub(crate) undo: Vec<StepCard>,
    pub(crate) undo_note: String,
}

/// A step with its alternatives.
#[derive(Clone, Debug)]
pub(crate) struct StepCard {
    pub(crate) does: String,
    /// Where it runs, unless that is the administrator's machine.
    pub(crate) place: Option<String>,
    pub(crate) choices: Vec<Choice>,
    /// What shows that it worked.
    pub(crate) shows: String,
}

/// Lines of one tool.
#[derive(Clone, Debug)]
pub(crate) struct Choice {
    pub(crate) tool: &'static str,
    pub(crate) lines: Vec<String>,
    pub(crate) note: String,
}
