#!/usr/bin/env python3
"""A folder mounted over itself that loses what was not synced when the plug is pulled, and knows what that was.

    losefs.py FOLDER MOUNTPOINT LOG [mode=honest|lies|ignores|torn|rename] [back=SECONDS]

A line on standard input pulls the plug: everything that is not on the disk of the model is undone. Then LOG has what was
undone, one line each: `lost ROUND LANE FILE BLOCK SEQUENCE SECTORS`, a Write (of crates/load/src/durability/block.rs: they
describe themselves) with the number of its sectors, `rename LANE VERSION`, and `named LANE VERSION`, the version that has
the name afterwards; and standard output gets a line.

What is on the disk: data that was synced (fsync, fdatasync, or a file opened with O_SYNC), or that is older than `back`
seconds, as a kernel writes back (without `back` never). Creating, renaming and removing a name is on the disk with the
next sync of any file, in order, as the journal of ext4 does it; a rename takes the data of its file with it (data=ordered).

mode: what is wrong with the model. `lies`: the disk acknowledges a sync from its cache, which it writes half a second
later. `ignores`: a sync does nothing. `torn`: a sync leaves the last Write half done, until the next sync. `rename`: a
rename is on the disk at once, and before the data. Needs libfuse 3 and the Python package mfusepy.
"""

import collections
import functools
import os
import resource
import struct
import sys
import threading
import time

import mfusepy as fuse

SECTOR = 512
LABEL = struct.Struct("<8s16sIHHIIQIII")
LIE = 0.5


def labels(data):
    """The Writes and sectors that data is made of."""
    for at in range(0, len(data) - SECTOR + 1, SECTOR):
        magic, _, round_, lane, _, file, block, sequence, _, sector, _ = LABEL.unpack_from(data, at)
        if magic == b"SMBSDURB":
            yield round_, lane, file, block, sequence, sector


class Undo:
    """Something that is not on the disk yet, and how it is undone."""

    def __init__(self, inode, undo, data=b"", rename=None, replaced=None):
        self.inode, self.undo, self.data, self.rename = inode, undo, data, rename
        self.replaced = replaced
        self.time = time.monotonic()


class Losing(fuse.Operations):
    use_ns = True

    def __init__(self, folder, log, mode="honest", back=None):
        self.folder, self.log, self.mode = folder, log, mode
        self.back = float(back) if back else None
        self.guard = threading.RLock()
        self.waiting = []  # not on the disk, in order
        self.lies = []  # when the disk writes what it acknowledged: the file, and up to when
        self.descriptors = {}  # by inode: undoing needs one, and the inode's number is not used again meanwhile
        self.sync_opened = set()
        self.named = {}  # by path: the version that was renamed to it
        threading.Thread(target=self.obey, daemon=True).start()

    def obey(self):
        for _ in sys.stdin:
            self.pull()
            print("pulled", flush=True)

    def at(self, path):
        return os.path.join(self.folder, path.lstrip("/"))

    # What is on the disk.

    def settle(self):
        """Writes back what is old, and what the disk lied about."""
        if self.back is not None:
            end = time.monotonic() - self.back
            for inode in {one.inode for one in self.waiting if one.time < end}:
                self.keep(lambda one: one.inode == inode and one.time < end and not one.rename)
        for due, inode, upto in list(self.lies):
            if due < time.monotonic():
                self.lies.remove((due, inode, upto))
                self.commit(inode, upto)

    def keep(self, is_kept):
        kept = [one for one in self.waiting if is_kept(one)]
        self.waiting = [one for one in self.waiting if not is_kept(one)]
        for one in kept:
            if one.replaced:
                os.unlink(one.replaced)

    def commit(self, inode, upto=None):
        """The data of a file is on the disk, and all names that were made before."""
        upto = time.monotonic() if upto is None else upto
        inodes = {inode} | {one.inode for one in self.waiting if one.rename and one.time <= upto}
        if self.mode == "rename":
            inodes = {inode}
        self.keep(lambda one: one.time <= upto and (one.inode in inodes or one.inode is None or one.rename is not None))

    def sync(self, inode):
        with self.guard:
            self.settle()
            if self.mode == "ignores":
                return
            if self.mode == "lies":
                now = time.monotonic()
                self.lies.append((now + LIE, inode, now))
                return
            if self.mode == "torn":
                writes = [one for one in self.waiting if one.inode == inode and one.data]
                self.commit(inode)
                if writes and len(writes[-1].data) > SECTOR:
                    self.waiting.append(self.second_half(writes[-1]))
                return
            self.commit(inode)

    def second_half(self, write):
        """The undoing of the second half of a Write alone."""
        half = len(write.data) // 2 // SECTOR * SECTOR
        old, fh, offset, size = write.undo.args
        put = functools.partial(put_back, old[half:], fh, offset + half, max(size, offset + half))
        return Undo(write.inode, put, write.data[half:])

    def pull(self):
        with self.guard:
            self.settle()
            lost, renames = collections.Counter(), []
            for one in reversed(self.waiting):
                one.undo()
                lost.update(label[:5] for label in labels(one.data))
                if one.rename:
                    renames.append(one.rename)
            self.waiting, self.lies = [], []
            with open(self.log, "w") as file:
                for write, sectors in lost.items():
                    print("lost", *write, sectors, file=file)
                for rename in renames:
                    print("rename", *rename, file=file)
                for version in filter(None, self.named.values()):
                    print("named", *version, file=file)
            self.named = {}
            for descriptor in self.descriptors.values():
                os.close(descriptor)
            self.descriptors = {}

    def descriptor(self, inode, path):
        if inode not in self.descriptors:
            self.descriptors[inode] = os.open(path, os.O_RDWR)
        return self.descriptors[inode]

    # The calls.

    def create(self, path, mode, fi=None):
        with self.guard:
            uid, gid, _ = fuse.fuse_get_context()
            is_new = not os.path.exists(self.at(path))
            handle = os.open(self.at(path), os.O_RDWR | os.O_CREAT, mode)
            if is_new:
                os.fchown(handle, uid, gid)
                place = self.at(path)
                self.waiting.append(Undo(None, lambda: os.path.exists(place) and os.unlink(place)))
            return self.opened(handle, fi)

    def open(self, path, fi):
        flags = fi if isinstance(fi, int) else fi.flags
        return self.opened(os.open(self.at(path), os.O_RDWR if flags & 3 else os.O_RDONLY), fi)

    def opened(self, handle, fi):
        flags = fi if isinstance(fi, int) else fi.flags
        if flags & os.O_SYNC:
            self.sync_opened.add(handle)
        if isinstance(fi, int):
            return handle
        fi.fh, fi.direct_io = handle, 1
        return 0

    def handle(self, fi):
        return fi if isinstance(fi, int) else fi.fh

    def write(self, path, data, offset, fi):
        fh = self.handle(fi)
        with self.guard:
            self.settle()
            st = os.fstat(fh)
            old = os.pread(fh, len(data), offset)
            descriptor = self.descriptor(st.st_ino, f"/proc/self/fd/{fh}")
            undo = functools.partial(put_back, old, descriptor, offset, st.st_size)
            self.waiting.append(Undo(st.st_ino, undo, bytes(data)))
            done = os.pwrite(fh, data, offset)
            if fh in self.sync_opened:
                self.sync(st.st_ino)
            return done

    def truncate(self, path, length, fi=None):
        with self.guard:
            place = self.at(path)
            st = os.stat(place)
            descriptor = self.descriptor(st.st_ino, place)
            old = os.pread(descriptor, max(0, st.st_size - length), length)
            self.waiting.append(Undo(st.st_ino, functools.partial(put_back, old, descriptor, length, st.st_size)))
            os.truncate(place, length)

    def fsync(self, path, datasync, fi):
        fh = self.handle(fi)
        self.sync(os.fstat(fh).st_ino)
        return 0

    def flush(self, path, fi):
        return 0

    def release(self, path, fi):
        fh = self.handle(fi)
        self.sync_opened.discard(fh)
        return os.close(fh)

    def read(self, path, size, offset, fi):
        return os.pread(self.handle(fi), size, offset)

    def rename(self, old, new):
        with self.guard:
            self.settle()
            source, target = self.at(old), self.at(new)
            inode = os.stat(source).st_ino
            before = None
            if os.path.isfile(target):
                # What is replaced stays in a place of its own, to come back.
                if self.mode != "rename":
                    before = os.path.join(self.folder, f".replaced-{time.monotonic_ns()}")
                    os.link(target, before)
            os.rename(source, target)
            name = os.path.basename(old).removesuffix(".dat")
            lane, _, version = name.lstrip("w").partition("-")
            version = (int(lane), int(version)) if lane.isdigit() and version.isdigit() else None
            named, self.named[target] = self.named.get(target), version

            def undo():
                os.rename(target, source)
                if before:
                    os.rename(before, target)
                self.named[target] = named

            if self.mode != "rename":
                self.waiting.append(Undo(inode, undo, rename=version or (-1, -1), replaced=before))

    def unlink(self, path):
        # At once: nothing of the test depends on it.
        with self.guard:
            os.unlink(self.at(path))

    def mkdir(self, path, mode):
        os.mkdir(self.at(path), mode)
        uid, gid, _ = fuse.fuse_get_context()
        os.chown(self.at(path), uid, gid)

    def rmdir(self, path):
        return os.rmdir(self.at(path))

    def access(self, path, amode):
        return 0

    def chmod(self, path, mode):
        return os.chmod(self.at(path), mode)

    def chown(self, path, uid, gid):
        return os.chown(self.at(path), uid, gid)

    def getattr(self, path, fi=None):
        st = os.lstat(self.at(path))
        names = ("st_gid", "st_mode", "st_nlink", "st_size", "st_uid", "st_blocks", "st_ino")
        found = {name: getattr(st, name) for name in names}
        for name in ("st_atime", "st_ctime", "st_mtime"):
            found[name] = getattr(st, name + "_ns")
        return found

    def getxattr(self, path, name, position=0):
        return os.getxattr(self.at(path), name, follow_symlinks=False)

    def listxattr(self, path):
        return os.listxattr(self.at(path), follow_symlinks=False)

    def setxattr(self, path, name, value, options, position=0):
        return os.setxattr(self.at(path), name, value, options, follow_symlinks=False)

    def removexattr(self, path, name):
        return os.removexattr(self.at(path), name, follow_symlinks=False)

    def readdir(self, path, fh):
        return [".", "..", *(name for name in os.listdir(self.at(path)) if not name.startswith(".replaced-"))]

    def statfs(self, path):
        st = os.statvfs(self.at(path))
        names = ("f_bavail", "f_bfree", "f_blocks", "f_bsize", "f_favail", "f_ffree", "f_files", "f_flag",
                 "f_frsize", "f_namemax")
        return {name: getattr(st, name) for name in names}

    def utimens(self, path, times=None):
        return os.utime(self.at(path), ns=times)


def put_back(old, descriptor, offset, size):
    """Undoes a Write: the old bytes and the old size."""
    os.pwrite(descriptor, old, offset)
    if os.fstat(descriptor).st_size != size:
        os.ftruncate(descriptor, size)


if __name__ == "__main__":
    folder, mountpoint, log, *options = sys.argv[1:]
    options = dict(option.split("=") for option in options)
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    fuse.FUSE(
        Losing(folder, log, **options), mountpoint, foreground=True, allow_other=True, default_permissions=True,
        attr_timeout=0, entry_timeout=0, negative_timeout=0, direct_io=True, raw_fi=True, nonempty=False)
