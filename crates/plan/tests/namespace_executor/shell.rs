//! Executes the lines that a plan prints. A command that it does not know fails the test, and so does one that Windows would
//! refuse: a second root of the name, a service that is started through itself, the removal of the last server.

use std::collections::BTreeMap;

use smbscope_plan::namespace::difference::{What, difference};
use smbscope_plan::namespace::form::Form;
use smbscope_plan::namespace::model::{Kind, Link, Namespace, PriorityClass, State, Target};
use smbscope_plan::namespace::read::read;
use smbscope_plan::namespace::rewrite::{Rules, SuffixRule, rewrite};
use smbscope_plan::namespace::write::{Allowed, write};

use crate::words::{must, parameter, pipeline};
use crate::world::{File, World, new_root, new_target};

/// Programs and cmdlets that change nothing of what is modelled.
const SHOWS: [&str; 17] = [
    "dsquery.exe",
    "dfsdiag.exe",
    "nltest.exe",
    "repadmin.exe",
    "timeout.exe",
    "dir",
    "openfiles.exe",
    "Get-SmbOpenFile",
    "fc.exe",
    "ldifde.exe",
    "icacls.exe",
    "robocopy.exe",
    "Import-Module",
    r".\collect.ps1",
    "Get-DfsnServerConfiguration",
    "Install-WindowsFeature",
    "$domain.DomainMode",
];

pub struct Shell {
    /// `$access`: the descriptor of a share.
    access: Option<String>,
}

impl Shell {
    pub fn new() -> Shell {
        Shell { access: None }
    }

    /// Executes a line.
    pub fn run(&mut self, line: &str, world: &mut World) {
        if line.starts_with('$') {
            return self.assign(line, world);
        }
        if line.starts_with("([WMIClass]") {
            return self.share_by_wmi(line, world);
        }
        if line.starts_with("(Get-ADForest") {
            return;
        }
        let commands = pipeline(line);
        let words = &commands[0];
        let last = commands.last().unwrap();
        match words[0].as_str() {
            "(Get-Acl" | "(Get-Acl -Path" => unreachable!(),
            name if name.starts_with("(Get-Acl") => {
                let delegated = world.root().is_delegated;
                world
                    .files
                    .insert(must(last, "-LiteralPath").to_owned(), File::Delegation(delegated));
            }
            _ if last[0] == "Export-Csv" => export_csv(words, must(last, "-LiteralPath"), world),
            "Import-Csv" => import_csv(&commands, line, world),
            "dfsutil" => dfsutil(&words[1..], world),
            "sc.exe" => service(words, world),
            "reg.exe" => registry(words, world),
            "net.exe" => net(words, world),
            "dsacls.exe" if words.contains(&"/G".to_owned()) => grant(world),
            "dsacls.exe" => {}
            "smbscope" => smbscope(&words[1..], world),
            "Start-Sleep" => world.now_s += must(words, "-Seconds").parse::<u64>().unwrap(),
            "Test-Path" => assert!(world.opens(must(words, "-LiteralPath")), "{line}"),
            "Invoke-Command" => invoke(words, world),
            "New-SmbShare" => share(words, world),
            "Set-DfsnServerConfiguration" => {
                let on = must(words, "-UseFqdn") == "$true";
                world.server(must(words, "-ComputerName")).uses_fqdn = on;
            }
            "Get-DfsnFolder" => priorities_of_links(world),
            name if SHOWS.contains(&name) || name.starts_with("Get-Dfsn") => {}
            name if name.contains("-Dfsn") => cmdlet(words, world),
            name => panic!("unknown command {name}: {line}"),
        }
    }

    fn assign(&mut self, line: &str, world: &mut World) {
        if let Some(rest) = line.strip_prefix("$access = (Get-WmiObject -ComputerName ") {
            let (server, rest) = rest.split_once(' ').unwrap();
            let (_, name) = rest.split_once("-eq ").unwrap();
            let name = pipeline(name.split(" }).").next().unwrap())[0][0].to_lowercase();
            self.access = Some(world.server(server).shares[&name].clone());
            return;
        }
        let known = [
            "$domain = Get-ADDomain",
            "$domain.DomainMode",
            "$configuration = ([ADSI]",
            "$pdc = Read-Host",
            "$pdc = (Get-ADDomain",
            "$saved = @{}; Import-Csv",
            "$acl = Get-Acl",
        ];
        match line {
            _ if line.starts_with("$was.Access |") && line.contains("Set-Acl") => grant(world),
            _ => assert!(known.iter().any(|start| line.starts_with(start)), "unknown: {line}"),
        }
    }

    fn share_by_wmi(&mut self, line: &str, world: &mut World) {
        let (class, rest) = line.split_once(".Create(").unwrap();
        let server = class.split(r"\\").nth(1).unwrap().split('\\').next().unwrap();
        let arguments = &pipeline(rest.strip_suffix(')').unwrap())[0];
        assert_eq!(arguments.len(), 7, "{line}");
        let name = arguments[1].trim_end_matches(',').to_lowercase();
        let access = self.access.clone().expect("$access is set");
        let old = world.server(server).shares.insert(name, access);
        assert!(old.is_none(), "the share exists: {line}");
    }
}

fn is_root(path: &str, world: &World) {
    let wanted = format!(r"\\{}\{}", world.domain, world.name);
    assert_eq!(path, wanted);
}

fn flag<'a>(world: &'a mut World, name: &str) -> &'a mut Option<bool> {
    let flags = &mut world.root().flags;
    match name.to_lowercase().trim_start_matches("-enable") {
        "sitecosting" => &mut flags.site_costing,
        "insite" | "insitereferrals" => &mut flags.insite_referrals,
        "rootscalability" => &mut flags.root_scalability,
        "targetfailback" => &mut flags.target_failback,
        "abe" | "accessbasedenumeration" => &mut flags.access_based_enumeration,
        other => panic!("unknown flag {other}"),
    }
}

fn create(path: &str, kind: Kind, ttl_s: u32, world: &mut World) {
    assert!(world.root.is_none(), "the root exists");
    let (server, share) = world.split(path);
    let machine = world.server(&server);
    assert!(machine.has_dfs && machine.shares.contains_key(&share.to_lowercase()), "{path}");
    world.root = Some(new_root(kind, ttl_s, new_target(&server, &share, State::Online)));
}

fn remove_target(path: &str, world: &mut World) {
    assert!(world.root().targets.len() > 1, "the last server would delete the namespace");
    let (server, share) = world.split(path);
    let count = world.root().targets.len();
    world.root().targets.retain(|one| !(one.server == server && one.share == share));
    assert_eq!(world.root().targets.len() + 1, count, "{path}");
}

fn dfsutil(words: &[String], world: &mut World) {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match &words[..] {
        ["root", "export", root, file] => {
            is_root(root, world);
            let bytes = export(world);
            world.files.insert((*file).to_owned(), File::Export(bytes));
        }
        ["root", "import", "merge", file, root] => {
            is_root(root, world);
            import(file, world);
        }
        ["root", "remove", root] => {
            is_root(root, world);
            world.root = None;
        }
        ["root", "adddom", path, mode] => {
            let kind = if *mode == "v2" { Kind::DomainV2 } else { Kind::DomainV1 };
            create(path, kind, 300, world);
        }
        ["root", "forcesync", path] => {
            world.target(path);
        }
        ["root", root] => is_root(root, world),
        ["target", "add", path] => world.join(path, State::Online),
        ["target", "remove", path] => remove_target(path, world),
        ["property", "state", state, path] => {
            world.target(path).state =
                if *state == "offline" { State::Offline } else { State::Online };
        }
        ["property", "ttl", root, ttl] => {
            is_root(root, world);
            world.root().ttl_s = ttl.parse().unwrap();
        }
        ["property", name, on @ ("enable" | "disable"), root] => {
            is_root(root, world);
            *flag(world, name) = Some(*on == "enable");
        }
        ["server", "registry", "dfsdnsconfig", "set", server] => {
            world.server(server).uses_fqdn = true
        }
        ["cache", "referral" | "domain", "flush"] | ["cache", "referral"] => {}
        _ => panic!("unknown: dfsutil {words:?}"),
    }
}

fn service(words: &[String], world: &mut World) {
    let [_, machine, verb, name] = words else { panic!("{words:?}") };
    if machine.contains("$pdc") {
        return;
    }
    let server = world.server(machine);
    // The pipe of the service manager is in the service Server.
    assert!(server.has_server, "{words:?}: TCP 445 does not answer");
    let is_on = verb == "start";
    match name.as_str() {
        "Dfs" => {
            assert_ne!(server.has_dfs, is_on, "{words:?}");
            server.has_dfs = is_on;
        }
        "LanmanServer" => server.has_server = is_on,
        _ => panic!("{words:?}"),
    }
}

fn registry(words: &[String], world: &mut World) {
    if words[1] == "query" {
        return;
    }
    assert_eq!(&words[1], "add");
    let server = words[2].trim_start_matches('\\').split('\\').next().unwrap().to_owned();
    assert!(words[2].ends_with(r"\HKLM\SYSTEM\CurrentControlSet\Services\Dfs"), "{words:?}");
    // The note: only for servers whose saved settings have no 1.
    let saved = world.files.values().find_map(|file| match file {
        File::Settings(saved) => saved.get(&server).copied(),
        _ => None,
    });
    if saved == Some(false) {
        world.server(&server).uses_fqdn = false;
    } else {
        world.server(&server).uses_fqdn = saved.expect("settings are saved");
    }
}

fn net(words: &[String], world: &mut World) {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match &words[..] {
        [_, "view", server] => assert!(world.server(server).has_server),
        [_, "share", name, server, "/delete"] => remove_share(server, name, world),
        _ => panic!("unknown: {words:?}"),
    }
}

fn remove_share(server: &str, name: &str, world: &mut World) {
    assert!(world.server(server).shares.remove(&name.to_lowercase()).is_some(), "{server} {name}");
}

fn grant(world: &mut World) {
    let was = world.files.values().any(|file| matches!(file, File::Delegation(true)));
    world.root().is_delegated |= was;
}

fn inner(block: &str) -> &str {
    block.trim_start_matches(['{', '(']).trim_end_matches(['}', ')']).trim()
}

fn invoke(words: &[String], world: &mut World) {
    let machine = must(words, "-ComputerName").to_owned();
    let block = pipeline(inner(must(words, "-ScriptBlock")));
    match block[0][0].as_str() {
        _ if machine == "$pdc" => assert_eq!(block[0][0], "Restart-Service"),
        "Restart-Service" => {
            assert_eq!(must(&block[0], "-Name"), "Dfs", "no other service restarts");
            world.server(&machine).has_dfs = true;
        }
        "Remove-SmbShare" => remove_share(&machine, must(&block[0], "-Name"), world),
        other => panic!("unknown: {other}"),
    }
}

fn share(words: &[String], world: &mut World) {
    let source = must(words, "-SecurityDescriptor");
    let source = source.strip_suffix(".SecurityDescriptor").expect("a descriptor");
    let source = &pipeline(inner(source))[0];
    assert_eq!(source[0], "Get-SmbShare");
    let name = must(source, "-Name").to_lowercase();
    let access = world.server(must(source, "-CimSession")).shares[&name].clone();
    let target = world.server(must(words, "-CimSession"));
    let old = target.shares.insert(must(words, "-Name").to_lowercase(), access);
    assert!(old.is_none(), "the share exists: {words:?}");
}

fn cmdlet(words: &[String], world: &mut World) {
    is_root(must(words, "-Path"), world);
    let state = match parameter(words, "-State") {
        Some("Offline") => State::Offline,
        Some("Online") | None => State::Online,
        Some(other) => panic!("unknown state {other}"),
    };
    match words[0].as_str() {
        "New-DfsnRoot" => {
            let kind =
                if must(words, "-Type") == "DomainV2" { Kind::DomainV2 } else { Kind::DomainV1 };
            create(
                must(words, "-TargetPath"),
                kind,
                must(words, "-TimeToLiveSec").parse().unwrap(),
                world,
            );
        }
        "Remove-DfsnRoot" => world.root = None,
        "New-DfsnRootTarget" => world.join(must(words, "-TargetPath"), state),
        "Remove-DfsnRootTarget" => remove_target(must(words, "-TargetPath"), world),
        "Set-DfsnRootTarget" => {
            parameter(words, "-State").expect("a state");
            world.target(must(words, "-TargetPath")).state = state;
        }
        "Set-DfsnRoot" => {
            for pair in words[3..].chunks(2) {
                match pair[0].as_str() {
                    "-TimeToLiveSec" => world.root().ttl_s = pair[1].parse().unwrap(),
                    "-Description" => world.root().comment = Some(pair[1].clone()),
                    name => *flag(world, name) = Some(pair[1] == "$true"),
                }
            }
            let root = world.root();
            let has_enumeration = root.flags.access_based_enumeration == Some(true);
            assert!(!has_enumeration || root.kind == Kind::DomainV2);
        }
        _ => panic!("unknown: {words:?}"),
    }
}

/// A path without the domain of its server: what the rewrite keeps.
fn key(target: &Target) -> (String, String) {
    let label = target.server.split('.').next().unwrap_or_default();
    (label.to_lowercase(), target.share.to_lowercase())
}

fn export_csv(words: &[String], file: &str, world: &mut World) {
    let saved = match words[0].as_str() {
        "Get-DfsnRootTarget" => File::Servers(world.root().targets.clone()),
        "Get-DfsnRoot" => File::Text,
        "Get-DfsnFolder" if file.ends_with("access.csv") => {
            File::Access(world.root().viewed.clone())
        }
        "Get-DfsnFolder" => File::Links(world.root().links.clone()),
        _ => {
            let names = words.iter().map(|name| name.trim_end_matches(',').to_owned());
            let settings = names.map(|name| (name.clone(), world.server(&name).uses_fqdn));
            File::Settings(settings.collect())
        }
    };
    world.files.insert(file.to_owned(), saved);
}

fn import_csv(commands: &[Vec<String>], line: &str, world: &mut World) {
    let file = world.files.get(must(&commands[0], "-LiteralPath")).cloned();
    match file.unwrap_or_else(|| panic!("the file was not saved: {line}")) {
        File::Servers(saved) => {
            assert!(line.contains("Set-DfsnRootTarget"), "{line}");
            let saved: BTreeMap<_, _> = saved.iter().map(|one| (key(one).0, one)).collect();
            for target in &mut world.root().targets {
                if let Some(was) = saved.get(&key(target).0) {
                    (target.priority_class, target.priority_rank) =
                        (was.priority_class, was.priority_rank);
                }
            }
        }
        File::Settings(saved) => {
            assert!(line.contains("-UseFqdn ($_.UseFqdn -eq 'True')"), "{line}");
            let chosen = &commands[1][1];
            for (name, uses_fqdn) in saved {
                if chosen.contains(&format!("'{name}'")) {
                    world.server(&name).uses_fqdn = uses_fqdn;
                }
            }
        }
        File::Access(saved) => {
            assert!(line.contains("Grant-DfsnAccess") && world.root().kind == Kind::DomainV2);
            world.root().viewed = saved;
        }
        _ => panic!("unknown: {line}"),
    }
}

fn priorities_of_links(world: &mut World) {
    let saved = world.files.values().find_map(|file| match file {
        File::Links(saved) => Some(saved.clone()),
        _ => None,
    });
    for was in saved.expect("the targets are saved") {
        let links = world.root().links.iter_mut();
        let Some(link) = links.into_iter().find(|link| link.path == was.path) else { continue };
        for target in &mut link.targets {
            if let Some(was) = was.targets.iter().find(|one| key(one) == key(target)) {
                (target.priority_class, target.priority_rank) =
                    (was.priority_class, was.priority_rank);
            }
        }
    }
}

/// What dfsutil writes: links and targets, the root's TTL, no priorities and permissions.
fn export(world: &mut World) -> Vec<u8> {
    let root = world.root.clone().expect("the root exists");
    let strip = |targets: &[Target]| -> Vec<Target> {
        let without =
            |one: &Target| Target { priority_class: None, priority_rank: None, ..one.clone() };
        targets.iter().map(without).collect()
    };
    let link = |link: &Link| Link { targets: strip(&link.targets), security: None, ..link.clone() };
    let namespace = Namespace {
        host: world.domain.to_owned(),
        name: world.name.clone(),
        ttl_s: Some(root.ttl_s),
        targets: strip(&root.targets),
        links: root.links.iter().map(link).collect(),
        ..Namespace::default()
    };
    let written = write(&namespace, Form::Export2008, &Allowed { all: true, some: Vec::new() });
    written.unwrap().files[0].bytes.clone()
}

fn parsed(bytes: &[u8]) -> Namespace {
    let reading = read(&[("export.xml".to_owned(), bytes.to_vec())]).unwrap();
    reading.namespaces[0].namespace.clone()
}

fn exported(file: &str, world: &World) -> Namespace {
    match world.files.get(file) {
        Some(File::Export(bytes)) => parsed(bytes),
        _ => panic!("no export {file}"),
    }
}

fn import(file: &str, world: &mut World) {
    let namespace = exported(file, world);
    // Whether an import sets it is not published: the worse is taken.
    world.root().ttl_s = namespace.ttl_s.unwrap();
    for mut link in namespace.links {
        for target in &mut link.targets {
            target.priority_class = Some(PriorityClass::SiteCostNormal);
            target.priority_rank = Some(0);
        }
        assert!(!world.root().links.iter().any(|one| one.path == link.path));
        world.root().links.push(link);
    }
}

fn smbscope(words: &[String], world: &mut World) {
    match (words[2].as_str(), words.get(3).map(String::as_str)) {
        ("rewrite", Some(file)) => {
            let namespace = exported(file, world);
            let suffix =
                parameter(words, "--suffix").map(|suffix| SuffixRule::parse(suffix).unwrap());
            let ttl = must(words, "--root-ttl").strip_suffix('s').unwrap().parse().unwrap();
            let domains =
                parameter(words, "--domain").map(|names| names.split(',').map(str::to_owned));
            let rules = Rules {
                suffixes: suffix.into_iter().collect(),
                domains: domains.map(Iterator::collect).unwrap_or_default(),
                root_ttl_s: Some(ttl),
                ..Rules::default()
            };
            let rewritten = rewrite(&namespace, &rules);
            assert!(
                rewritten.unclear.is_empty() && rewritten.short_names.is_empty(),
                "{rewritten:?}"
            );
            let written = write(
                &rewritten.namespace,
                Form::Export2008,
                &Allowed { all: true, some: Vec::new() },
            );
            let bytes = written.unwrap().files[0].bytes.clone();
            world.files.insert(must(words, "--out").to_owned(), File::Export(bytes));
        }
        ("gate", _) => {}
        (file, Some("--compare")) => {
            let changes = difference(&exported(&words[4], world), &exported(file, world));
            let of_links: Vec<_> = changes
                .iter()
                .filter(|one| one.link.is_some() && one.what != What::Priority)
                .collect();
            assert!(of_links.is_empty(), "{of_links:?}");
        }
        (file, Some("--resolve")) => {
            let namespace = exported(file, world);
            for target in namespace.links.iter().flat_map(|link| &link.targets) {
                assert!(world.resolves(&target.server), "{} does not resolve", target.server);
            }
        }
        _ => panic!("unknown: smbscope {words:?}"),
    }
}
