//! Module floors: the modules of a crate are stacked, and a module uses modules of lower floors
//! only. Modules on the same floor do not use each other. `lib.rs` (or the file of the parent
//! module) declares and re-exports the modules and is not on a floor.
//!
//! The test compares the module that a path in the sources names (`imports`) with the module that
//! the path is in.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::imports::crate_files;

/// The modules below one parent, from the lowest floor to the highest.
struct Floors {
    /// Folder of the crate.
    package: &'static str,
    /// The parent module, for example `smb`; empty for the crate itself.
    parent: &'static str,
    floors: &'static [&'static [&'static str]],
}

const FLOORS: &[Floors] = &[
    Floors {
        package: "wire",
        parent: "",
        floors: &[
            &["read", "status"],
            &["text"],
            &["auth", "compression", "dfs", "nbss"],
            &["smb1", "smb2"],
            &["crypto"],
            &["secrets"],
        ],
    },
    Floors {
        package: "capture",
        parent: "",
        floors: &[
            // Bytes, limits, and the data that a shard passes to the resolver.
            &["file", "limits", "outcome"],
            // Settings; segments, and streams of messages.
            &["frame", "options", "stream"],
            // Messages to operations; RDMA's packets to streams of messages.
            &["closer_look", "kdc", "netbeui", "quic", "rdma", "smb"],
            // One connection, which drives `smb`; and modules that span connections.
            &["resolve", "tcp"],
            // Packets of other services, and of connections before SMB.
            &["waits"],
            &["shard"],
            // The drivers of the shards.
            &["decoder", "push_decoder"],
            &["live"],
        ],
    },
    Floors {
        package: "capture",
        parent: "rdma",
        floors: &[&["cm", "infiniband", "mpa", "psn", "smb_direct"], &["iwarp"]],
    },
    Floors {
        package: "capture",
        parent: "smb",
        floors: &[
            &["logon", "pending", "secrets"],
            &["unanswered"],
            &["pairing"],
            &["context"],
            &["smb1", "smb2"],
        ],
    },
    Floors {
        package: "capture",
        parent: "smb::smb1",
        floors: &[
            &["member", "open"],
            &["transactions"],
            &["stage"],
            &["reply", "request"],
            &["exchange"],
            &["early_replies"],
            &["pairing", "raw"],
        ],
    },
    Floors {
        package: "analysis",
        parent: "",
        floors: &[
            &["logged", "rows"],
            &["both_sides", "channels", "net", "stats"],
            // Part of the summary and of the diagnosis.
            &["durability"],
            &["compare", "live", "predict", "processors", "summary"],
            // Both use replays.
            &["explain", "replication"],
        ],
    },
    Floors {
        package: "report",
        parent: "",
        floors: &[
            // What a value reads like.
            &["value"],
            // What a page or a text says, as data.
            &["document"],
            // How it is shown; no answer is known here.
            &["render"],
            // For people and for other programs.
            &["answers", "export"],
        ],
    },
    Floors {
        package: "tables",
        parent: "",
        floors: &[
            &[
                "busy",
                "column",
                "command_class",
                "date",
                "interface",
                "named_columns",
                "pool",
                "protection",
                "quantity",
                "status_meaning",
            ],
            &["readable"],
            // The macros for rows; the row of the largest table has its own.
            &["operation", "row"],
            &["builder", "message", "tables"],
            &["anonymize", "channels", "open", "run", "slice"],
            &["description", "profile", "registry"],
            &["filter", "version"],
            &["manifest"],
        ],
    },
    Floors {
        package: "load",
        parent: "",
        floors: &[
            &["calibrate", "durability", "fileset", "net", "recorder", "stats"],
            &["capacity", "prepare", "self_check", "workload"],
            &["execute", "migrate"],
            &["run"],
        ],
    },
    Floors {
        package: "load",
        parent: "durability",
        floors: &[
            &["block", "files", "risk", "server"],
            &["plan"],
            &["journal"],
            &["ledger", "writer"],
            &["judge"],
            &["result"],
            &["verify"],
        ],
    },
    Floors {
        package: "load",
        parent: "net",
        floors: &[
            &["cpu", "error", "percentile", "socket_option", "spec", "token"],
            &["handshake", "limit", "message"],
            &["accept", "control", "sample"],
            &["stream"],
            &["phase", "round_trips"],
            &["result"],
            &["send"],
            &["iperf3", "listen"],
        ],
    },
    Floors {
        package: "load",
        parent: "capacity",
        floors: &[
            &["interval", "limit", "overload"],
            &["answer", "early_stop", "schedule_log"],
            &["table"],
            &["step"],
            &["search"],
        ],
    },
    Floors {
        package: "load",
        parent: "workload",
        floors: &[
            &["error", "template", "words"],
            &["model", "table"],
            &["change", "check", "notation", "schedule"],
            &["building", "plan"],
            &["count", "migration", "parse_request"],
            &["parse"],
        ],
    },
    Floors {
        package: "load",
        parent: "run",
        floors: &[&["outage", "user", "users", "window"], &["shared"]],
    },
    Floors {
        package: "load",
        parent: "migrate",
        floors: &[&["request", "timeline"], &["blocks", "files"], &["run"], &["join", "result"]],
    },
    Floors {
        package: "plan",
        parent: "",
        floors: &[&["input"], &["script"], &["baseline", "cores", "namespace", "replication"]],
    },
    Floors {
        package: "plan",
        parent: "input",
        floors: &[&["text"], &["unknown"], &["lines"], &["xml"], &["powershell"]],
    },
    Floors { package: "plan", parent: "script", floors: &[&["names", "quote"]] },
    Floors {
        package: "plan",
        parent: "baseline",
        floors: &[
            &["hardened", "setting"],
            // Settings of files, and what the catalogue says about them.
            &["bisect", "catalogue", "effective"],
            &["roles"],
            &["read"],
            &["terms", "write"],
            &["difference"],
            &["protection"],
            &["cost"],
            &["judgement"],
        ],
    },
    Floors {
        package: "plan",
        parent: "namespace",
        floors: &[
            &["model", "waits"],
            &["names"],
            &["form", "stages"],
            &["difference", "read", "referral"],
            &["gate"],
            &["progress", "resolution", "write"],
            &["check", "rewrite"],
        ],
    },
];

#[test]
fn modules_use_lower_floors_only() {
    let mut wrong = Vec::new();
    for stack in FLOORS {
        let sources = crate::workspace().join("crates").join(stack.package).join("src");
        wrong.extend(check(stack, &sources));
    }
    assert!(wrong.is_empty(), "modules that do not keep to their floors:\n{}", wrong.join("\n"));
}

fn check(stack: &Floors, sources: &Path) -> Vec<String> {
    let parent: Vec<&str> = stack.parent.split("::").filter(|name| !name.is_empty()).collect();
    let mut floors = BTreeMap::new();
    for (floor, modules) in stack.floors.iter().enumerate() {
        for module in *modules {
            assert!(floors.insert(*module, floor).is_none(), "`{module}` is on two floors");
        }
    }

    let mut wrong = Vec::new();
    let mut found = BTreeSet::new();
    for file in crate_files(sources) {
        let Some(module) = child_of(&parent, &file.module) else { continue };
        found.insert(module.to_owned());
        let shown = file.path.strip_prefix(sources.parent().unwrap()).unwrap().display();
        let shown = format!("crates/{}/{shown}", stack.package);
        let Some(floor) = floors.get(module) else {
            wrong.push(format!("{shown}: `{module}` is not in the list of floors"));
            continue;
        };
        for (line, path) in &file.uses {
            let path_text = path.join("::");
            let Some(used) = child_of(&parent, path).filter(|used| *used != module) else {
                continue;
            };
            match floors.get(used) {
                Some(below) if below < floor => {}
                Some(other) => wrong.push(format!(
                    "{shown}:{line}: `{module}` (floor {}) uses `{used}` (floor {}): {path_text}",
                    floor + 1,
                    other + 1,
                )),
                // An item that the parent module itself defines.
                None if !parent.is_empty() => {}
                None => wrong.push(format!(
                    "{shown}:{line}: `{path_text}` does not name a module of the list of floors; \
                     import it from the module that defines it"
                )),
            }
        }
    }
    for module in floors.keys().filter(|module| !found.contains(**module)) {
        wrong.push(format!("{}: there is no module `{module}`", stack.package));
    }
    wrong
}

/// The name directly below `parent` in `path`: for `smb` and `smb::smb2::reply` it is `smb2`.
fn child_of<'a>(parent: &[&str], path: &'a [String]) -> Option<&'a str> {
    let below = parent.len() < path.len() && path.iter().zip(parent).all(|(a, b)| a == b);
    below.then(|| path[parent.len()].as_str())
}
