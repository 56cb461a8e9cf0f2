//! The first pass: finds the operation that the user named.

use arrow::array::RecordBatch;
use arrow::error::ArrowError;

use super::data::{Brief, FoundBy};
use super::row::{Columns, Row};
use super::which::{Number, Which};

/// Most candidates that are kept.
const CANDIDATES_MAX: usize = 16;
/// Neighbours of a frame without an operation, on each side.
const NEAREST: usize = 2;

/// What is searched.
#[derive(Clone, Debug)]
enum Wanted {
    Named(Which),
    /// The first operation of a compound.
    Lead {
        recording: Option<String>,
        connection: Option<u64>,
        compound: u64,
    },
}

/// A search for one operation.
pub struct Search {
    wanted: Wanted,
    /// Operations that begin or are answered in the frame, or have the number.
    exact: Vec<(FoundBy, Row)>,
    enclosing: Vec<Row>,
    /// Operations before and after the frame, with their distance from it.
    before: Vec<(u64, Brief)>,
    after: Vec<(u64, Brief)>,
    /// Those that were not kept.
    exact_more: u64,
    enclosing_more: u64,
    operations: u64,
    has_frames: bool,
}

/// The operation to explain.
#[derive(Clone, Debug)]
pub struct Found {
    pub(super) row: Row,
    pub(super) found_by: FoundBy,
    /// The member of the compound that was named, if its first operation is explained instead.
    pub(super) member: Option<u16>,
}

/// Why there is not one operation.
#[derive(Clone, Debug, PartialEq)]
pub enum Miss {
    /// Several operations fit.
    Ambiguous {
        /// Some of them.
        candidates: Vec<Brief>,
        /// How many there are.
        count: u64,
    },
    /// No operation fits.
    Missing {
        /// Operations before and after the frame.
        nearest: Vec<Brief>,
        /// Operations in the inputs.
        operations: u64,
        /// Whether any of them has a frame.
        has_frames: bool,
    },
}

impl Search {
    /// Searches for the named operation.
    pub fn new(which: Which) -> Search {
        Search::from_wanted(Wanted::Named(which))
    }

    fn from_wanted(wanted: Wanted) -> Search {
        Search {
            wanted,
            exact: Vec::new(),
            enclosing: Vec::new(),
            before: Vec::new(),
            after: Vec::new(),
            exact_more: 0,
            enclosing_more: 0,
            operations: 0,
            has_frames: false,
        }
    }

    /// Looks through a batch of operations.
    pub fn operations(&mut self, batch: &RecordBatch) -> Result<(), ArrowError> {
        let columns = Columns::from_batch(batch)?;
        self.operations += batch.num_rows() as u64;
        match self.wanted.clone() {
            Wanted::Lead { recording, connection, compound } => {
                for row in 0..batch.num_rows() {
                    if columns.compound.get(row) == Some(compound)
                        && columns.compound_index.get(row) == Some(0)
                        && columns.connection.get(row) == connection
                        && columns.is_of(row, recording.as_deref())
                    {
                        self.found(FoundBy::Number, batch, &columns, row)?;
                    }
                }
            }
            Wanted::Named(which) => match which.number {
                Number::Operation(number) => {
                    for row in 0..batch.num_rows() {
                        if columns.operation.get(row) == Some(number)
                            && which.is_in(files(&columns, row))
                        {
                            self.found(FoundBy::Number, batch, &columns, row)?;
                        }
                    }
                }
                Number::Frame(frame) => self.frame(frame, &which, batch, &columns)?,
            },
        }
        Ok(())
    }

    fn found(
        &mut self,
        found_by: FoundBy,
        batch: &RecordBatch,
        columns: &Columns,
        row: usize,
    ) -> Result<(), ArrowError> {
        if self.exact.len() < CANDIDATES_MAX {
            self.exact.push((found_by, Row::from_batch(batch, columns, row)?));
        } else {
            self.exact_more += 1;
        }
        Ok(())
    }

    fn frame(
        &mut self,
        frame: u64,
        which: &Which,
        batch: &RecordBatch,
        columns: &Columns,
    ) -> Result<(), ArrowError> {
        // Rows are copied once per batch.
        let mut before: Vec<(u64, usize)> = Vec::new();
        let mut after = before.clone();
        for row in 0..batch.num_rows() {
            let frames = (columns.request_frame.get(row), columns.response_frame.get(row));
            let (first, last) = match frames {
                (None, None) => continue,
                (Some(one), None) | (None, Some(one)) => (one, one),
                (Some(first), Some(last)) => (first, last),
            };
            self.has_frames = true;
            // A later member of a compound has no time of its own: the first one is meant.
            let is_member = columns.compound_index.get(row).is_some_and(|index| index > 0)
                && columns.elapsed_ns.get(row).is_none();
            if is_member || !which.is_in(files(columns, row)) {
                continue;
            }
            if frames.0 == Some(frame) {
                self.found(FoundBy::Request, batch, columns, row)?;
            } else if frames.1 == Some(frame) {
                self.found(FoundBy::Reply, batch, columns, row)?;
            } else if first < frame && frame < last {
                if self.enclosing.len() < CANDIDATES_MAX {
                    self.enclosing.push(Row::from_batch(batch, columns, row)?);
                } else {
                    self.enclosing_more += 1;
                }
            } else if last < frame {
                keep_nearest(&mut before, frame - last, row);
            } else if frame < first {
                keep_nearest(&mut after, first - frame, row);
            }
        }
        for (kept, near) in [(&mut self.before, before), (&mut self.after, after)] {
            for (distance, row) in near {
                let zero = columns.seen(row).unwrap_or(0);
                keep_nearest(kept, distance, columns.brief(row, zero));
            }
        }
        Ok(())
    }

    /// The operation, or why there is not one.
    pub fn finish(self) -> Result<Found, Miss> {
        let Search { exact, enclosing, exact_more, enclosing_more, .. } = self;
        let is_exact = !exact.is_empty();
        let enclosing = enclosing.into_iter().map(|row| (FoundBy::Between, row));
        let mut candidates = if is_exact { exact } else { enclosing.collect() };
        let more = if is_exact { exact_more } else { enclosing_more };
        // The members of a compound are in one message; the first has its times.
        candidates.sort_by_key(|(_, row)| (row.compound_index.unwrap_or(0), row.brief.operation));
        let compound = |row: &Row| {
            row.compound
                .map(|compound| (row.brief.recording.clone(), row.brief.connection, compound))
        };
        let first = candidates.first().and_then(|(_, row)| compound(row));
        let is_one = candidates.len() == 1
            || (first.is_some() && candidates.iter().all(|(_, row)| compound(row) == first));
        if more == 0 && is_one && !candidates.is_empty() {
            let (found_by, row) = candidates.swap_remove(0);
            return Ok(Found { row, found_by, member: None });
        }
        if candidates.is_empty() {
            let mut nearest = self.before;
            nearest.reverse();
            nearest.extend(self.after);
            return Err(Miss::Missing {
                nearest: nearest.into_iter().map(|(_, brief)| brief).collect(),
                operations: self.operations,
                has_frames: self.has_frames,
            });
        }
        Err(Miss::Ambiguous {
            count: candidates.len() as u64 + more,
            candidates: candidates.into_iter().map(|(_, row)| row.brief).collect(),
        })
    }
}

impl Found {
    /// For a member of a compound without a time: a search for the first operation of the compound,
    /// which has it.
    pub fn lead(&self) -> Option<Search> {
        let Row { brief, compound, compound_index, .. } = &self.row;
        let compound = compound.filter(|_| {
            brief.elapsed_ns.is_none() && compound_index.is_some_and(|index| index > 0)
        })?;
        Some(Search::from_wanted(Wanted::Lead {
            recording: brief.recording.clone(),
            connection: brief.connection,
            compound,
        }))
    }

    /// The first operation of the compound that this one is a member of, if `lead` found it.
    pub fn or_lead(self, lead: Result<Found, Miss>) -> Found {
        match lead {
            Ok(lead) => Found { member: self.row.compound_index, found_by: self.found_by, ..lead },
            Err(_) => self,
        }
    }
}

fn files(columns: &Columns, row: usize) -> [Option<&str>; 2] {
    [columns.capture_file.get(row), columns.recording.get(row)]
}

/// Keeps the nearest few, the nearest first.
fn keep_nearest<T>(kept: &mut Vec<(u64, T)>, distance: u64, one: T) {
    let place = kept.partition_point(|(known, _)| *known <= distance);
    if place < NEAREST {
        kept.insert(place, (distance, one));
        kept.truncate(NEAREST);
    }
}
