//! Table `counters`: samples of processor, disk and network counters during a load run.

use crate::row::table;

table! {
    /// One sample of one counter.
    Counter, "counters" {
        recording: String, None, Machine, "The run: one machine's part of it.";
        time: i64, Time, Public, "When, on the run's clock.";
        source: String, None, Public, "Where it was read: client, server, or metrics (an endpoint).";
        name: String, None, Public, "What: cpu_percent, disk_queue, network_receive_bytes_per_second ...";
        instance: Option<String>, None, Machine, "Of which one, where there are several: a processor, a disk, an interface.";
        unit: String, None, Public, "Its unit.";
        value: f64, None, Public, "The value; of a rate the mean since the sample before.";
    }
}
