//! Random plans, executed as they are printed in a model of servers, clients and a namespace. After each command every
//! client reaches every link that it reached before, except in the stage that says that accesses fail; after each stage the
//! namespace is as redundant as it was; after the undo of all stages everything is as it was at first.
//!
//! `SMBSCOPE_PLANS=10000 cargo test -p smbscope-plan --test namespace_executor` executes as many plans; `SMBSCOPE_PLANS=7..8`
//! those of these seeds, and `SMBSCOPE_PLANS_SHOW=1` shows each line.

// A test may panic.
#![allow(clippy::unwrap_used)]

mod shell;
mod words;
mod world;

use shell::Shell;
use smbscope_plan::namespace::gate::{Evidence, judge};
use smbscope_plan::namespace::model::{Flags, Kind, Link, Namespace, PriorityClass, State, Target};
use smbscope_plan::namespace::stages::{Impact, Move, MovePlan, Stage, Step, plan};
use smbscope_plan::namespace::waits::Assumptions;
use world::World;

const DOMAIN: &str = "ad.nordwind.example";
const NETBIOS: &str = "NORDWIND";
/// Plans without the variable.
const PLANS: u64 = 1_000;

/// Splitmix64 (Steele, Lea, Flood, 2014).
struct Random(u64);

impl Random {
    fn below(&mut self, most: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % most as u64) as usize
    }

    fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    fn one<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())]
    }
}

/// A namespace, what shall become of it, and the machines that there are.
struct Case {
    namespace: Namespace,
    wanted: Move,
    machines: Vec<(String, bool)>,
}

fn target(random: &mut Random, label: &str, share: &str) -> Target {
    let server = match random.chance(40) {
        true => format!("{label}.{DOMAIN}"),
        false => label.to_uppercase(),
    };
    Target {
        server,
        share: share.to_owned(),
        priority_class: Some(
            random.one(&[PriorityClass::SiteCostNormal, PriorityClass::GlobalHigh]),
        ),
        priority_rank: Some(random.below(3) as u32),
        ..Target::default()
    }
}

fn links(random: &mut Random, kind: Kind) -> Vec<Link> {
    let paths = ["Accounting", "R&D", "it's [1]", r"Tief\Sehr Tief", "$Recht`", "Отдел", "10% x"];
    let mut links = Vec::new();
    for path in paths.iter().take(random.below(paths.len() + 1)) {
        let mut targets: Vec<_> = (0..1 + random.below(3))
            .map(|number| {
                let share = random.one_share();
                target(random, &format!("fs{number}"), share)
            })
            .collect();
        if random.chance(20) {
            let host = random.one(&[NETBIOS, DOMAIN]);
            targets = vec![Target { server: host.to_owned(), ..target(random, "x", r"Other\x") }];
        }
        for target in &mut targets {
            target.state = if random.chance(20) { State::Offline } else { State::Online };
        }
        links.push(Link {
            path: (*path).to_owned(),
            ttl_s: Some(random.one(&[300, 1_800, 604_800])),
            comment: random.chance(30).then(|| "a comment".to_owned()),
            targets,
            security: (kind == Kind::DomainV2 && random.chance(30)).then(|| vec![1]),
            ..Link::default()
        });
    }
    links
}

impl Random {
    fn one_share(&mut self) -> &'static str {
        self.one(&["data", "R&D$", r"projekte\alt"])
    }
}

fn case(random: &mut Random) -> Case {
    let name = random.one(&["Public", "R&D", "It's", "F&E's $Daten", "Отдел 7"]);
    let kind = random.one(&[Kind::DomainV1, Kind::DomainV2]);
    let mut targets = Vec::new();
    for number in 0..1 + random.below(4) {
        let mut one = target(random, &format!("old{number}"), name);
        one.state = if number > 0 && random.chance(25) { State::Offline } else { State::Online };
        targets.push(one);
    }
    let mut new: Vec<String> = (0..random.below(4)).map(|number| format!("new{number}")).collect();
    // Some stay.
    new.extend(targets.iter().filter(|_| random.chance(30)).map(|one| one.server.clone()));
    let is_online = |server: &String| {
        let same = |one: &&Target| one.server == *server;
        targets.iter().find(same).is_none_or(|one| one.state == State::Online)
    };
    if !new.iter().any(is_online) {
        new.push("new9".to_owned());
    }
    let flag = |random: &mut Random| Some(random.chance(50));
    let flags = Flags {
        site_costing: flag(random),
        insite_referrals: flag(random),
        root_scalability: flag(random),
        target_failback: flag(random),
        access_based_enumeration: Some(kind == Kind::DomainV2 && random.chance(50)),
    };
    let labels =
        ["old0", "old1", "old2", "old3", "new0", "new1", "new2", "new9", "fs0", "fs1", "fs2"];
    let machines = labels.iter().map(|label| ((*label).to_owned(), random.chance(30))).collect();
    let namespace = Namespace {
        host: DOMAIN.to_owned(),
        name: name.to_owned(),
        kind: Some(kind),
        ttl_s: Some(random.one(&[60, 300, 1_800, 86_400, 604_800])),
        comment: random.chance(40).then(|| "it's $x; calc".to_owned()),
        flags,
        targets,
        links: links(random, kind),
        ..Namespace::default()
    };
    let assumed = Assumptions { open_s: random.one(&[0, 3_600, 43_200]), ..Assumptions::default() };
    let clients = (0..4).map(|number| format!("PC{number}")).collect();
    let to = random.one(&[Kind::DomainV2, Kind::DomainV2, Kind::DomainV1]);
    let wanted = Move { to, new_servers: new, clients, assumed, ..Move::default() };
    Case { namespace, wanted, machines }
}

/// Runs steps, one of the alternatives of each.
fn steps(world: &mut World, shell: &mut Shell, stage: &Stage, steps: &[Step], random: &mut Random) {
    for step in steps {
        assert!(!step.commands.is_empty(), "stage {}: {}", stage.id.name(), step.does);
        let command = &step.commands[random.below(step.commands.len())];
        for line in &command.lines {
            if std::env::var_os("SMBSCOPE_PLANS_SHOW").is_some() {
                eprintln!("{} {line}  [{:?}]", world.now_s, world.clients[0]);
            }
            shell.run(line, world);
            world.now_s += 20;
            let may_fail = match stage.impact {
                Impact::Failures => true,
                Impact::Pause => world.first_redundancy() < 2,
                Impact::Nothing => false,
            };
            if let (Err(why), false) = (world.use_all(), may_fail) {
                let root = &world.root;
                panic!("stage {}: after `{line}`: {why}; {root:?}", stage.id.name());
            }
        }
    }
    world.now_s += 400;
}

/// What holds after each stage and each undo.
fn hold(world: &mut World, stage: &Stage, least: usize) {
    let name = stage.id.name();
    world.use_all().unwrap_or_else(|why| panic!("after stage {name}: {why}"));
    let now = world.redundancy();
    assert!(now >= least, "after stage {name}: {now} servers, {least} before");
}

/// Runs stages with their waits; each gate says go at the end of its wait.
fn forward(world: &mut World, made: &MovePlan, stages: usize, random: &mut Random) {
    let least = least(world, made);
    let mut shell = Shell::new();
    for stage in &made.stages[..stages] {
        let began = world.now_s;
        steps(world, &mut shell, stage, &stage.steps, random);
        if let Some(wait) = &stage.wait {
            world.now_s = world.now_s.max(began) + wait.total_s;
        }
        hold(world, stage, least);
        if stage.gate.is_some() {
            let caches = world.caches();
            let evidence = Evidence {
                caches: &caches,
                changed_at_s: Some(began as i64 - 500),
                now_s: world.now_s as i64,
                ..Evidence::default()
            };
            let verdict = judge(stage.id, made, &evidence);
            assert!(verdict.is_go, "{}: {:?}", stage.id.name(), verdict);
        }
    }
}

fn backward(world: &mut World, made: &MovePlan, stages: usize, random: &mut Random) {
    let least = least(world, made);
    let mut shell = Shell::new();
    for stage in made.stages[..stages].iter().rev() {
        steps(world, &mut shell, stage, &stage.undo, random);
        hold(world, stage, least);
    }
}

/// The servers that each client must have: as many as at first, up to two, unless the move is to fewer.
fn least(world: &World, made: &MovePlan) -> usize {
    let root = world.root.as_ref().unwrap();
    let is_kept = |one: &&Target| made.kept_servers.contains(&one.server);
    let kept = root.targets.iter().filter(is_kept).filter(|one| one.state == State::Online);
    world.first_redundancy().min(2).min(made.new_servers.len() + kept.count())
}

/// The namespace after the move.
fn check_end(world: &mut World, case: &Case, made: &MovePlan) {
    let before = &case.namespace;
    let root = world.root.clone().unwrap();
    assert_eq!((root.kind, root.ttl_s), (case.wanted.to, before.ttl_s.unwrap()));
    assert_eq!((&root.comment, root.is_delegated), (&before.comment, true));
    let mut flags = before.flags;
    if root.kind == Kind::DomainV1 {
        flags.access_based_enumeration = Some(false);
    } else {
        let viewed = before.links.iter().filter(|link| link.security.is_some()).count();
        assert_eq!(root.viewed.len(), viewed);
    }
    assert_eq!(root.flags, flags);
    assert_eq!(root.targets.len(), made.new_servers.len() + made.kept_servers.len());
    for target in &root.targets {
        let label = world.machine(&target.server);
        let was = before.targets.iter().find(|one| world.machine(&one.server) == label);
        let state = was.map_or(State::Online, |was| was.state);
        assert_eq!(target.state, state, "{}", target.server);
        if let Some(was) = was {
            assert_eq!(target.priority_class, was.priority_class);
        }
    }
    assert_eq!(root.links.len(), before.links.len());
    for (link, was) in root.links.iter().zip(&before.links) {
        assert_eq!((&link.path, link.ttl_s, &link.comment), (&was.path, was.ttl_s, &was.comment));
    }
}

fn run(seed: u64) {
    let mut random = Random(seed);
    let case = case(&mut random);
    let made = plan(&case.namespace, &case.wanted).unwrap();
    let mut world = World::new(DOMAIN, NETBIOS, &case.namespace, &case.machines, 4);
    let first = world.snapshot();
    let is_whole = random.chance(40);
    let stages = if is_whole { made.stages.len() } else { random.below(made.stages.len() + 1) };
    forward(&mut world, &made, stages, &mut random);
    if is_whole {
        check_end(&mut world, &case, &made);
    }
    backward(&mut world, &made, stages, &mut random);
    assert_eq!(world.snapshot(), first);
}

#[test]
fn random_plans_keep_the_service_and_go_back() {
    let plans = std::env::var("SMBSCOPE_PLANS").unwrap_or_else(|_| PLANS.to_string());
    let (first, end) = plans.split_once("..").unwrap_or(("0", &plans));
    for seed in first.parse::<u64>().unwrap()..end.parse().unwrap() {
        let ran = std::panic::catch_unwind(|| run(seed));
        assert!(ran.is_ok(), "the plan of seed {seed} fails");
    }
}

/// The model sees what the trial found: a server that is stopped through itself, a long TTL, an undo that sets all online.
#[test]
fn the_model_sees_plans_that_cause_an_outage() {
    let broken = |change: fn(&mut MovePlan)| {
        let found = (0..60).any(|seed| {
            let mut random = Random(seed);
            let case = case(&mut random);
            let mut made = plan(&case.namespace, &case.wanted).unwrap();
            change(&mut made);
            let ran = std::panic::catch_unwind(move || {
                let mut world = World::new(DOMAIN, NETBIOS, &case.namespace, &case.machines, 4);
                let first = world.snapshot();
                let stages = made.stages.len();
                forward(&mut world, &made, stages, &mut random);
                backward(&mut world, &made, stages, &mut random);
                assert_eq!(world.snapshot(), first);
            });
            ran.is_err()
        });
        assert!(found);
    };
    broken(|made| rewrite_lines(made, |line| line.replace("stop Dfs", "stop LanmanServer")));
    broken(|made| {
        rewrite_lines(made, |line| line.replace("--root-ttl 300s", "--root-ttl 604800s"))
    });
    broken(|made| rewrite_lines(made, |line| line.replace(" -State Offline", "")));
    broken(|made| {
        rewrite_lines(made, |line| {
            if line.starts_with("Start-Sleep") {
                "Start-Sleep -Seconds 0".to_owned()
            } else {
                line.to_owned()
            }
        })
    });
    broken(|made| {
        rewrite_lines(made, |line| line.replace("dfsutil target add", "dfsutil target ad"))
    });
}

fn rewrite_lines(made: &mut MovePlan, change: impl Fn(&str) -> String) {
    for stage in &mut made.stages {
        let steps = stage.steps.iter_mut().chain(&mut stage.undo);
        for line in steps.flat_map(|step| &mut step.commands).flat_map(|command| &mut command.lines)
        {
            *line = change(line);
        }
    }
}
