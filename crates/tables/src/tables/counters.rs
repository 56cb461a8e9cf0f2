//! Table `counters`: samples of CPU, disk and network counters during a load run.

use crate::row::table;

table! {
    /// One sample of one counter.
    Counter, "counters" {
        recording: String, None, Machine, "The recording: one machine's part of the run.";
        time: i64, Time, Public, "Time of the sample on the run's clock.";
        source: String, None, Public, "Where it was read: client, server, or metrics (an endpoint, or a counter log that does not say).";
        name: String, None, Public, "Name of the counter: cpu_percent, disk_queue, network_receive_bytes_per_second ...";
        instance: Option<String>, None, Machine, "The CPU, disk or interface, if there are several.";
        unit: String, None, Public, "Unit of the value.";
        value: f64, None, Public, "The value; for a rate, the mean since the previous sample.";
    }
}
