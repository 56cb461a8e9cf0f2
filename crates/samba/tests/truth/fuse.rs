//! A file system in memory that waits before it answers, and records how long it waited.
//!
//! Below a share it is the slow disk whose time the slices must show. One folder, files by name; the
//! kernel queries it each time, although it could cache.

use std::ffi::OsStr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime};

use fuser::{
    BackgroundSession, FileAttr, FileType, Filesystem, KernelConfig, MountOption, ReplyAttr,
    ReplyCreate, ReplyData, ReplyEmpty, ReplyEntry, ReplyOpen, ReplyWrite, Request, TimeOrNow,
};

const ROOT: u64 = 1;
/// Each pread64 is a read of the file system.
const DIRECT_IO: u32 = 1;
const NEVER: Duration = Duration::ZERO;
const NO_SUCH_FILE: i32 = 2;

/// Delays of the file system, ns, and the number and the shortest duration of its waits.
#[derive(Default)]
pub struct Waits {
    delay: AtomicU64,
    /// For names, attributes, opens.
    pub files: Waited,
    /// For reads and writes.
    pub io: Waited,
    /// For flushes.
    pub flush: Waited,
}

#[derive(Default)]
pub struct Waited {
    count: AtomicU64,
    /// The shortest, ns.
    least: AtomicU64,
}

impl Waited {
    /// Number of waits since the last call, and the shortest wait of all, ns.
    pub fn take(&self) -> (u64, u64) {
        (self.count.swap(0, Ordering::SeqCst), self.least.load(Ordering::SeqCst))
    }
}

impl Waits {
    pub fn set(&self, delay: Duration) {
        self.delay.store(delay.as_nanos() as u64, Ordering::SeqCst);
    }

    fn wait(&self, waited: &Waited) {
        let delay = self.delay.load(Ordering::SeqCst);
        if delay > 0 {
            let begin = Instant::now();
            std::thread::sleep(Duration::from_nanos(delay));
            let ns = begin.elapsed().as_nanos() as u64;
            let least = |least| Some(if least == 0 { ns } else { ns.min(least) });
            let _ = waited.least.fetch_update(Ordering::SeqCst, Ordering::SeqCst, least);
            waited.count.fetch_add(1, Ordering::SeqCst);
        }
    }
}

/// The file system while it is mounted.
pub struct Mounted {
    pub waits: Arc<Waits>,
    _session: BackgroundSession,
}

/// Mounts it; `None`, with a message, where that is not possible.
pub fn mount(place: &Path) -> Option<Mounted> {
    let waits = Arc::new(Waits::default());
    let slow = Slow { waits: waits.clone(), files: Vec::new() };
    let options = [MountOption::AllowOther, MountOption::FSName("smbscope-slow".into())];
    match fuser::spawn_mount2(slow, place, &options) {
        Ok(session) => Some(Mounted { waits, _session: session }),
        Err(error) => {
            smbscope_testing::skip!("no file system of one's own (FUSE) here: {error}");
            None
        }
    }
}

struct Slow {
    waits: Arc<Waits>,
    /// Inodes of files follow the root's.
    files: Vec<(String, Vec<u8>)>,
}

impl Slow {
    fn file(&mut self, ino: u64) -> Option<&mut (String, Vec<u8>)> {
        self.files.get_mut((ino - ROOT).checked_sub(1)? as usize)
    }

    fn find(&mut self, name: &OsStr) -> Option<FileAttr> {
        let place = self.files.iter().position(|(own, _)| OsStr::new(own) == name)?;
        self.attributes(ROOT + 1 + place as u64)
    }

    fn attributes(&mut self, ino: u64) -> Option<FileAttr> {
        let size = match ino {
            ROOT => 0,
            _ => self.file(ino)?.1.len() as u64,
        };
        let time = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000);
        Some(FileAttr {
            ino,
            size,
            blocks: size.div_ceil(512),
            atime: time,
            mtime: time,
            ctime: time,
            crtime: time,
            kind: if ino == ROOT { FileType::Directory } else { FileType::RegularFile },
            perm: 0o777,
            nlink: 1,
            uid: 0,
            gid: 0,
            rdev: 0,
            blksize: 4096,
            flags: 0,
        })
    }
}

impl Filesystem for Slow {
    fn init(&mut self, _: &Request<'_>, _: &mut KernelConfig) -> Result<(), i32> {
        // The wait should be the delay, not a busy machine.
        let _ = rustix::process::setpriority_process(None, -15);
        Ok(())
    }

    fn lookup(&mut self, _: &Request<'_>, _: u64, name: &OsStr, reply: ReplyEntry) {
        self.waits.wait(&self.waits.files);
        match self.find(name) {
            Some(attributes) => reply.entry(&NEVER, &attributes, 0),
            None => reply.error(NO_SUCH_FILE),
        }
    }

    fn getattr(&mut self, _: &Request<'_>, ino: u64, _: Option<u64>, reply: ReplyAttr) {
        self.waits.wait(&self.waits.files);
        match self.attributes(ino) {
            Some(attributes) => reply.attr(&NEVER, &attributes),
            None => reply.error(NO_SUCH_FILE),
        }
    }

    fn setattr(
        &mut self,
        _: &Request<'_>,
        ino: u64,
        _: Option<u32>,
        _: Option<u32>,
        _: Option<u32>,
        size: Option<u64>,
        _: Option<TimeOrNow>,
        _: Option<TimeOrNow>,
        _: Option<SystemTime>,
        _: Option<u64>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<u32>,
        reply: ReplyAttr,
    ) {
        self.waits.wait(&self.waits.files);
        if let (Some(size), Some((_, bytes))) = (size, self.file(ino)) {
            bytes.resize(size as usize, 0);
        }
        match self.attributes(ino) {
            Some(attributes) => reply.attr(&NEVER, &attributes),
            None => reply.error(NO_SUCH_FILE),
        }
    }

    fn open(&mut self, _: &Request<'_>, _: u64, _: i32, reply: ReplyOpen) {
        self.waits.wait(&self.waits.files);
        reply.opened(0, DIRECT_IO);
    }

    fn create(
        &mut self,
        _: &Request<'_>,
        _: u64,
        name: &OsStr,
        _: u32,
        _: u32,
        _: i32,
        reply: ReplyCreate,
    ) {
        self.waits.wait(&self.waits.files);
        self.files.push((name.to_string_lossy().into_owned(), Vec::new()));
        match self.find(name) {
            Some(attributes) => reply.created(&NEVER, &attributes, 0, 0, DIRECT_IO),
            None => reply.error(NO_SUCH_FILE),
        }
    }

    fn read(
        &mut self,
        _: &Request<'_>,
        ino: u64,
        _: u64,
        offset: i64,
        size: u32,
        _: i32,
        _: Option<u64>,
        reply: ReplyData,
    ) {
        self.waits.wait(&self.waits.io);
        let Some((_, bytes)) = self.file(ino) else { return reply.error(NO_SUCH_FILE) };
        let from = (offset as usize).min(bytes.len());
        let to = (from + size as usize).min(bytes.len());
        reply.data(&bytes[from..to]);
    }

    fn write(
        &mut self,
        _: &Request<'_>,
        ino: u64,
        _: u64,
        offset: i64,
        data: &[u8],
        _: u32,
        _: i32,
        _: Option<u64>,
        reply: ReplyWrite,
    ) {
        self.waits.wait(&self.waits.io);
        let Some((_, bytes)) = self.file(ino) else { return reply.error(NO_SUCH_FILE) };
        let end = offset as usize + data.len();
        bytes.resize(bytes.len().max(end), 0);
        bytes[offset as usize..end].copy_from_slice(data);
        reply.written(data.len() as u32);
    }

    fn flush(&mut self, _: &Request<'_>, _: u64, _: u64, _: u64, reply: ReplyEmpty) {
        reply.ok();
    }

    fn fsync(&mut self, _: &Request<'_>, _: u64, _: u64, _: bool, reply: ReplyEmpty) {
        self.waits.wait(&self.waits.flush);
        reply.ok();
    }
}
