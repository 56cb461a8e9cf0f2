//! Reads a workload from TOML: its head, pacing, files and scenarios. `parse_request` reads requests.
//!
//! The language is described in `docs/method/workloads.md`.

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::building::{Building, Defaults, Read, block};
use super::check::Tracker;
use super::error::{Source, nearest};
use super::model::{Pacing, Pick, PickHow, Scenario, Step, Workload};
use super::parse_request::request;
use super::table::{At, Table, bytes, number, quoted, text};
use super::template::Template;
use crate::fileset::names::name_problem;
use crate::fileset::{BLOCK_BYTES, FileClass, Pool, Sizes};

/// Longest text of a workload.
const LIMIT_BYTES: usize = 4 << 20;

/// Reads a workload; `file` is its name in messages, `name` the workload's.
pub(super) fn parse(file: &str, name: &str, toml: &str) -> Read<Workload> {
    let source = Source { file, text: toml };
    if toml.len() > LIMIT_BYTES {
        return Err(source.error(0..0, "a workload has at most 4 MiB of text"));
    }
    let document = DeTable::parse(toml).map_err(|error| {
        source.error(
            error.span().unwrap_or_default(),
            format!("invalid TOML: {}", error.message().trim()),
        )
    })?;
    let table = Table::new(source, document.get_ref(), 0..0, "a workload");
    let description = table.text("description")?.map_or("", |text| text.value).into();
    let pacing = pacing(table.table("pacing", "[pacing]")?)?;
    let defaults = Defaults {
        block_bytes: block(table.bytes("block")?, source, BLOCK_BYTES as u32)?,
        depth: table.number("depth", 1..1025)?.map_or(1, |depth| depth.value as u16),
    };
    let mut folders = Vec::new();
    for folder in table.texts("folders")?.map_or(Vec::new(), |list| list.value) {
        folders.push(folder_path(source, &folder)?);
    }
    let pools = pools(table.table("files", "[files]")?)?;
    let scenarios = scenarios(&table, &pools, defaults)?;
    table.finish()?;
    Ok(Workload { name: name.into(), description, pacing, folders, pools, scenarios })
}

fn pacing(table: Option<Table<'_>>) -> Read<Pacing> {
    let Some(table) = table else { return Ok(Pacing::Slotted { jitter: 0.5 }) };
    let spacing = table.need_text("spacing")?;
    let jitter = table.real("jitter")?;
    table.finish()?;
    match (spacing.value, jitter) {
        ("slotted", None) => Ok(Pacing::Slotted { jitter: 0.5 }),
        ("slotted", Some(At { value: jitter, .. })) if (0.0..=1.0).contains(&jitter) => {
            Ok(Pacing::Slotted { jitter })
        }
        ("slotted", Some(jitter)) => {
            Err(table.source.error(jitter.span, "`jitter` is a share, from 0 to 1"))
        }
        ("exponential", None) => Ok(Pacing::Exponential),
        ("exponential", Some(jitter)) => {
            Err(table.source.error(jitter.span, "`jitter` belongs to the spacing `slotted`"))
        }
        _ => {
            let error = table.source.error(spacing.span, format!("no spacing `{}`", spacing.value));
            Err(error.help("there is `slotted` and `exponential`"))
        }
    }
}

fn pools(table: Option<Table<'_>>) -> Read<Vec<Pool>> {
    let Some(table) = table else { return Ok(Vec::new()) };
    let mut pools: Vec<Pool> = Vec::new();
    for (name, value) in table.entries() {
        let entry = Table::from_value(table.source, value, "a set of files")?;
        let pool = pool(&entry, name.value)?;
        let twin = pools.iter().find(|other| {
            other.pattern.eq_ignore_ascii_case(&pool.pattern)
                && other.folders.iter().any(|folder| pool.folders.contains(folder))
        });
        if let Some(twin) = twin {
            let text =
                format!("files of `{}` and `{}` would have the same paths", twin.name, pool.name);
            return Err(entry
                .source
                .error(entry.key_span("name"), text)
                .help("give them other names or folders"));
        }
        pools.push(pool);
    }
    if pools.len() > 1_000 {
        return Err(table.error("at most 1,000 sets of files"));
    }
    Ok(pools)
}

fn pool(table: &Table<'_>, name: &str) -> Read<Pool> {
    let class = table.need_text("class")?;
    let classes = [FileClass::Static, FileClass::Volatile, FileClass::New];
    let Some(class) = classes.into_iter().find(|known| known.name() == class.value) else {
        let error = table
            .source
            .error(class.span, format!("`{}` is not a known class of files", class.value));
        return Err(error.help(
            "`static` is only read, `volatile` rewritten, moved or deleted, `new` made by runs",
        ));
    };
    let mut folders = Vec::new();
    for folder in table.texts("folders")?.map_or(Vec::new(), |list| list.value) {
        folders.push(folder_path(table.source, &folder)?);
    }
    if folders.is_empty() {
        folders.push(String::new());
    }
    let pattern = table.need_text("name")?;
    let sizes = match (table.list("blocks")?, table.list("bytes")?) {
        (Some(list), None) => Sizes::Blocks(each(list, |value| {
            Ok(number(table.source, value, "blocks", &(0..1 << 30))?.value as u32)
        })?),
        (None, Some(list)) => {
            Sizes::Bytes(each(list, |value| Ok(bytes(table.source, value, "bytes")?.value))?)
        }
        (None, None) => return Err(table.missing("blocks` (of 65,536 bytes) or `bytes")),
        (Some(_), Some(second)) => {
            return Err(table.source.error(second.span, "either `blocks` or `bytes`, not both"));
        }
    };
    let repeat = table.number("repeat", 1..100_001)?;
    let keep = table.number("keep", 1..100_001)?;
    table.finish()?;
    let wrong_class = match class {
        FileClass::New => {
            repeat.as_ref().map(|at| (at, "`repeat` is for files that exist; new ones have `keep`"))
        }
        _ => {
            keep.as_ref().map(|at| (at, "`keep` is for new files; files that exist have `repeat`"))
        }
    };
    if let Some((at, text)) = wrong_class {
        return Err(table.source.error(at.span.clone(), text));
    }
    let pool = Pool {
        name: name.into(),
        class,
        folders,
        pattern: pattern.value.into(),
        sizes,
        repeat: repeat.map_or(1, |at| at.value as u32),
        keep: keep.map_or(64, |at| at.value as u32),
        is_used: true,
    };
    if pool.sizes.is_empty() {
        return Err(table.error("a set of files needs at least one size"));
    }
    let files = (pool.sizes.len() as u64).saturating_mul(u64::from(pool.repeat));
    if files > 1_000_000 {
        return Err(
            table.error(format!("{files} files are too many: at most 1,000,000 for each user"))
        );
    }
    let names = if class == FileClass::New { u64::from(pool.keep) } else { files };
    match name_problem(&pool.pattern, names) {
        Some(problem) => Err(table.source.error(pattern.span, problem)),
        None => Ok(pool),
    }
}

fn each<'a, T>(
    list: At<Vec<&'a Spanned<DeValue<'a>>>>,
    read: impl Fn(&'a Spanned<DeValue<'a>>) -> Read<T>,
) -> Read<Vec<T>> {
    list.value.into_iter().map(read).collect()
}

/// A folder below the home: as a path without placeholders.
fn folder_path(source: Source<'_>, folder: &At<&str>) -> Read<String> {
    let error = |text: String| source.error(folder.span.clone(), text);
    let template = Template::parse(folder.value, true, &[]).map_err(error)?;
    if template.source.contains('{') {
        return Err(error("a folder has no placeholders".into()));
    }
    Ok(template.source)
}

fn scenarios(table: &Table<'_>, pools: &[Pool], defaults: Defaults) -> Read<Vec<Scenario>> {
    let Some(list) = table.table("scenarios", "[scenarios]")? else {
        return Err(table
            .error("a workload needs scenarios")
            .help("begin one with [scenarios.NAME]"));
    };
    let mut scenarios = Vec::new();
    for (name, value) in list.entries() {
        let table = Table::from_value(list.source, value, "a scenario")?;
        scenarios.push(scenario(&table, name.value, pools, defaults)?);
    }
    if scenarios.is_empty() || scenarios.len() > 1_000 {
        return Err(list.error("a workload needs from 1 to 1,000 scenarios"));
    }
    let takes = |pick: &Pick| matches!(pick.how, PickHow::Take { .. });
    if scenarios.iter().all(|scenario| scenario.picks.iter().any(takes)) {
        return Err(list.error("every scenario takes files away: one must be possible without any"));
    }
    for (index, pool) in pools.iter().enumerate() {
        let uses = |how: fn(&PickHow, usize) -> bool| {
            scenarios
                .iter()
                .find(|scenario| scenario.picks.iter().any(|pick| how(&pick.how, index)))
        };
        let any = uses(|how, pool| matches!(how, PickHow::Any { pool: of } if *of == pool));
        let take =
            uses(|how, pool| matches!(how, PickHow::Take { pools } if pools.contains(&pool)));
        if let (Some(any), Some(take)) = (any, take) {
            return Err(list.error(format!(
                "files of `{}` are taken away by {} and needed by {}",
                pool.name, take.name, any.name
            )));
        }
    }
    Ok(scenarios)
}

fn scenario(table: &Table<'_>, name: &str, pools: &[Pool], defaults: Defaults) -> Read<Scenario> {
    let description = table.text("description")?.map_or("", |text| text.value).into();
    let Some(runs) = table.real("runs_per_hour")? else {
        return Err(table.missing("runs_per_hour"));
    };
    // Once in forty days, and a thousand per second: beyond these, a program cannot wait for the interval.
    if !(1e-3..=3.6e6).contains(&runs.value) {
        let text = format!(
            "a frequency of {:?} executions an hour: it must be a number from 0.001 to 3,600,000",
            runs.value
        );
        return Err(table.source.error(runs.span, text).help("to leave a scenario out, remove it"));
    }
    let picks = picks(table, pools)?;
    let Some(list) = table.list("steps")? else { return Err(table.missing("steps")) };
    if list.value.is_empty() || list.value.len() > 10_000 {
        return Err(table.source.error(list.span, "a scenario needs from 1 to 10,000 steps"));
    }
    table.finish()?;
    let mut building = Building {
        picks: &picks,
        paths: Vec::new(),
        leases: Vec::new(),
        tracker: Tracker::default(),
        defaults,
    };
    let mut steps = Vec::new();
    for value in list.value {
        steps.push(step(&Table::from_value(table.source, value, "a step")?, &mut building)?);
    }
    building.tracker.end(table.source)?;
    let Building { paths, tracker, leases, .. } = building;
    let (handles, notifications) = tracker.names();
    let scenario = Scenario {
        name: name.into(),
        description,
        runs_per_hour: runs.value,
        picks,
        paths,
        handles,
        notifications,
        steps,
    };
    // A lease that nothing in the scenario requests would never be held.
    let acquires = |lease| {
        scenario.steps.iter().any(|step| {
            step.requests.first().is_some_and(|first| first.lease == lease)
                && scenario.may_acquire(step)
        })
    };
    match leases.into_iter().find(|&(lease, _)| !acquires(Some(lease))) {
        None => Ok(scenario),
        Some((lease, span)) => {
            let path = scenario.template(lease).map_or("", |path| &path.source);
            let text =
                format!("no Create of the scenario asks for the directory lease on \"{path}\"");
            let error = table.source.error(span, text);
            Err(error.help("one must open that directory itself, with the same `dirlease`, and no marked ChangeNotify on its handle"))
        }
    }
}

fn picks(table: &Table<'_>, pools: &[Pool]) -> Read<Vec<Pick>> {
    let Some(list) = table.table("files", "files of a scenario")? else { return Ok(Vec::new()) };
    let source = table.source;
    let pool = |name: At<&str>, fits: &[FileClass], how: &str| -> Read<usize> {
        let Some(index) = pools.iter().position(|pool| pool.name == name.value) else {
            let error = source.error(name.span, format!("no set of files `{}`", name.value));
            let known: Vec<&str> = pools.iter().map(|pool| pool.name.as_str()).collect();
            return Err(error.help(match nearest(name.value, known.iter().copied()) {
                Some(meant) => format!("did you mean `{meant}`?"),
                None => format!("[files] has {}", quoted(&known)),
            }));
        };
        let class = pools.get(index).map_or(FileClass::Static, |pool| pool.class);
        if fits.contains(&class) {
            return Ok(index);
        }
        let fits: Vec<&str> = fits.iter().map(|class| class.name()).collect();
        let text = format!(
            "`{}` is of class {}: {how} needs {}",
            name.value,
            class.name(),
            fits.join(" or ")
        );
        Err(source.error(name.span, text))
    };
    let mut picks: Vec<Pick> = Vec::new();
    for (name, value) in list.entries() {
        let word = |c: char| c.is_ascii_lowercase() || c == '_';
        if name.value == "run" || name.value.is_empty() || !name.value.chars().all(word) {
            return Err(
                source.error(name.span, "a file's name here is in a-z and _, and not `run`")
            );
        }
        let how = match value.get_ref() {
            DeValue::Table(_) => {
                let how = Table::from_value(source, value, "a file")?;
                let make = how.text("make")?;
                let take = how.texts("take")?;
                how.finish()?;
                match (make, take) {
                    (Some(make), None) => {
                        PickHow::Make { pool: pool(make, &[FileClass::New], "`make`")? }
                    }
                    (None, Some(take)) if !take.value.is_empty() => {
                        let fits = [FileClass::Volatile, FileClass::New];
                        let pools = take.value.into_iter().map(|name| pool(name, &fits, "`take`"));
                        PickHow::Take { pools: pools.collect::<Read<_>>()? }
                    }
                    _ => {
                        return Err(how.error(
                            "a file is a set's name, { make = SET } or { take = [SET, ...] }",
                        ));
                    }
                }
            }
            _ => {
                let name = text(source, value, "a file")?;
                PickHow::Any {
                    pool: pool(name, &[FileClass::Static, FileClass::Volatile], "picking any")?,
                }
            }
        };
        picks.push(Pick { name: name.value.into(), how });
    }
    if picks.len() > 100 {
        return Err(list.error("a scenario has at most 100 files"));
    }
    Ok(picks)
}

fn step(table: &Table<'_>, building: &mut Building<'_>) -> Read<Step> {
    let source = table.source;
    let action = table.need_text("action")?;
    if action.value.trim().is_empty() {
        return Err(source.error(action.span, "an empty action: say what the application does"));
    }
    let mut wait = Vec::new();
    for name in table.texts("wait")?.map_or(Vec::new(), |list| list.value) {
        wait.push(building.tracker.wait(source, &name)?);
    }
    let requests = match table.list("compound")? {
        None => {
            let request = request(table, building)?;
            table.finish()?;
            vec![request]
        }
        Some(list) => {
            table.finish()?;
            let mut requests = Vec::new();
            for value in &list.value {
                let member = Table::from_value(source, value, "a request of a compound")?;
                requests.push(request(&member, building)?);
                member.finish()?;
                super::check::member(source, member.span.clone(), &requests, list.value.len())?;
            }
            if !(2..=16).contains(&requests.len()) {
                return Err(source.error(list.span, "a compound has from 2 to 16 requests"));
            }
            requests
        }
    };
    Ok(Step { action: action.value.into(), wait, requests })
}
