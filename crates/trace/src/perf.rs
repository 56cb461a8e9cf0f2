//! `perf.data`: what `perf record` writes to a file or a pipe.
//!
//! [`header`] reads header, attributes and feature sections, [`stream`] the records, which
//! [`queue`] puts in the order of their times. [`sample`] knows the body of a sample, [`features`] a
//! few sections, [`mappings`] the files of programs, and [`convert`] makes [`Event`]s; what tracepoints mean is in [`crate::linux`].
//!
//! Why not the crate linux-perf-data (0.13): it allocates by lengths of the file, loses all records
//! of a file that is cut, and does not read tracepoints from a pipe.

mod convert;
mod features;
mod header;
mod mappings;
mod queue;
pub mod sample;
mod stream;

use std::io::{self, BufReader, Read, Seek, SeekFrom};

use crate::bytes::seek_to;
use crate::event::{Coverage, Event, EventReader};
use convert::Converter;
use header::Header;
use queue::{Key, Queue};
use stream::{Next, Stream};

/// Marks that a round of `perf record` has ended.
const FINISHED_ROUND: u32 = 68;
/// Records of a step.
const STEP_RECORDS: usize = 1024;

/// Whether a file that begins with `head` is `perf.data`.
pub fn is_perf(head: &[u8]) -> bool {
    header::order_and_size(head).is_some()
}

/// Reads `perf.data`.
pub struct Reader<R> {
    stream: Stream<BufReader<R>>,
    queue: Queue,
    converter: Converter,
    /// Where the records begin, and bytes of everything else.
    data_at: u64,
    other_bytes: u64,
}

impl<R: Read + Seek> Reader<R> {
    /// Reads everything but the records.
    ///
    /// # Errors
    ///
    /// Those of the operating system, and `InvalidData` if it is not `perf.data`.
    pub fn new(mut source: R) -> io::Result<Reader<R>> {
        let mut header = Header::read(&mut source)?
            .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "not a perf.data file"))?;
        let size_bytes = source.seek(SeekFrom::End(0))?;
        let rest_bytes = size_bytes.saturating_sub(header.data_at);
        let data_bytes = header.data_bytes.unwrap_or(rest_bytes).min(rest_bytes);
        let other_bytes = size_bytes - data_bytes;
        if !seek_to(&mut source, header.data_at)? {
            header.damaged = Some("the file is cut: it has no records");
            header.data_bytes = Some(0);
        }
        let (order, data_at) = (header.order, header.data_at);
        let (data_length, mut queue) = (header.data_bytes, Queue::default());
        let mut converter = Converter::new(header);
        let mut source = BufReader::with_capacity(1 << 16, source);
        if let Some(bounds) = converter.sample_times() {
            // A damaged section is not believed.
            let stream = Stream::new(&mut source, order, data_length);
            if agrees(stream, &converter, bounds)? {
                queue.bounds = Some(bounds)
            } else {
                converter.linux.damaged(|| "times of the first and last sample".to_owned())
            }
            source.seek(SeekFrom::Start(data_at))?;
        }
        let stream = Stream::new(source, order, data_length);
        Ok(Reader { stream, queue, converter, data_at, other_bytes })
    }
}

/// Whether at least half of the first samples are within these times.
fn agrees(
    mut stream: Stream<impl Read>,
    converter: &Converter,
    bounds: (u64, u64),
) -> io::Result<bool> {
    let (mut all, mut within) = (0_u32, 0_u32);
    for _ in 0..STEP_RECORDS {
        match stream.next()? {
            Next::End => break,
            Next::Damaged(_) => {}
            Next::Record(record) => {
                let key = converter.key(record).filter(|key| key.is_sample && key.time != 0);
                all += u32::from(key.is_some());
                let is_within = |key: Key| Queue::is_within(Some(bounds), key.time);
                within += u32::from(key.is_some_and(is_within));
            }
        }
    }
    Ok(2 * within >= all)
}

impl<R: Read + Seek> EventReader for Reader<R> {
    fn step(&mut self, sink: &mut dyn FnMut(Event)) -> io::Result<bool> {
        let (queue, converter) = (&mut self.queue, &mut self.converter);
        for _ in 0..STEP_RECORDS {
            let record = match self.stream.next()? {
                Next::Record(record) => record,
                Next::Damaged(what) => {
                    let place = self.data_at + self.stream.read_bytes;
                    converter.linux.damaged(|| format!("{what} before byte {place}"));
                    continue;
                }
                Next::End => {
                    queue.finish(|attribute, record| converter.record(attribute, record, sink));
                    converter.finish(queue.late, queue.damaged, sink);
                    return Ok(false);
                }
            };
            match converter.key(record) {
                Some(key) => queue.push(key, record),
                None if record.kind == FINISHED_ROUND => {
                    queue.round(|attribute, record| converter.record(attribute, record, sink));
                }
                None => converter.user_record(record),
            }
            if queue.is_full() {
                queue.relieve(|attribute, record| converter.record(attribute, record, sink));
            }
        }
        Ok(true)
    }

    fn coverage(&self) -> Coverage {
        Coverage { read_bytes: self.read_bytes(), ..self.converter.coverage() }
    }

    fn read_bytes(&self) -> u64 {
        self.other_bytes + self.stream.read_bytes
    }
}
