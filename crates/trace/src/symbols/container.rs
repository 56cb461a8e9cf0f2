//! The containers of PDB files: numbered streams of bytes.
//!
//! MSF is a file of pages with a directory of the pages of each stream (LLVM, "The MSF File Format",
//! and github.com/microsoft/microsoft-pdb). MSFZ is its compressed form, in which Microsoft's symbol
//! server delivers large PDB files ("MSFZ Container Specification" in github.com/microsoft/pdb-rs).
//!
//! Own code, because the readers of crates ms-pdb-msf and ms-pdb-msfz allocate by lengths that they
//! do not check; tests use their writers.

use super::Unreadable;
use smbscope_wire::read::{slice_at, u32_at, u64_at};
use std::io::{Read, Seek, SeekFrom};

const MSF_MAGIC: &[u8; 32] = b"Microsoft C/C++ MSF 7.00\r\n\x1aDS\0\0\0";
const MSFZ_MAGIC: &[u8; 32] = b"Microsoft MSFZ Container\r\n\x1aALD\0\0";

/// Largest directory, stream and compressed piece that are read.
const DIRECTORY_BYTES_MAX: u32 = 32 << 20;
const STREAM_BYTES_MAX: u32 = 256 << 20;
const CHUNK_BYTES_MAX: u32 = 64 << 20;
/// Most bytes that are decompressed of one file: a damaged directory can name pieces again and again.
const DECOMPRESSED_BYTES_MAX: u64 = 1 << 30;
/// Size of a stream that does not exist.
const NO_STREAM: u32 = u32::MAX;

/// A container that was opened.
#[derive(Debug)]
pub struct Container<R> {
    source: R,
    file_bytes: u64,
    decompressed_bytes: u64,
    streams: Streams,
}

#[derive(Debug)]
enum Streams {
    /// Size of each stream and its pages.
    Pages { page_bytes: u32, streams: Vec<(u32, Vec<u32>)> },
    /// Fragments of each stream, and the compressed pieces that they are in.
    Fragments { streams: Vec<Vec<Fragment>>, chunks: Vec<Chunk>, cached: Option<(u32, Vec<u8>)> },
}

#[derive(Clone, Copy, Debug)]
struct Fragment {
    length: u32,
    /// Bit 63: in the piece with the number in bits 32 to 62, at the offset in bits 0 to 31. Without
    /// it, an offset in the file.
    location: u64,
}

#[derive(Clone, Copy, Debug)]
struct Chunk {
    offset: u64,
    compression: u32,
    compressed: u32,
    uncompressed: u32,
}

impl<R: Read + Seek> Container<R> {
    /// Reads the directory of a file.
    pub fn open(mut source: R) -> Result<Container<R>, Unreadable> {
        let file_bytes = source.seek(SeekFrom::End(0))?;
        let streams = Streams::Pages { page_bytes: 0, streams: Vec::new() };
        let mut container = Container { source, file_bytes, decompressed_bytes: 0, streams };
        let head = container.bytes(0, file_bytes.min(80) as u32)?;
        if head.starts_with(MSF_MAGIC) {
            container.open_msf(&head)?;
        } else if head.starts_with(MSFZ_MAGIC) {
            container.open_msfz(&head)?;
        } else {
            return Err(Unreadable::Damaged("not a PDB file"));
        }
        Ok(container)
    }

    /// A stream, whole.
    pub fn stream(&mut self, number: u16) -> Result<Vec<u8>, Unreadable> {
        const MISSING: Unreadable = Unreadable::Damaged("a stream is missing");
        let number = usize::from(number);
        match &self.streams {
            Streams::Pages { page_bytes, streams } => {
                let (length, pages) = streams.get(number).ok_or(MISSING)?;
                let (length, page_bytes, pages) = (*length, *page_bytes, pages.clone());
                self.pages(&pages, page_bytes, length)
            }
            Streams::Fragments { streams, .. } => {
                let fragments = streams.get(number).ok_or(MISSING)?.clone();
                self.fragments(&fragments)
            }
        }
    }

    fn bytes(&mut self, offset: u64, length: u32) -> Result<Vec<u8>, Unreadable> {
        let end = offset.checked_add(u64::from(length));
        if end.is_none_or(|end| end > self.file_bytes) {
            return Err(Unreadable::Damaged("it is cut off"));
        }
        self.source.seek(SeekFrom::Start(offset))?;
        let mut out = vec![0; length as usize];
        self.source.read_exact(&mut out)?;
        Ok(out)
    }

    /// Offset 32: size of a page, the active free page map, number of pages, size of the directory,
    /// a reserved field, and the pages that hold the numbers of the directory's pages.
    fn open_msf(&mut self, head: &[u8]) -> Result<(), Unreadable> {
        const HEAD: Unreadable = Unreadable::Damaged("its header is damaged");
        let page_bytes = u32_at(head, 32).ok_or(HEAD)?;
        let directory_bytes = u32_at(head, 44).ok_or(HEAD)?;
        if !page_bytes.is_power_of_two() || !(512..=65_536).contains(&page_bytes) {
            return Err(HEAD);
        }
        if directory_bytes > DIRECTORY_BYTES_MAX {
            return Err(Unreadable::Damaged("its directory is too large"));
        }
        let map_bytes = 4 * directory_bytes.div_ceil(page_bytes);
        let map_pages = map_bytes.div_ceil(page_bytes);
        if 4 * map_pages > page_bytes - 52 {
            return Err(HEAD);
        }
        let map_pages = words(&self.bytes(52, 4 * map_pages)?);
        let map = words(&self.pages(&map_pages, page_bytes, map_bytes)?);
        let directory = words(&self.pages(&map, page_bytes, directory_bytes)?);
        let mut rest = directory.iter().copied();
        let count = rest.next().ok_or(HEAD)?.min(u32::from(u16::MAX)) as usize;
        let lengths: Vec<u32> = rest.by_ref().take(count).collect();
        let streams = lengths.into_iter().map(|length| {
            let length = if length == NO_STREAM { 0 } else { length };
            (length, rest.by_ref().take(length.div_ceil(page_bytes) as usize).collect())
        });
        let streams = streams.collect();
        self.streams = Streams::Pages { page_bytes, streams };
        Ok(())
    }

    fn pages(
        &mut self,
        pages: &[u32],
        page_bytes: u32,
        length: u32,
    ) -> Result<Vec<u8>, Unreadable> {
        if length > STREAM_BYTES_MAX {
            return Err(Unreadable::Damaged("a stream is too large"));
        }
        if pages.len() < length.div_ceil(page_bytes) as usize {
            return Err(Unreadable::Damaged("its directory is damaged"));
        }
        let mut out = Vec::new();
        let mut left = length;
        for &page in pages {
            let part = left.min(page_bytes);
            if part == 0 {
                break;
            }
            out.extend(self.bytes(u64::from(page) * u64::from(page_bytes), part)?);
            left -= part;
        }
        Ok(out)
    }

    /// Offset 32: version, offset of the directory, offset of the table of pieces (8 bytes each);
    /// number of streams, compression and both sizes of the directory, number of pieces, size of
    /// their table (4 bytes each).
    fn open_msfz(&mut self, head: &[u8]) -> Result<(), Unreadable> {
        const HEAD: Unreadable = Unreadable::Damaged("its header is damaged");
        let long = |at| u64_at(head, at).ok_or(HEAD);
        let word = |at| u32_at(head, at).ok_or(HEAD);
        if long(32)? != 0 {
            return Err(Unreadable::Damaged("its version of MSFZ is not known"));
        }
        let directory = Chunk {
            offset: long(40)?,
            compression: word(60)?,
            compressed: word(64)?,
            uncompressed: word(68)?,
        };
        let (chunks_at, streams, chunks_bytes) = (long(48)?, word(56)?, word(76)?);
        if chunks_bytes > DIRECTORY_BYTES_MAX || directory.uncompressed > DIRECTORY_BYTES_MAX {
            return Err(Unreadable::Damaged("its directory is too large"));
        }
        let table = match chunks_bytes {
            0 => Vec::new(),
            _ => self.bytes(chunks_at, chunks_bytes)?,
        };
        let chunks = table.chunks_exact(20).filter_map(|entry| {
            Some(Chunk {
                offset: u64_at(entry, 0)?,
                compression: u32_at(entry, 8)?,
                compressed: u32_at(entry, 12)?,
                uncompressed: u32_at(entry, 16)?,
            })
        });
        let chunks = chunks.collect();
        let directory = self.chunk(directory)?;
        let mut words = words(&directory).into_iter();
        let mut all = Vec::new();
        for _ in 0..streams.min(u32::from(u16::MAX)) {
            let mut fragments = Vec::new();
            loop {
                let length = words.next().ok_or(Unreadable::Damaged("its directory is damaged"))?;
                if length == 0 || length == NO_STREAM {
                    break;
                }
                let (Some(low), Some(high)) = (words.next(), words.next()) else {
                    return Err(Unreadable::Damaged("its directory is damaged"));
                };
                let location = u64::from(high) << 32 | u64::from(low);
                fragments.push(Fragment { length, location });
            }
            all.push(fragments);
        }
        self.streams = Streams::Fragments { streams: all, chunks, cached: None };
        Ok(())
    }

    fn fragments(&mut self, fragments: &[Fragment]) -> Result<Vec<u8>, Unreadable> {
        const COMPRESSED: u64 = 1 << 63;
        let length: u64 = fragments.iter().map(|fragment| u64::from(fragment.length)).sum();
        if length > u64::from(STREAM_BYTES_MAX) {
            return Err(Unreadable::Damaged("a stream is too large"));
        }
        let mut out = Vec::new();
        for fragment in fragments {
            let at = fragment.location & !COMPRESSED;
            if fragment.location & COMPRESSED == 0 {
                out.extend(self.bytes(at & ((1 << 48) - 1), fragment.length)?);
                continue;
            }
            let (number, at) = ((at >> 32) as u32, at as u32);
            let piece = self.cached(number)?;
            let part = slice_at(piece, at as usize, fragment.length as usize);
            out.extend(part.ok_or(Unreadable::Damaged("a stream is damaged"))?);
        }
        Ok(out)
    }

    /// A piece; the last one is kept, because streams follow each other in it.
    fn cached(&mut self, number: u32) -> Result<&[u8], Unreadable> {
        const MISSING: Unreadable = Unreadable::Damaged("a stream is missing");
        let Streams::Fragments { chunks, cached, .. } = &mut self.streams else {
            return Err(MISSING);
        };
        let is_there = cached.as_ref().is_some_and(|(cached, _)| *cached == number);
        let chunk = *chunks.get(number as usize).ok_or(MISSING)?;
        let mut piece = cached.take();
        if !is_there {
            piece = Some((number, self.chunk(chunk)?));
        }
        let Streams::Fragments { cached, .. } = &mut self.streams else { return Err(MISSING) };
        *cached = piece;
        cached.as_ref().map(|(_, piece)| piece.as_slice()).ok_or(MISSING)
    }

    fn chunk(&mut self, chunk: Chunk) -> Result<Vec<u8>, Unreadable> {
        if chunk.compressed.max(chunk.uncompressed) > CHUNK_BYTES_MAX {
            return Err(Unreadable::Damaged("a compressed piece is too large"));
        }
        self.decompressed_bytes += u64::from(chunk.uncompressed);
        if self.decompressed_bytes > DECOMPRESSED_BYTES_MAX {
            return Err(Unreadable::Damaged("its streams are too large"));
        }
        let raw = self.bytes(chunk.offset, chunk.compressed)?;
        let limit = u64::from(chunk.uncompressed);
        let mut out = Vec::new();
        match chunk.compression {
            0 => return Ok(raw),
            1 => zstd::Decoder::new(raw.as_slice())?.take(limit).read_to_end(&mut out)?,
            2 => flate2::read::DeflateDecoder::new(raw.as_slice())
                .take(limit)
                .read_to_end(&mut out)?,
            _ => return Err(Unreadable::Damaged("its compression is not known")),
        };
        if out.len() as u64 != limit {
            return Err(Unreadable::Damaged("a compressed piece is damaged"));
        }
        Ok(out)
    }
}

fn words(bytes: &[u8]) -> Vec<u32> {
    bytes.chunks_exact(4).filter_map(|word| u32_at(word, 0)).collect()
}
