//! The rows of all tables other than the operations: one file per table.
//!
//! The file declares the row with type, unit, sensitivity and meaning of each column; schema and
//! conversions follow from that. [`registry`](crate::registry) lists the tables.

mod channels;
mod connections;
mod counters;
mod coverage;
mod cpus;
mod devices;
mod handles;
mod images;
mod interfaces;
mod interrupt_totals;
mod interrupts;
mod net_intervals;
mod net_round_trips;
mod net_tests;
mod power;
mod referrals;
mod samples;
mod scenarios;
mod server_events;
mod sessions;
mod slices;
mod stacks;
mod steps;
mod switches;
mod traces;
mod trees;
mod waits;

pub use channels::Channel;
pub use connections::Connection;
pub use counters::Counter;
pub use coverage::Coverage;
pub use cpus::Cpu;
pub use devices::Device;
pub use handles::Handle;
pub use images::Image;
pub use interfaces::Interface;
pub use interrupt_totals::InterruptTotal;
pub use interrupts::Interrupt;
pub use net_intervals::NetInterval;
pub use net_round_trips::NetRoundTrip;
pub use net_tests::NetTest;
pub use power::Power;
pub use referrals::Referral;
pub use samples::Sample;
pub use scenarios::Scenario;
pub use server_events::ServerEvent;
pub use sessions::Session;
pub use slices::Slice;
pub use stacks::StackFrame;
pub use steps::Step;
pub use switches::Switch;
pub use traces::Trace;
pub use trees::Tree;
pub use waits::Wait;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_survive_the_way_through_arrow() {
        let row = Handle {
            handle: 3,
            path: Some("a\\b".into()),
            closed_at: None,
            opened_at: Some(-5),
            durable: Some(false),
            ..Handle::default()
        };
        let batch = Handle::to_batch(&[row.clone(), Handle::default()]).unwrap();
        assert_eq!(Handle::from_batch(&batch), [row, Handle::default()]);
    }

    #[test]
    fn a_column_that_is_missing_reads_as_absent() {
        let batch = Tree::to_batch(&[Tree { tree_id: 4, ..Tree::default() }]).unwrap();
        let rows = Session::from_batch(&batch.project(&[2]).unwrap());
        assert_eq!(rows, [Session::default()]);
    }
}
