//! Where a move is: which stage is done, what the gates said, and why one was passed anyway.
//!
//! Owns the state and its rules: stages in their order, no stage done against its gate without a reason. The program
//! reads and writes the file (as a whole, atomically); nothing here knows files or the clock.

use serde::{Deserialize, Serialize};

use super::gate::Verdict;
use super::stages::{MovePlan, StageId};

/// Version of the file.
pub const VERSION: u32 = 1;
/// Verdicts kept for a stage, and clients that one of them names.
const VERDICTS_MAX: usize = 100;
const NAMES_MAX: usize = 100;
/// The largest file that is read.
pub const FILE_BYTES_MAX: u64 = 256 << 20;

/// How far a stage is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Status {
    #[default]
    Pending,
    Running,
    Done,
    /// Done, and taken back.
    Undone,
}

/// What a gate said at a time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GateRecord {
    pub at_s: i64,
    pub is_go: bool,
    pub judged: u64,
    pub held: u64,
    pub missing: u64,
    /// Clients that held it up or were missing, not all of many.
    pub names: Vec<String>,
    pub has_expected: bool,
    pub waited_until_s: Option<i64>,
    pub because: Vec<String>,
}

/// One stage.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StageProgress {
    pub id: StageId,
    pub status: Status,
    pub started_at_s: Option<i64>,
    pub done_at_s: Option<i64>,
    /// Why it was done against its gate.
    pub forced: Option<String>,
    /// Why it was taken back.
    pub undone: Option<String>,
    pub gates: Vec<GateRecord>,
}

/// The state of a move.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Progress {
    pub version: u32,
    pub plan: MovePlan,
    pub stages: Vec<StageProgress>,
}

/// Why a stage cannot begin or end; a sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal(pub String);

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Refusal {}

impl Progress {
    /// Nothing is done yet.
    pub fn new(plan: MovePlan) -> Progress {
        let stages = plan.stages.iter().map(|stage| StageProgress {
            id: stage.id,
            status: Status::Pending,
            started_at_s: None,
            done_at_s: None,
            forced: None,
            undone: None,
            gates: Vec::new(),
        });
        Progress { version: VERSION, stages: stages.collect(), plan }
    }

    /// The next stage: the first that is not done.
    pub fn current(&self) -> Option<&StageProgress> {
        self.stages.iter().find(|stage| stage.status != Status::Done)
    }

    pub fn stage(&self, id: StageId) -> Option<&StageProgress> {
        self.stages.iter().find(|stage| stage.id == id)
    }

    /// When the change that a stage waits for was made.
    pub fn changed_at_s(&self, id: StageId) -> Option<i64> {
        let since = self.plan.stage(id)?.since?;
        // A stage that waits for its own change was made when it began.
        let stage = self.stage(since)?;
        if since == id { stage.started_at_s } else { stage.done_at_s }
    }

    /// Notes that a stage begins.
    ///
    /// # Errors
    ///
    /// If it is not the next one.
    pub fn begin(&mut self, id: StageId, now_s: i64) -> Result<(), Refusal> {
        self.expect_current(id)?;
        let stage = self.stage_mut(id)?;
        stage.status = Status::Running;
        stage.started_at_s.get_or_insert(now_s);
        Ok(())
    }

    /// Keeps what a gate said.
    ///
    /// # Errors
    ///
    /// If the plan does not have the stage.
    pub fn judged(&mut self, verdict: &Verdict) -> Result<(), Refusal> {
        let held = verdict.held.iter().map(|one| &one.client);
        let names = held.chain(&verdict.missing).take(NAMES_MAX).cloned();
        let record = GateRecord {
            at_s: verdict.at_s,
            is_go: verdict.is_go,
            judged: verdict.judged,
            held: verdict.held.len() as u64,
            missing: verdict.missing.len() as u64,
            names: names.collect(),
            has_expected: verdict.has_expected,
            waited_until_s: verdict.waited_until_s,
            because: verdict.because.clone(),
        };
        let stage = self.stage_mut(verdict.stage)?;
        if stage.gates.len() >= VERDICTS_MAX {
            stage.gates.remove(0);
        }
        stage.gates.push(record);
        Ok(())
    }

    /// Notes that a stage is done. With a reason it is done even if its gate says no-go.
    ///
    /// # Errors
    ///
    /// If it is not the next one, or if its gate does not say go.
    pub fn done(&mut self, id: StageId, now_s: i64, forced: Option<&str>) -> Result<(), Refusal> {
        self.expect_current(id)?;
        let reason = forced.map(str::trim).filter(|reason| !reason.is_empty());
        if forced.is_some() && reason.is_none() {
            return Err(Refusal("a forced stage needs a reason".to_owned()));
        }
        let against = self.against(id, now_s);
        if let (Some(why), None) = (&against, reason) {
            return Err(Refusal(format!("stage {} cannot be done: {why}", id.name())));
        }
        let stage = self.stage_mut(id)?;
        stage.status = Status::Done;
        stage.started_at_s.get_or_insert(now_s);
        stage.done_at_s = Some(now_s);
        stage.forced = reason.filter(|_| against.is_some()).map(str::to_owned);
        stage.undone = None;
        Ok(())
    }

    /// Notes that a stage was taken back; it is the next one again. Stages after it must be taken back before.
    ///
    /// # Errors
    ///
    /// If it is not done or running, or a later one is.
    pub fn undo(&mut self, id: StageId, reason: &str) -> Result<(), Refusal> {
        let is_made =
            |stage: &StageProgress| matches!(stage.status, Status::Done | Status::Running);
        let last = self.stages.iter().rev().find(|stage| is_made(stage)).map(|stage| stage.id);
        if last != Some(id) {
            let next = last.map_or("no stage is done", StageId::name);
            return Err(Refusal(format!(
                "stage {} cannot be undone: the last one that is done comes first: {next}",
                id.name()
            )));
        }
        let stage = self.stage_mut(id)?;
        stage.status = Status::Undone;
        (stage.started_at_s, stage.done_at_s, stage.forced) = (None, None, None);
        stage.gates.clear();
        stage.undone = Some(reason.to_owned());
        Ok(())
    }

    /// Why the gate of a stage does not let it be done.
    pub fn against(&self, id: StageId, now_s: i64) -> Option<String> {
        self.plan.stage(id)?.gate?;
        let stage = self.stage(id)?;
        let since = self.changed_at_s(id);
        // Only what was judged since the change counts.
        let last = stage.gates.last().filter(|gate| since.is_none_or(|since| gate.at_s >= since));
        let Some(last) = last else { return Some("its gate was not judged yet".to_owned()) };
        if !last.is_go {
            return Some(format!("its gate says no-go: {}", last.because.join("; ")));
        }
        let is_over = last.waited_until_s.is_some_and(|until| now_s >= until);
        (!last.has_expected && !is_over).then(|| {
            "without a list of expected clients its gate judges some clients only, and the waiting time is not over".to_owned()
        })
    }

    /// The state as a file.
    ///
    /// # Errors
    ///
    /// Those of `serde_json`, which this data does not cause.
    pub fn to_json(&self) -> serde_json::Result<String> {
        serde_json::to_string_pretty(self).map(|text| text + "\n")
    }

    /// The state of a file.
    ///
    /// # Errors
    ///
    /// If the text is not such a file, of another version, or its stages are not those of its plan.
    pub fn from_json(text: &str) -> Result<Progress, Refusal> {
        let progress: Progress = serde_json::from_str(text)
            .map_err(|error| Refusal(format!("not the state of a move: {error}")))?;
        if progress.version != VERSION {
            return Err(Refusal(format!(
                "the state has version {}, and this program reads version {VERSION}",
                progress.version
            )));
        }
        let of_plan = progress.plan.stages.iter().map(|stage| stage.id);
        if of_plan.eq(progress.stages.iter().map(|stage| stage.id)) {
            Ok(progress)
        } else {
            Err(Refusal("the stages of the state are not those of its plan".to_owned()))
        }
    }

    fn expect_current(&self, id: StageId) -> Result<(), Refusal> {
        match self.current() {
            Some(current) if current.id == id => Ok(()),
            Some(current) => Err(Refusal(format!(
                "stage {} is not the next one: {} is",
                id.name(),
                current.id.name()
            ))),
            None => Err(Refusal("all stages are done".to_owned())),
        }
    }

    fn stage_mut(&mut self, id: StageId) -> Result<&mut StageProgress, Refusal> {
        let stage = self.stages.iter_mut().find(|stage| stage.id == id);
        stage.ok_or_else(|| Refusal(format!("the plan does not have the stage {}", id.name())))
    }
}

#[cfg(test)]
mod tests;
