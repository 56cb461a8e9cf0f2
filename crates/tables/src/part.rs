//! What every source of rows yields and every reader takes: some rows of one table.
//!
//! Operations and slices are many and come as Arrow batches; the other tables' rows are few and come
//! as structs.

use arrow::array::RecordBatch;

use crate::run::{Counter, Scenario, Step};
use crate::tables::{Connection, Coverage, Handle, Referral, Session, Tree};

/// Some rows of one table, in the order of time.
#[derive(Clone, Debug)]
pub enum Part {
    /// Operations, in the order in which they ended.
    Operations(RecordBatch),
    /// Connections that ended.
    Connections(Vec<Connection>),
    /// Sessions, at the end.
    Sessions(Vec<Session>),
    /// Trees, at the end.
    Trees(Vec<Tree>),
    /// Opens that were closed, at the end those that were not.
    Handles(Vec<Handle>),
    /// Targets that DFS referrals answered.
    Referrals(Vec<Referral>),
    /// What the server did for operations that were yielded before, in the order of these.
    Slices(RecordBatch),
    /// Scenarios of simulated users that ended (load).
    Scenarios(Vec<Scenario>),
    /// Steps of a load run that ended.
    Steps(Vec<Step>),
    /// Samples of counters.
    Counters(Vec<Counter>),
    /// The last part of every input.
    Coverage(Box<Coverage>),
}
