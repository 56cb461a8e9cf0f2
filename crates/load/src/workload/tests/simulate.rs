//! A file system in memory on which executions run for hours: every Create must find what it expects,
//! in whatever order scenarios are drawn. The Samba suite tests the answers of a real server; this
//! tests that scenarios leave the files as the next one needs them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use smbscope_wire::smb2::create::{CreateDisposition, CreateOptions};
use smbscope_wire::status::Status;

use crate::fileset::{EntryKind, Scale};
use crate::workload::{
    ClientCache, Create, Length, NotifySlot, Op, Plan, Planner, SetInfo, Slot, Workload,
};

/// A user's home: folders, and files with their length.
struct Disk {
    folders: BTreeSet<String>,
    files: BTreeMap<String, u64>,
}

impl Disk {
    fn prepared(planner: &Planner, user: u64) -> Disk {
        let mut disk = Disk { folders: BTreeSet::from([String::new()]), files: BTreeMap::new() };
        for spec in planner.files().user(user) {
            match spec.kind {
                EntryKind::Folder => drop(disk.folders.insert(spec.path)),
                EntryKind::File => drop(disk.files.insert(spec.path, spec.bytes)),
            }
        }
        disk
    }

    fn open(&mut self, path: &str, create: &Create) -> Status {
        let folder = path.rsplit_once('\\').map_or("", |(folder, _)| folder);
        if !self.folders.contains(folder) {
            return Status::OBJECT_PATH_NOT_FOUND;
        }
        if self.folders.contains(path) {
            let file = create.options.contains(CreateOptions::NON_DIRECTORY_FILE);
            return if file {
                Status::from_name("STATUS_FILE_IS_A_DIRECTORY").unwrap()
            } else {
                Status::SUCCESS
            };
        }
        if self.files.contains_key(path) {
            if create.options.contains(CreateOptions::DIRECTORY_FILE) {
                return Status::from_name("STATUS_NOT_A_DIRECTORY").unwrap();
            }
            return match create.disposition {
                CreateDisposition::CREATE => Status::OBJECT_NAME_COLLISION,
                CreateDisposition::OVERWRITE_IF | CreateDisposition::OVERWRITE => {
                    self.files.insert(path.into(), 0);
                    Status::SUCCESS
                }
                _ => Status::SUCCESS,
            };
        }
        match create.disposition {
            CreateDisposition::OPEN | CreateDisposition::OVERWRITE => Status::OBJECT_NAME_NOT_FOUND,
            _ => {
                self.files.insert(path.into(), 0);
                Status::SUCCESS
            }
        }
    }

    /// Runs an execution; only what a client can leave out may be left out.
    fn play(&mut self, plan: &Plan, cache: ClientCache) {
        let scenario = plan.scenario();
        let mut open: BTreeMap<Slot, (String, bool)> = BTreeMap::new();
        let mut waiting: BTreeMap<NotifySlot, Slot> = BTreeMap::new();
        for step in &scenario.steps {
            for request in step.requests.iter().filter(|request| !cache.leaves_out(request)) {
                let at = format!("{} run {}: {}", scenario.name, plan.run(), step.action);
                if let Op::Create(create) = &request.op {
                    let path = plan.path(create.path);
                    let status = self.open(path, create);
                    assert!(request.expect.holds(status), "{at}: {path}: {:?}", status.name());
                    if let Some(slot) = request.slot {
                        open.insert(slot, (path.into(), false));
                    }
                    continue;
                }
                if let Op::Cancel { notification } = &request.op {
                    assert!(waiting.remove(notification).is_some(), "{at}: nothing waits");
                    continue;
                }
                let slot = request.slot.unwrap();
                if cache == ClientCache::DirLease && !open.contains_key(&slot) {
                    // Sent on the handle that the lease keeps.
                    if let Op::ChangeNotify(notify) = &request.op {
                        waiting.insert(notify.notification, slot);
                    }
                    continue;
                }
                let (path, delete) =
                    open.get_mut(&slot).unwrap_or_else(|| panic!("{at}: not open"));
                match &request.op {
                    Op::Close { .. } => {
                        if *delete {
                            assert!(self.files.remove(path.as_str()).is_some(), "{at}: {path}");
                        }
                        open.remove(&slot);
                        waiting.retain(|_, of| *of != slot);
                    }
                    Op::SetInfo(SetInfo::Disposition { delete: wish }) => *delete = *wish,
                    Op::SetInfo(SetInfo::Rename { to, replace }) => {
                        let bytes = self.files.remove(path.as_str()).unwrap();
                        *path = plan.path(*to).into();
                        let was = self.files.insert(path.clone(), bytes);
                        assert!(was.is_none() || *replace, "{at}: {path} is there");
                    }
                    Op::SetInfo(SetInfo::EndOfFile(Length::Of(pick))) => {
                        self.files.insert(path.clone(), plan.file(*pick).bytes);
                    }
                    Op::Read(transfer) => {
                        let amount = plan.amount(transfer);
                        assert!(
                            self.files[path.as_str()] >= amount.offset_bytes + amount.bytes,
                            "{at}: short"
                        );
                        assert!(amount.bytes > 0, "{at}: nothing to read");
                    }
                    Op::Write(transfer) => {
                        let amount = plan.amount(transfer);
                        let bytes = self.files.get_mut(path.as_str()).unwrap();
                        *bytes = (*bytes).max(amount.offset_bytes + amount.bytes);
                    }
                    Op::ChangeNotify(notify) => drop(waiting.insert(notify.notification, slot)),
                    _ => {}
                }
            }
        }
        assert!(
            open.is_empty() && waiting.is_empty(),
            "{} leaves {open:?} {waiting:?}",
            scenario.name
        );
    }
}

fn play(name: &str, user: u64, runs: u64, scale: f64, cache: ClientCache) -> (Disk, Disk) {
    let workload = Arc::new(Workload::built_in(name).unwrap());
    let planner = Planner::new(workload, 11, Scale::new(scale).unwrap());
    let before = Disk::prepared(&planner, user);
    let mut disk = Disk::prepared(&planner, user);
    let mut plans = planner.user(user, "");
    let mut plan = plans.buffer();
    for _ in 0..runs {
        plans.next_into(&mut plan);
        disk.play(&plan, cache);
    }
    // All files to restore or remove are known.
    let restore = planner.files().restore(user);
    for (path, bytes) in &before.files {
        let volatile = restore.volatile.iter().any(|spec| spec.path == *path);
        assert!(volatile || disk.files.get(path) == Some(bytes), "{path} is not as it was");
    }
    for path in disk.files.keys().filter(|path| !before.files.contains_key(*path)) {
        assert!(restore.is_surplus(path), "{path}");
    }
    (before, disk)
}

#[test]
fn homefolder_runs_for_a_day() {
    for user in 0..6 {
        let (before, after) = play("homefolder", user, 331 * 24, 1.0, ClientCache::Published);
        // New files up to their number; owner files at most one for each document.
        let new = after.files.keys().filter(|path| path.starts_with("New\\")).count();
        assert!((50..=64).contains(&new), "{new}");
        let owners = after.files.keys().filter(|path| path.contains("\\~$")).count();
        assert!(owners <= 105, "{owners}");
        let old = after.files.keys().filter(|path| path.starts_with("Old\\")).count();
        assert_eq!(old, 0);
        assert_eq!(after.files.len(), before.files.len() - 20 + new + owners);
    }
}

#[test]
fn every_client_cache_and_scale_runs() {
    for cache in ClientCache::ALL {
        for scale in [0.02, 0.3, 2.0] {
            play("homefolder", 77, 1_500, scale, cache);
        }
    }
    for name in ["bulk-copy", "metadata"] {
        play(name, 3, 500, 0.1, ClientCache::Published);
    }
}

/// A user that begins with deletes never runs out of files.
#[test]
fn deletes_never_run_out() {
    let text = include_str!("../../../workloads/homefolder.toml")
        .replace("runs_per_hour = 7\n", "runs_per_hour = 300\n");
    let workload = Workload::parse("much", "much", &text).unwrap();
    let planner = Planner::new(Arc::new(workload), 1, Scale::FULL);
    for user in 0..3 {
        let mut disk = Disk::prepared(&planner, user);
        let mut plans = planner.user(user, "");
        let mut deletes = 0;
        for _ in 0..3_000 {
            let plan = plans.next_plan();
            deletes += u32::from(plan.scenario().name.ends_with("Delete"));
            disk.play(&plan, ClientCache::Published);
        }
        assert!(deletes > 100, "{deletes}");
    }
}
