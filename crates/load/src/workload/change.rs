//! A workload changed from the command line: block size, depth, file size, fewer scenarios.

use super::error::nearest;
use super::model::{Op, Transfer, Workload};
use super::table::quoted;
use crate::fileset::{FileClass, Sizes};

/// What `--block`, `--depth` and `--size` change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Overrides {
    /// Block of every read and write of a whole file.
    pub block_bytes: Option<u32>,
    /// Requests in flight of every read and write of a whole file.
    pub depth: Option<u16>,
    /// Size of every file whose size the workload gives in bytes.
    pub size_bytes: Option<u64>,
}

/// A change that the workload does not allow.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadChange {
    /// There is nothing to change.
    #[error("--{option}: {workload} has no {lacks}")]
    Nothing {
        /// The option.
        option: &'static str,
        /// The workload.
        workload: String,
        /// What is missing in it.
        lacks: &'static str,
    },
    /// A value out of range.
    #[error("--{option}: invalid value {value}: {range}")]
    Range {
        /// The option.
        option: &'static str,
        /// The value.
        value: u64,
        /// The valid range.
        range: &'static str,
    },
    /// No scenario of that name.
    #[error("{workload} has no scenario `{name}`: {help}")]
    Scenario {
        /// The workload.
        workload: String,
        /// The name.
        name: String,
        /// The existing names.
        help: String,
    },
}

impl Workload {
    /// The workload with these changes. A smaller or larger block changes how many reads and writes
    /// an execution sends.
    pub fn with_overrides(mut self, overrides: &Overrides) -> Result<Workload, BadChange> {
        if let Some(block) = overrides.block_bytes {
            range("block", block.into(), 1, 8 << 20, "from 1 byte to 8 MiB")?;
            self.each_transfer("block", |transfer| transfer.block_bytes = block)?;
        }
        if let Some(depth) = overrides.depth {
            range("depth", depth.into(), 1, 1024, "from 1 to 1024 requests in flight")?;
            self.each_transfer("depth", |transfer| transfer.depth = depth)?;
        }
        if let Some(size) = overrides.size_bytes {
            range("size", size, 1, (1 << 50) - 1, "from 1 byte to below 1 PiB")?;
            let mut changed = false;
            for pool in &mut self.pools {
                if let Sizes::Bytes(list) = &mut pool.sizes {
                    list.fill(size);
                    changed = true;
                }
            }
            if !changed {
                return Err(self.nothing("size", "files whose size is given in bytes"));
            }
        }
        Ok(self)
    }

    /// The workload with only these scenarios. Their frequencies stay, so the interval between a user's
    /// executions grows; files that no scenario picks are not needed any more and are removed.
    pub fn only(mut self, names: &[&str]) -> Result<Workload, BadChange> {
        for name in names {
            if self.scenario(name).is_none() {
                let known: Vec<&str> =
                    self.scenarios.iter().map(|scenario| scenario.name.as_str()).collect();
                let help = match nearest(name, known.iter().copied()) {
                    Some(meant) => format!("did you mean `{meant}`?"),
                    None => format!("there is {}", quoted(&known)),
                };
                return Err(BadChange::Scenario {
                    workload: self.name,
                    name: (*name).into(),
                    help,
                });
            }
        }
        self.scenarios.retain(|scenario| names.contains(&scenario.name.as_str()));
        let used: Vec<usize> =
            self.scenarios.iter().flat_map(|scenario| scenario.pools()).collect();
        // Pools are identified by their index, so an unused one stays but gets no files; scenarios may
        // still list its folders.
        for (index, pool) in self.pools.iter_mut().enumerate() {
            pool.is_used = used.contains(&index) || pool.class == FileClass::New;
        }
        Ok(self)
    }

    fn each_transfer(
        &mut self,
        option: &'static str,
        change: impl Fn(&mut Transfer),
    ) -> Result<(), BadChange> {
        let steps = self.scenarios.iter_mut().flat_map(|scenario| &mut scenario.steps);
        let mut changed = false;
        for request in steps.flat_map(|step| &mut step.requests) {
            if let Op::Read(transfer) | Op::Write(transfer) = &mut request.op {
                change(transfer);
                changed = true;
            }
        }
        if changed { Ok(()) } else { Err(self.nothing(option, "reads or writes")) }
    }

    fn nothing(&self, option: &'static str, lacks: &'static str) -> BadChange {
        BadChange::Nothing { option, workload: self.name.clone(), lacks }
    }
}

pub(super) fn range(
    option: &'static str,
    value: u64,
    least: u64,
    most: u64,
    range: &'static str,
) -> Result<(), BadChange> {
    if (least..=most).contains(&value) {
        Ok(())
    } else {
        Err(BadChange::Range { option, value, range })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use smbscope_wire::smb2::Command;

    use super::super::{Planner, counts};
    use super::*;
    use crate::fileset::Scale;
    use crate::workload::ClientCache;

    #[test]
    fn block_depth_and_size_are_changed() {
        let overrides =
            Overrides { block_bytes: Some(65_536), depth: Some(4), size_bytes: Some(1_000_000) };
        let workload = Workload::built_in("bulk-copy").unwrap().with_overrides(&overrides).unwrap();
        let files = workload.file_set(1, Scale::FULL);
        assert!(files.files(1).all(|file| file.bytes == 1_000_000));
        for (scenario, command) in [("Download", Command::READ), ("Upload", Command::WRITE)] {
            let only = Arc::new(workload.clone().only(&[scenario]).unwrap());
            let plan = Planner::new(only, 1, Scale::FULL).user(1, "").next_plan();
            assert_eq!(plan.scenario().name, scenario);
            assert_eq!(counts(&plan, ClientCache::Published).operations(command), 16.0);
        }
    }

    #[test]
    fn impossible_changes_are_reported() {
        let metadata = || Workload::built_in("metadata").unwrap();
        let with = |overrides| metadata().with_overrides(&overrides).unwrap_err().to_string();
        let none = Overrides::default();
        assert_eq!(
            with(Overrides { depth: Some(2), ..none }),
            "--depth: metadata has no reads or writes"
        );
        assert!(with(Overrides { block_bytes: Some(9 << 20), ..none }).contains("8 MiB"));
        let homefolder = Workload::built_in("homefolder").unwrap();
        let size =
            homefolder.with_overrides(&Overrides { size_bytes: Some(1), ..none }).unwrap_err();
        assert!(size.to_string().contains("given in bytes"), "{size}");
        let only = metadata().only(&["Stats"]).unwrap_err().to_string();
        assert_eq!(only, "metadata has no scenario `Stats`: did you mean `Stat`?");
    }

    #[test]
    fn files_that_no_scenario_needs_are_not_made() {
        let workload = Workload::built_in("homefolder").unwrap().only(&["ExplorerSelect"]).unwrap();
        assert_eq!(workload.file_set(1, Scale::FULL).user_files(), 48);
    }
}
