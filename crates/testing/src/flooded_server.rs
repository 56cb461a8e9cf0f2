//! A backup server whose processors are flooded by receive work, as event trace logs.
//!
//! Synthetic: no such log was recorded. The counts and totals are those that a case study published: a server of
//! two sockets with six cores each and hyper-threading (24 processors) receives backups for 10 seconds. DPCs of
//! ndis.sys hold processors 0, 2, 4 and 6; the team of the network adapters is removed first, a driver that
//! inspects packets second. storport.sys has the same work throughout. Durations, stacks and the other processors
//! are made up: a fixed pseudo-random sequence, scaled so that sums are exact.

use std::io::{self, Write};

use crate::etl::{Buffer, Builder, Compression};

/// Processors of the server.
pub const CPUS: u16 = 24;
/// The processors that the DPCs of ndis.sys hold.
pub const FLOODED: [u16; 4] = [0, 2, 4, 6];
/// Its network adapters, two ports each of three cards.
const ADAPTERS: i32 = 6;
/// Ticks of a second: the clock counts units of 100 ns.
const SECOND: i64 = 10_000_000;
/// A sample of each processor in this time.
const SAMPLE_INTERVAL: i64 = 10_000;
const BUFFER_BYTES: usize = 65_536;

/// What the server was like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// With a team of network adapters, and with the inspection of packets.
    Before,
    /// Without the team.
    WithoutTeam,
    /// Without both.
    WithoutBoth,
}

impl Stage {
    /// All stages, in the order of the case study.
    pub const ALL: [Stage; 3] = [Stage::Before, Stage::WithoutTeam, Stage::WithoutBoth];

    /// DPCs of ndis.sys in 10 s, and their time in ticks.
    pub fn ndis(self) -> (u64, i64) {
        match self {
            Stage::Before => (163_230, 368_000_000),
            Stage::WithoutTeam => (55_000, 375_000_000),
            Stage::WithoutBoth => (127_000, 114_000_000),
        }
    }

    /// The file's name.
    pub fn file_name(self) -> &'static str {
        match self {
            Stage::Before => "flood.etl",
            Stage::WithoutTeam => "without-team.etl",
            Stage::WithoutBoth => "after.etl",
        }
    }

    /// What DPCs call, from the outermost frame inwards, and how many of 100 samples hit that frame.
    fn chain(self) -> Vec<(u64, u32)> {
        let begin = [(KERNEL + 0x1f00, 3), (NDIS + 0x2100, 3), (ADAPTER + 0x1100, 6)];
        let team = [(NDIS + 0x4200, 4), (TEAM + 0x3300, 22)];
        let inspection = [(NDIS + 0x4400, 4), (INSPECTION + 0x7100, 40)];
        let end = [(NDIS + 0x4600, 3), (TCPIP + 0x5500, 11), (NETIO + 0x1200, 4)];
        let mut chain = begin.to_vec();
        if self == Stage::Before {
            chain.extend(team);
        }
        if self != Stage::WithoutBoth {
            chain.extend(inspection);
        }
        chain.extend(end);
        chain
    }
}

/// DPCs of storport.sys in 10 s, and their time in ticks.
pub const STORPORT: (u64, i64) = (123_000, 10_000_000);

const KERNEL: u64 = 0xffff_f800_0000_0000;
const NDIS: u64 = 0xffff_f800_1000_0000;
const ADAPTER: u64 = 0xffff_f800_2000_0000;
const TEAM: u64 = 0xffff_f800_3000_0000;
const INSPECTION: u64 = 0xffff_f800_4000_0000;
const TCPIP: u64 = 0xffff_f800_5000_0000;
const NETIO: u64 = 0xffff_f800_6000_0000;
const STORAGE: u64 = 0xffff_f800_7000_0000;
const SMB: u64 = 0xffff_f800_8000_0000;
const IMAGE_STEP: u64 = 0x1000_0000;

const IMAGES: [(&str, &str); 9] = [
    (r"\SystemRoot\system32\ntoskrnl.exe", "ntkrnlmp.pdb"),
    (r"\SystemRoot\System32\drivers\ndis.sys", "ndis.pdb"),
    (r"\SystemRoot\System32\drivers\ixn68x64.sys", "ixn68x64.pdb"),
    (r"\SystemRoot\System32\drivers\NdisImPlatform.sys", "NdisImPlatform.pdb"),
    (r"\SystemRoot\System32\drivers\pktinspect.sys", "pktinspect.pdb"),
    (r"\SystemRoot\System32\drivers\tcpip.sys", "tcpip.pdb"),
    (r"\SystemRoot\System32\drivers\NETIO.SYS", "netio.pdb"),
    (r"\SystemRoot\System32\drivers\storport.sys", "storport.pdb"),
    (r"\SystemRoot\System32\drivers\srv2.sys", "srv2.pdb"),
];

/// A log that is made.
#[derive(Clone, Copy, Debug)]
pub struct Recording {
    /// What the server was like.
    pub stage: Stage,
    /// How long it was recorded. Counts and totals are those of 10 s, repeated.
    pub tens_of_seconds: u64,
    /// How its buffers are compressed.
    pub compression: Compression,
}

impl Recording {
    /// Ten seconds, compressed as Windows compresses by default.
    pub fn from_stage(stage: Stage) -> Recording {
        Recording { stage, tens_of_seconds: 1, compression: Compression::Xpress }
    }

    /// Writes the log; returns the number of its events.
    ///
    /// # Errors
    ///
    /// Those of `out`.
    pub fn write(self, out: &mut impl Write) -> io::Result<u64> {
        let builder = Builder {
            cpus: u32::from(CPUS),
            compression: self.compression,
            buffer_bytes: BUFFER_BYTES,
            ..Builder::default()
        };
        out.write_all(&builder.head(0))?;
        let mut log = Log {
            out,
            buffers: (0..CPUS).map(|cpu| builder.buffer(cpu)).collect(),
            events: 1,
            builder,
        };
        log.begin()?;
        let start = log.builder.start_ticks;
        for ten in 0..self.tens_of_seconds {
            let start = start + 10 * SECOND * ten as i64;
            let mut processors: Vec<_> =
                (0..CPUS).map(|cpu| Processor::new(cpu, self.stage, start)).collect();
            // All processors advance together, so that the file has their buffers in the order of time.
            for step in 1..=100 {
                for processor in &mut processors {
                    processor.until(start + step * SECOND / 10, &mut log)?;
                }
            }
        }
        log.end(start + 10 * SECOND * self.tens_of_seconds as i64, self.stage)
    }
}

/// The log while it is written.
struct Log<'a, W> {
    out: &'a mut W,
    builder: Builder,
    /// The buffer of each processor that is filled.
    buffers: Vec<Buffer>,
    events: u64,
}

impl<W: Write> Log<'_, W> {
    /// The buffer of a processor, with room for one more event.
    fn of(&mut self, cpu: u16) -> io::Result<&mut Buffer> {
        self.events += 1;
        let buffer = &mut self.buffers[usize::from(cpu)];
        if buffer.filled_bytes() + 4_096 > BUFFER_BYTES {
            let full = std::mem::replace(buffer, self.builder.buffer(cpu));
            self.out.write_all(&self.builder.bytes(&full))?;
        }
        Ok(buffer)
    }

    fn begin(&mut self) -> io::Result<()> {
        let start = self.builder.start_ticks;
        let interval = [[0; 4], 10_000_u32.to_le_bytes(), [0; 4]].concat();
        self.of(1)?.perfinfo(15, 73, start, &interval);
        self.of(1)?.processors(start, 2_600, u32::from(CPUS), (1 << CPUS) - 1);
        self.of(1)?.nodes(start, &[0xfff, 0xfff << 12]);
        for place in 0..ADAPTERS {
            let instance =
                format!(r"PCI\VEN_8086&DEV_10FB&SUBSYS_7A118086&REV_01\A0369FFFFF{place:06X}00");
            let name = match place {
                0 => "Intel(R) Ethernet Server Adapter X520-2".to_owned(),
                _ => format!("Intel(R) Ethernet Server Adapter X520-2 #{}", place + 1),
            };
            self.of(1)?.network_adapter(start, &instance, &name, "ixgbn", -10 - place);
        }
        for cpu in 0..CPUS {
            self.of(1)?.thread(3, start, 4, worker(cpu));
        }
        self.of(1)?.process(3, start, 4, &[], "System");
        Ok(())
    }

    /// Images and stacks, as the recorder writes them when it stops.
    fn end(mut self, ticks: i64, stage: Stage) -> io::Result<u64> {
        for (base, (path, pdb)) in (KERNEL..).step_by(IMAGE_STEP as usize).zip(IMAGES) {
            self.of(1)?.symbols(ticks, base, 0, pdb);
            self.of(1)?.image((20, 4), ticks, base, 4, path);
        }
        let chain = stage.chain();
        for depth in 1..=chain.len() {
            let mut frames: Vec<_> = chain[..depth].iter().map(|&(address, _)| address).collect();
            frames.reverse();
            self.of(1)?.stack_entry(36, ticks, stack_key(depth), &frames);
        }
        let storage = [STORAGE + 0x3000, KERNEL + 0x1f00];
        self.of(1)?.stack_entry(36, ticks, STORAGE_STACK, &storage);
        let smb = [SMB + 0x1900, KERNEL + 0x2200];
        self.of(1)?.stack_entry(36, ticks, SMB_STACK, &smb);
        for buffer in &self.buffers {
            self.out.write_all(&self.builder.bytes(buffer))?;
        }
        Ok(self.events)
    }
}

fn worker(cpu: u16) -> u32 {
    500 + 4 * u32::from(cpu)
}

/// Keys of the stacks of the chain by depth, of storage, and of the SMB server.
fn stack_key(depth: usize) -> u64 {
    0xffff_9000_0000_0000 + depth as u64 * 0x40
}
const STORAGE_STACK: u64 = 0xffff_9000_0001_0000;
const SMB_STACK: u64 = 0xffff_9000_0001_0040;

/// One processor for 10 s: its DPCs one after the other, and what it does between them.
struct Processor {
    cpu: u16,
    stage: Stage,
    now: i64,
    end: i64,
    random: u64,
    /// DPCs that are left, and their time and that between them.
    left: u64,
    left_ticks: i64,
    gaps: i64,
    next_sample: i64,
    next_switch: i64,
    is_idle: bool,
}

impl Processor {
    fn new(cpu: u16, stage: Stage, start: i64) -> Processor {
        // Storage's interrupts belong to processors 8 and higher, network's to the flooded ones.
        let share = |(count, ticks): (u64, i64), place: u64, of: u64| {
            let upto = |place: u64| (count * place / of, ticks * place as i64 / of as i64);
            let (begin, end) = (upto(place), upto(place + 1));
            (end.0 - begin.0, end.1 - begin.1)
        };
        let (left, left_ticks) = match FLOODED.iter().position(|&flooded| flooded == cpu) {
            Some(place) => share(stage.ndis(), place as u64, FLOODED.len() as u64),
            None if cpu >= 8 => share(STORPORT, u64::from(cpu) - 8, 16),
            None => (0, 0),
        };
        Processor {
            cpu,
            stage,
            now: start,
            end: start + 10 * SECOND,
            random: u64::from(cpu) + 1,
            left,
            left_ticks,
            gaps: 10 * SECOND - left_ticks,
            next_sample: start + 1 + i64::from(cpu) * 100,
            next_switch: start + 2,
            is_idle: true,
        }
    }

    /// A number from 0 to `below - 1` (xorshift).
    fn random(&mut self, below: u64) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        (self.random >> 11) % below.max(1)
    }

    /// A part of `ticks` for one of `left` that share it: the mean times a factor from 1/4 to 7/4, or rarely 4,
    /// and for the last one what is left.
    fn part(&mut self, ticks: i64, left: u64) -> i64 {
        if left <= 1 {
            return ticks;
        }
        let mean = ticks / left as i64;
        let quarter = match self.random(50) {
            0 => mean.saturating_mul(4),
            _ => mean * (25 + self.random(151) as i64) / 100,
        };
        // Each of the others needs one tick.
        quarter.clamp(1, (ticks - (left as i64 - 1)).max(1))
    }

    fn until<W: Write>(&mut self, limit: i64, log: &mut Log<'_, W>) -> io::Result<()> {
        let limit = limit.min(self.end);
        while self.now < limit {
            if self.left == 0 {
                self.between(self.end.min(limit), log)?;
                continue;
            }
            let gap = self.part(self.gaps, self.left + 1).min(self.gaps);
            let length = self.part(self.left_ticks, self.left);
            self.gaps -= gap;
            self.left_ticks -= length;
            self.left -= 1;
            self.between(self.now + gap, log)?;
            self.dpc(length, log)?;
        }
        Ok(())
    }

    /// What happens until `end` between DPCs: context switches, samples, and the interrupt that comes before
    /// every fourth DPC of the network.
    fn between<W: Write>(&mut self, end: i64, log: &mut Log<'_, W>) -> io::Result<()> {
        loop {
            let next = self.next_sample.min(self.next_switch);
            if next >= end {
                break;
            }
            if self.next_switch <= self.next_sample {
                self.switch(log)?;
            } else {
                let at = self.next_sample;
                let (address, thread, key) = if self.is_idle {
                    (KERNEL + 0x10, 0, None)
                } else {
                    (SMB + 0x1900, worker(self.cpu), Some(SMB_STACK))
                };
                self.sample(at, address, thread, 0, key, log)?;
            }
        }
        let is_network = FLOODED.contains(&self.cpu) && self.left > 0;
        if is_network && end - self.now > 40 && self.random(4) == 0 {
            let cpu = self.cpu;
            let vector = [1, 0x61 + cpu as u8, 0, 0, cpu as u8, 0, 0, 0];
            log.of(cpu)?.run(50, end - 35, end - 5, ADAPTER + 0x1040, &vector);
        }
        self.now = end;
        Ok(())
    }

    fn dpc<W: Write>(&mut self, length: i64, log: &mut Log<'_, W>) -> io::Result<()> {
        let end = self.now + length;
        let is_network = FLOODED.contains(&self.cpu);
        let thread = if self.is_idle { 0 } else { worker(self.cpu) };
        while self.next_sample < end {
            let at = self.next_sample;
            let (address, key) =
                if is_network { self.in_chain() } else { (STORAGE + 0x3000, STORAGE_STACK) };
            self.sample(at, address, thread, 1, Some(key), log)?;
        }
        // A processor does not switch within a DPC.
        self.next_switch = self.next_switch.max(end + 1);
        let routine = if is_network { NDIS + 0x2100 } else { STORAGE + 0x3000 };
        log.of(self.cpu)?.run(68, self.now, end, routine, &[]);
        self.now = end;
        Ok(())
    }

    /// An address within the chain of calls, and the key of the stack that ends there.
    fn in_chain(&mut self) -> (u64, u64) {
        let chain = self.stage.chain();
        let all: u32 = chain.iter().map(|&(_, weight)| weight).sum();
        let mut hit = self.random(u64::from(all)) as u32;
        for (depth, &(address, weight)) in chain.iter().enumerate() {
            if hit < weight {
                return (address, stack_key(depth + 1));
            }
            hit -= weight;
        }
        (KERNEL, stack_key(1))
    }

    fn sample<W: Write>(
        &mut self,
        at: i64,
        address: u64,
        thread: u32,
        flags: u8,
        key: Option<u64>,
        log: &mut Log<'_, W>,
    ) -> io::Result<()> {
        self.next_sample = at + SAMPLE_INTERVAL;
        log.of(self.cpu)?.sample(at, address, thread, flags);
        if let Some(key) = key {
            log.of(self.cpu)?.stack(37, at + 1, at, thread, &[key]);
        }
        Ok(())
    }

    fn switch<W: Write>(&mut self, log: &mut Log<'_, W>) -> io::Result<()> {
        let at = self.next_switch;
        let (old, new) = if self.is_idle { (0, worker(self.cpu)) } else { (worker(self.cpu), 0) };
        log.of(self.cpu)?.switch(at, old, new, 5);
        self.is_idle = !self.is_idle;
        // A worker runs for 1.5 of 5 ms. On a flooded processor it is never done.
        let is_flooded = FLOODED.contains(&self.cpu) && self.stage != Stage::WithoutBoth;
        self.next_switch = at
            + match (self.is_idle, is_flooded) {
                (true, _) => 35_000,
                (false, false) => 15_000,
                (false, true) => 20 * SECOND,
            };
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_add_up_to_the_published_figures() {
        for stage in Stage::ALL {
            let all = FLOODED.map(|cpu| Processor::new(cpu, stage, 0));
            assert_eq!(all.iter().map(|one| one.left).sum::<u64>(), stage.ndis().0);
            assert_eq!(all.iter().map(|one| one.left_ticks).sum::<i64>(), stage.ndis().1);
        }
    }
}
