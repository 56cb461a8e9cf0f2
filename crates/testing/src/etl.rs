//! Makes event trace logs (`.etl`): the reverse of the reader in `smbscope-trace`, written from the same
//! descriptions of the structures, so that tests and benchmarks need no recording.

/// How buffers are compressed, by its number in the first buffer's state.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Compression {
    /// As they are.
    None = 0,
    /// LZNT1, with chunks that are not compressed.
    Lznt1 = 2,
    /// Plain LZ77.
    Xpress = 3,
    /// LZ77 with Huffman codes: literals only.
    XpressHuffman = 4,
}

/// A log to be made.
#[derive(Clone, Debug)]
pub struct Builder {
    pub pointer_bytes: usize,
    /// Number of the clock: 1 performance counter, 2 system time, 3 cycles.
    pub clock: u32,
    pub ticks_per_second: i64,
    pub mhz: u32,
    /// Build of Windows.
    pub build: u32,
    /// Time of the header by the log's clock, and as FILETIME.
    pub start_ticks: i64,
    pub start_filetime: i64,
    /// Time from there to the end of the log, in units of 100 ns.
    pub length: i64,
    pub cpus: u32,
    pub buffer_bytes: usize,
    pub compression: Compression,
    pub events_lost: u32,
    pub buffers_lost: u32,
    pub buffers: Vec<Buffer>,
}

/// A buffer of one processor.
#[derive(Clone, Debug)]
pub struct Buffer {
    cpu: u16,
    pointer_bytes: usize,
    records: Vec<u8>,
}

/// An event of a provider with a manifest.
#[derive(Clone, Copy, Debug, Default)]
pub struct Manifest<'a> {
    pub guid: [u8; 16],
    pub id: u16,
    pub version: u8,
    pub thread: u32,
    pub keyword: u64,
    pub extended: &'a [(u16, &'a [u8])],
}

/// 2021-01-01 in units of 100 ns since 1601, and in nanoseconds since 1970.
pub const START_FILETIME: i64 = 132_539_328_000_000_000;
pub const START_NS: i64 = 1_609_459_200_000_000_000;

impl Default for Builder {
    fn default() -> Builder {
        Builder {
            pointer_bytes: 8,
            clock: 1,
            ticks_per_second: 10_000_000,
            mhz: 2_600,
            build: 20_348,
            start_ticks: 1_000_000,
            start_filetime: START_FILETIME,
            length: 20_000_000,
            cpus: 4,
            buffer_bytes: 4_096,
            compression: Compression::None,
            events_lost: 0,
            buffers_lost: 0,
            buffers: Vec::new(),
        }
    }
}

impl Builder {
    /// An empty buffer of a processor.
    pub fn buffer(&self, cpu: u16) -> Buffer {
        Buffer { cpu, pointer_bytes: self.pointer_bytes, records: Vec::new() }
    }

    /// Adds a buffer to what [`Builder::build`] makes.
    pub fn add(&mut self, buffer: Buffer) {
        self.buffers.push(buffer);
    }

    /// The whole log.
    pub fn build(&self) -> Vec<u8> {
        let mut out = self.head(self.buffers.len());
        for buffer in &self.buffers {
            out.extend(self.bytes(buffer));
        }
        out
    }

    /// The first buffer, which has the header of a log with this many others.
    pub fn head(&self, buffers: usize) -> Vec<u8> {
        let mut first = self.buffer(0);
        first.system(0, 0, 2, self.start_ticks, &self.log_header(buffers));
        let mut out = self.envelope(4, &first);
        let state = (self.compression as u32).to_le_bytes();
        out[44..48].copy_from_slice(&state);
        out
    }

    /// A buffer as it is in the file.
    pub fn bytes(&self, buffer: &Buffer) -> Vec<u8> {
        self.envelope(0, buffer)
    }

    /// TRACE_LOGFILE_HEADER.
    fn log_header(&self, buffers: usize) -> Vec<u8> {
        let mode: u32 = if self.compression == Compression::None { 1 } else { 0x0400_0001 };
        let mut out = Vec::new();
        out.extend((self.buffer_bytes as u32).to_le_bytes());
        out.extend([10, 0, 1, 5]);
        out.extend(self.build.to_le_bytes());
        out.extend(self.cpus.to_le_bytes());
        out.extend((self.start_filetime + self.length).to_le_bytes());
        for field in [156_250, 0, mode, buffers as u32 + 1, 1] {
            out.extend(u32::to_le_bytes(field));
        }
        for field in [self.pointer_bytes as u32, self.events_lost, self.mhz] {
            out.extend(field.to_le_bytes());
        }
        // Two pointers, the time zone, and what aligns the next field.
        out.resize(if self.pointer_bytes == 8 { 248 } else { 240 }, 0);
        let boot = self.start_filetime - 1_000_000_000;
        for field in [boot, self.ticks_per_second, self.start_filetime] {
            out.extend(field.to_le_bytes());
        }
        out.extend(self.clock.to_le_bytes());
        out.extend(self.buffers_lost.to_le_bytes());
        // Names of the session and of the file.
        out.extend([0; 4]);
        out
    }

    /// WMI_BUFFER_HEADER and the records.
    fn envelope(&self, kind: u16, buffer: &Buffer) -> Vec<u8> {
        let is_compressed = kind == 0 && self.compression != Compression::None;
        let filled = 72 + buffer.records.len();
        let body = match self.compression {
            _ if !is_compressed => buffer.records.clone(),
            Compression::Xpress => xpress(&buffer.records),
            Compression::XpressHuffman => xpress_huffman(&buffer.records),
            _ => lznt1(&buffer.records),
        };
        let mut out = vec![0; 72];
        let stride = if is_compressed { 72 + body.len() } else { self.buffer_bytes };
        assert!(is_compressed || filled <= stride, "the records fit into a buffer");
        out[0..4].copy_from_slice(&(stride as u32).to_le_bytes());
        out[4..8].copy_from_slice(&(filled as u32).to_le_bytes());
        out[40..42].copy_from_slice(&buffer.cpu.to_le_bytes());
        out[48..52].copy_from_slice(&(filled as u32).to_le_bytes());
        out[52] = if is_compressed { 0x60 } else { 0x20 };
        out[54..56].copy_from_slice(&kind.to_le_bytes());
        out.extend(body);
        out.resize(stride, 0xff);
        out
    }
}

impl Buffer {
    /// How full it is.
    pub fn filled_bytes(&self) -> usize {
        72 + self.records.len()
    }

    /// An event with SYSTEM_TRACE_HEADER.
    pub fn system(&mut self, group: u8, opcode: u8, version: u16, ticks: i64, fields: &[u8]) {
        let kind = if self.pointer_bytes == 8 { 2 } else { 1 };
        self.with_header(32, kind, group, opcode, version, ticks, fields);
    }

    /// The same with the compact header, which has no processor times.
    pub fn compact(&mut self, group: u8, opcode: u8, version: u16, ticks: i64, fields: &[u8]) {
        let kind = if self.pointer_bytes == 8 { 4 } else { 3 };
        self.with_header(24, kind, group, opcode, version, ticks, fields);
    }

    /// An event with PERFINFO_TRACE_HEADER.
    pub fn perfinfo(&mut self, group: u8, opcode: u8, ticks: i64, fields: &[u8]) {
        self.perfinfo_of_version(group, opcode, 2, ticks, fields);
    }

    /// The same with a version, whose high bits may say that more follows the header.
    pub fn perfinfo_of_version(
        &mut self,
        group: u8,
        opcode: u8,
        version: u16,
        ticks: i64,
        fields: &[u8],
    ) {
        let kind = if self.pointer_bytes == 8 { 17 } else { 16 };
        self.with_header(16, kind, group, opcode, version, ticks, fields);
    }

    #[allow(clippy::too_many_arguments)]
    fn with_header(
        &mut self,
        header_bytes: usize,
        kind: u8,
        group: u8,
        opcode: u8,
        version: u16,
        ticks: i64,
        fields: &[u8],
    ) {
        let mut record = vec![0; header_bytes];
        record[0..2].copy_from_slice(&version.to_le_bytes());
        record[2] = kind;
        record[3] = 0xc0;
        let size = (header_bytes + fields.len()) as u16;
        record[4..6].copy_from_slice(&size.to_le_bytes());
        record[6] = opcode;
        record[7] = group;
        let time = if kind >= 16 { 8 } else { 16 };
        record[time..time + 8].copy_from_slice(&ticks.to_le_bytes());
        self.push(record, fields);
    }

    /// An event of a provider: EVENT_TRACE_HEADER (classic) or EVENT_HEADER.
    pub fn provider(
        &mut self,
        guid: [u8; 16],
        is_classic: bool,
        id: u8,
        ticks: i64,
        fields: &[u8],
    ) {
        let (header_bytes, kind) = if is_classic { (48, 10) } else { (80, 18) };
        let kind =
            kind + if self.pointer_bytes == 8 { [10, 1][usize::from(!is_classic)] } else { 0 };
        let mut record = vec![0; header_bytes];
        let size = (header_bytes + fields.len()) as u16;
        record[0..2].copy_from_slice(&size.to_le_bytes());
        record[2] = kind;
        record[3] = 0xc0;
        record[16..24].copy_from_slice(&ticks.to_le_bytes());
        record[24..40].copy_from_slice(&guid);
        record[if is_classic { 4 } else { 40 }] = id;
        self.push(record, fields);
    }

    /// An event of a provider with a manifest, with its keyword, the thread that writes it, and items of extended
    /// data (type and bytes).
    pub fn manifest(&mut self, head: &Manifest<'_>, ticks: i64, fields: &[u8]) {
        let mut record = vec![0; 80];
        record[2] = if self.pointer_bytes == 8 { 19 } else { 18 };
        record[3] = 0xc0;
        record[4] = u8::from(!head.extended.is_empty());
        record[8..12].copy_from_slice(&head.thread.to_le_bytes());
        record[16..24].copy_from_slice(&ticks.to_le_bytes());
        record[24..40].copy_from_slice(&head.guid);
        record[40..42].copy_from_slice(&head.id.to_le_bytes());
        record[42] = head.version;
        record[48..56].copy_from_slice(&head.keyword.to_le_bytes());
        for (place, (kind, bytes)) in head.extended.iter().enumerate() {
            let size = (8 + bytes.len()).next_multiple_of(8);
            let has_more = u16::from(place + 1 < head.extended.len());
            for field in [size as u16, *kind, has_more, bytes.len() as u16] {
                record.extend(field.to_le_bytes());
            }
            record.extend_from_slice(bytes);
            record.resize(record.len().next_multiple_of(8), 0);
        }
        let size =
            u16::try_from(record.len() + fields.len()).expect("an event has less than 64 KiB");
        record[0..2].copy_from_slice(&size.to_le_bytes());
        self.push(record, fields);
    }

    /// A message of WPP, which has no time at a fixed place.
    pub fn message(&mut self, fields: &[u8]) {
        let mut record = vec![0; 8];
        record[0..2].copy_from_slice(&((8 + fields.len()) as u16).to_le_bytes());
        record[2..4].copy_from_slice(&[15, 0x90]);
        self.push(record, fields);
    }

    fn push(&mut self, mut record: Vec<u8>, fields: &[u8]) {
        record.extend_from_slice(fields);
        record.resize(record.len().next_multiple_of(8), 0);
        self.records.extend(record);
    }

    // What the kernel logs.

    /// A DPC or an ISR, without the fields of an ISR.
    pub fn run(&mut self, opcode: u8, start_ticks: i64, end_ticks: i64, routine: u64, isr: &[u8]) {
        let fields = [&start_ticks.to_le_bytes()[..], &self.pointer(routine), isr].concat();
        self.perfinfo(15, opcode, end_ticks, &fields);
    }

    /// A sample; `flags` has bit 0 in a DPC, bit 1 in an ISR.
    pub fn sample(&mut self, ticks: i64, address: u64, thread: u32, flags: u8) {
        let rest = [1, 0, flags, 0];
        let fields = [&self.pointer(address)[..], &thread.to_le_bytes(), &rest].concat();
        self.perfinfo(15, 46, ticks, &fields);
    }

    /// A part of a stack with its frames (opcode 32), or with a key (37, 38).
    pub fn stack(&mut self, opcode: u8, ticks: i64, owner_ticks: i64, thread: u32, frames: &[u64]) {
        let mut fields = owner_ticks.to_le_bytes().to_vec();
        fields.extend(700_u32.to_le_bytes());
        fields.extend(thread.to_le_bytes());
        fields.extend(frames.iter().flat_map(|&frame| self.pointer(frame)));
        self.perfinfo(24, opcode, ticks, &fields);
    }

    /// An entry of the dictionary of stacks.
    pub fn stack_entry(&mut self, opcode: u8, ticks: i64, key: u64, frames: &[u64]) {
        let pointers = std::iter::once(&key).chain(frames);
        let fields: Vec<u8> = pointers.flat_map(|&pointer| self.pointer(pointer)).collect();
        self.perfinfo(24, opcode, ticks, &fields);
    }

    pub fn image(&mut self, kind: (u8, u8), ticks: i64, base: u64, process: u32, path: &str) {
        let mut fields = [self.pointer(base), self.pointer(0x9000)].concat();
        fields.extend(process.to_le_bytes());
        fields.resize(3 * self.pointer_bytes + 32, 0);
        fields.extend(wide(path));
        self.system(kind.0, kind.1, 3, ticks, &fields);
    }

    /// What a processor is: MHz and the number of processors (SystemConfig_CPU), and a bit for each processor with
    /// hyper-threading.
    pub fn processors(&mut self, ticks: i64, mhz: u32, cpus: u32, hyper_threads: u32) {
        let mut fields = mhz.to_le_bytes().to_vec();
        fields.extend(cpus.to_le_bytes());
        fields.resize(800, 0);
        fields.extend(hyper_threads.to_le_bytes());
        fields.resize(828, 0);
        self.system(11, 10, 3, ticks, &fields);
    }

    /// A device of the class of network adapters, as plug and play has it, and its interrupt (`SystemConfig_IRQ`).
    pub fn network_adapter(
        &mut self,
        ticks: i64,
        instance: &str,
        name: &str,
        service: &str,
        irq: i32,
    ) {
        // GUID_DEVCLASS_NET of devguid.h.
        let mut fields = vec![0x72, 0xe9, 0x36, 0x4d, 0x25, 0xe3, 0xce, 0x11];
        fields.extend([0xbf, 0xc1, 0x08, 0x00, 0x2b, 0xe1, 0x03, 0x18]);
        fields.resize(32, 0);
        for text in [instance, name, name, "", service] {
            fields.extend(wide(text));
        }
        self.system(11, 22, 5, ticks, &fields);
        let mut fields = vec![0; 12];
        fields.extend(irq.to_le_bytes());
        fields.extend((instance.encode_utf16().count() as u32 + 1).to_le_bytes());
        fields.extend(wide(instance));
        self.system(11, 21, 3, ticks, &fields);
    }

    /// The NUMA nodes, each with the mask of its processors in group 0.
    pub fn nodes(&mut self, ticks: i64, masks: &[u64]) {
        let mut fields = (masks.len() as u32).to_le_bytes().to_vec();
        for mask in masks {
            fields.extend(mask.to_le_bytes());
            fields.extend([0; 8]);
        }
        self.system(11, 24, 2, ticks, &fields);
    }

    /// The PDB file of an image.
    pub fn symbols(&mut self, ticks: i64, base: u64, process: u32, pdb: &str) {
        let control = [
            0xd7, 0x75, 0xe6, 0xb3, 0x54, 0x25, 0x18, 0x4f, 0x83, 0x0b, 0x27, 0x62, 0x73, 0x25,
            0x60, 0xde,
        ];
        let mut fields = self.pointer(base);
        fields.extend(process.to_le_bytes());
        fields.extend(0..16);
        fields.extend(2_u32.to_le_bytes());
        fields.extend(pdb.bytes().chain([0]));
        self.provider(control, true, 36, ticks, &fields);
    }

    pub fn process(&mut self, opcode: u8, ticks: i64, process: u32, sid: &[u8], name: &str) {
        let mut fields = self.pointer(0xffff_8000_1234_5678);
        fields.extend([process, 4, 0, 259].iter().flat_map(|field: &u32| field.to_le_bytes()));
        fields.extend(self.pointer(0x1000));
        fields.extend([0; 4]);
        if sid.is_empty() {
            fields.extend([0; 4]);
        } else {
            fields.extend(self.pointer(1));
            fields.extend(self.pointer(0));
            fields.extend(sid);
        }
        fields.extend(name.bytes().chain([0]));
        fields.extend(wide("command line"));
        self.perfinfo_of_version(3, opcode, 4, ticks, &fields);
    }

    pub fn thread(&mut self, opcode: u8, ticks: i64, process: u32, thread: u32) {
        let mut fields = process.to_le_bytes().to_vec();
        fields.extend(thread.to_le_bytes());
        fields.extend([0; 64]);
        self.system(5, opcode, 3, ticks, &fields);
    }

    pub fn switch(&mut self, ticks: i64, old_thread: u32, new_thread: u32, old_state: u8) {
        self.any_switch(ticks, [new_thread, old_thread], 0, old_state);
    }

    /// A switch from the idle thread of a processor, which was in an idle state before.
    pub fn switch_from_idle(&mut self, ticks: i64, new_thread: u32, idle_state: u8) {
        self.any_switch(ticks, [new_thread, 0], idle_state, 2);
    }

    fn any_switch(&mut self, ticks: i64, threads: [u32; 2], idle_state: u8, old_state: u8) {
        let mut fields = threads.map(u32::to_le_bytes).concat();
        fields.extend([8, 8, idle_state, 0, 1, 0, old_state, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        self.perfinfo(5, 36, ticks, &fields);
    }

    fn pointer(&self, value: u64) -> Vec<u8> {
        value.to_le_bytes()[..self.pointer_bytes].to_vec()
    }
}

/// UTF-16 with a terminator.
pub fn wide(text: &str) -> Vec<u8> {
    text.encode_utf16().chain([0]).flat_map(u16::to_le_bytes).collect()
}

/// Plain LZ77 (MS-XCA 2.3): a flag word before 32 literals or matches; the last place with the same four
/// bytes is the candidate for a match.
fn xpress(bytes: &[u8]) -> Vec<u8> {
    /// Farthest match, and longest one: longer runs are divided.
    const FARTHEST: usize = 8_192;
    const LONGEST: usize = 60_000;
    let mut last = vec![usize::MAX; 1 << 14];
    let (mut out, mut at) = (Vec::with_capacity(bytes.len()), 0);
    // Where the half byte of the last long match is.
    let mut half: Option<usize> = None;
    let hash = |at: usize| {
        let four = u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
        (four.wrapping_mul(0x9e37_79b1) >> 18) as usize
    };
    while at < bytes.len() {
        let flags_at = out.len();
        let mut flags = 0_u32;
        out.extend([0; 4]);
        for bit in (0..32).rev() {
            let Some(&byte) = bytes.get(at) else {
                // What is after the end is marked as a match.
                flags |= 1 << bit;
                continue;
            };
            let mut length = 0;
            let mut offset = 0;
            if at + 4 <= bytes.len() {
                let slot = &mut last[hash(at)];
                if *slot != usize::MAX && at - *slot <= FARTHEST {
                    offset = at - *slot;
                    let same = bytes[*slot..].iter().zip(&bytes[at..]);
                    length = same.take(LONGEST).take_while(|(a, b)| a == b).count();
                }
                *slot = at;
            }
            if length < 3 {
                out.push(byte);
                at += 1;
                continue;
            }
            flags |= 1 << bit;
            let short = (length - 3).min(7);
            out.extend((((offset - 1) << 3 | short) as u16).to_le_bytes());
            if short == 7 {
                let rest = length - 10;
                let nibble = rest.min(15) as u8;
                match half.take() {
                    Some(place) => out[place] |= nibble << 4,
                    None => {
                        half = Some(out.len());
                        out.push(nibble);
                    }
                }
                if nibble == 15 {
                    let rest = rest - 15;
                    if rest < 255 {
                        out.push(rest as u8);
                    } else {
                        out.push(255);
                        out.extend(((length - 3) as u16).to_le_bytes());
                    }
                }
            }
            at += length;
        }
        out[flags_at..flags_at + 4].copy_from_slice(&flags.to_le_bytes());
    }
    out
}

/// Literals only: 512 codes of 9 bits, so that the code of a byte is its value.
fn xpress_huffman(bytes: &[u8]) -> Vec<u8> {
    assert!(bytes.len() <= 65_536, "one block");
    let mut out = vec![0x99; 256];
    let bits =
        bytes.iter().flat_map(|&byte| (0..9).rev().map(move |bit| u16::from(byte) >> bit & 1));
    let bits: Vec<u16> = bits.collect();
    for word in bits.chunks(16) {
        let value = word.iter().fold(0, |value, bit| value << 1 | bit) << (16 - word.len());
        out.extend(value.to_le_bytes());
    }
    out.extend([0; 4]);
    out
}

/// Chunks that are not compressed.
fn lznt1(bytes: &[u8]) -> Vec<u8> {
    let chunk = |chunk: &[u8]| {
        let header = 0x3000 | (chunk.len() as u16 - 1);
        [&header.to_le_bytes()[..], chunk].concat()
    };
    bytes.chunks(4_096).flat_map(chunk).collect()
}
