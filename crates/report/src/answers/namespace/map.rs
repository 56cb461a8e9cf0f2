//! The drawing of a namespace: its servers, its links, and the servers that they lead to.

pub(crate) mod build;
pub(crate) mod svg;

use std::fmt::{self, Write};

use crate::document::{Drawing, TextOptions};
use crate::value::format::{self, sanitized, shortened};

/// Links that are listed.
const LINKS: usize = 40;

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

impl Drawing for NamespaceMap {
    fn svg(&self, out: &mut String) {
        svg::write(out, self);
    }

    fn text(&self, out: &mut String, options: &TextOptions) -> fmt::Result {
        if options.all { write_text(out, self, options.columns()) } else { Ok(()) }
    }

    fn style(&self) -> &'static str {
        include_str!("namespace.css")
    }
}

/// The namespace as an outline.
fn write_text(out: &mut String, map: &NamespaceMap, width: usize) -> fmt::Result {
    writeln!(out, "{}", shortened(&sanitized(&map.root), width))?;
    for server in &map.servers {
        let role = match server.role {
            Role::Joins => "joins",
            Role::Leaves => "leaves",
            Role::Stays => "stays",
        };
        let offline = if server.is_offline { ", offline" } else { "" };
        writeln!(out, "  server  {} ({role}{offline})", sanitized(&server.name))?;
    }
    for link in map.links.iter().take(LINKS) {
        let names = link.to.iter().filter_map(|(place, is_offline)| {
            let name = sanitized(&map.targets.get(*place)?.name);
            Some(if *is_offline { format!("{name} (offline)") } else { name })
        });
        let mut names: Vec<_> = names.collect();
        if link.undrawn > 0 {
            names.push(format!("{} more", format::count(link.undrawn)));
        }
        let many = match link.links {
            1 => String::new(),
            count => format!(" ({} links)", format::count(count)),
        };
        let offline = if link.is_offline { " (offline)" } else { "" };
        let link = format!("  link    {}{many}{offline} -> ", sanitized(&link.path));
        let rest = width.saturating_sub(link.chars().count()).max(20);
        writeln!(out, "{link}{}", shortened(&names.join(", "), rest))?;
    }
    for (count, what) in [
        (map.undrawn_servers, "namespace servers"),
        (map.undrawn_links, "links"),
        (map.undrawn_targets, "servers of targets"),
    ] {
        if count > 0 {
            writeln!(out, "  {} more {what}", format::count(count))?;
        }
    }
    Ok(())
}
