//! Interrupts and deferred work for Perfetto: for each CPU a track of handlers and one of deferred work.

use std::io::{self, Write};

use arrow::array::{Array, AsArray, RecordBatch};
use arrow::datatypes::{Int64Type, UInt64Type};

use super::PerfettoTrace;
use super::packets::{Type, Value};

impl<W: Write> PerfettoTrace<W> {
    /// Adds rows of the table `interrupts`. Polls of which only the end is known are instants.
    pub fn interrupts(&mut self, batch: &RecordBatch) -> io::Result<()> {
        let number =
            |name| batch.column_by_name(name).and_then(|c| c.as_primitive_opt::<UInt64Type>());
        let signed =
            |name| batch.column_by_name(name).and_then(|c| c.as_primitive_opt::<Int64Type>());
        let text = |name| batch.column_by_name(name).and_then(|c| c.as_string_opt::<i32>());
        let (Some(recordings), Some(cpus), Some(kinds), Some(starts)) =
            (text("recording"), number("cpu"), text("kind"), signed("start"))
        else {
            return Ok(());
        };
        let durations = signed("duration_ns");
        macro_rules! at {
            ($column:expr, $row:expr) => {
                $column.filter(|column| column.is_valid($row)).map(|column| column.value($row))
            };
        }
        for row in 0..batch.num_rows() {
            let (cpu, kind, start) = (cpus.value(row), kinds.value(row), starts.value(row));
            let is_handler = matches!(kind, "isr" | "isr_msi" | "irq" | "ipi");
            let duration = at!(durations, row);
            let end = start.saturating_add(duration.unwrap_or(0));
            let recording = recordings.value(row);
            let top = self.tracks.recording(recording);
            if top.new {
                if self.counts.interrupts == 0 {
                    self.writer.clock(start)?;
                }
                self.writer.track(top.uuid, None, recording, top.uuid)?;
            }
            let place = cpu.saturating_mul(2) + u64::from(is_handler);
            let track = self.tracks.take(top.uuid, Some(place), (start, end));
            if track.new {
                let what = if is_handler { "interrupts" } else { "deferred work" };
                let name = format!("CPU {cpu} {what}");
                self.writer.track(track.uuid, Some(top.uuid), &name, place)?;
            }
            let mut values = Vec::new();
            for name in ["exclusive_ns", "delay_ns"] {
                values.extend(at!(signed(name), row).map(|value| (name, Value::Signed(value))));
            }
            for name in ["vector", "queue", "work", "budget"] {
                values.extend(at!(number(name), row).map(|value| (name, Value::Unsigned(value))));
            }
            values.extend(at!(text("device"), row).map(|value| ("device", Value::Text(value))));
            let name = (kind, at!(text("name"), row).unwrap_or("without a name"));
            self.counts.interrupts += 1;
            if duration.is_none() {
                self.writer.event(track.uuid, start, Type::Instant, name, &values)?;
                continue;
            }
            self.writer.event(track.uuid, start, Type::Begin, name, &values)?;
            self.writer.event(track.uuid, end, Type::End, name, &[])?;
        }
        Ok(())
    }
}
