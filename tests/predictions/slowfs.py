#!/usr/bin/env python3
"""A folder mounted over itself, each of whose calls takes a given time: storage as slow as is wanted.

    slowfs.py FOLDER MOUNTPOINT SECONDS [log=SECONDS] [distance=SECONDS] [disk=SECONDS] [misses=SHARE]
              [copy=ADDRESS:PORT sent_log=FILE [sync=1]]

Calls go to FOLDER; one that is done sooner sleeps until the time is over. With a log, a
flush of what was written takes its time instead, one of nothing none, and with a distance it is over when a second
device, so far away (both ways), has done the same. With a disk, the given share of reads takes its time. With
a copy, what is written is sent to a second server later, and noted (replica.py); with sync=1 a flush of what was
written waits until that server's log has it, too. Nothing is cached, so that
every call of the server comes here. Needs libfuse 3 and the Python package mfusepy.
"""

import functools
import inspect
import os
import random
import sys
import time

import mfusepy as fuse
import replica


def slow(call):
    """The call, made to take its file system's time."""

    @functools.wraps(call)
    def slowed(self, *args):
        begin = time.perf_counter()
        try:
            return call(self, *args)
        finally:
            seconds = self.seconds
            if call.__name__ == "read" and self.chance.random() < self.misses:
                seconds = self.disk
            elif call.__name__ == "fsync" and self.log is not None:
                seconds = self.log if args[0] in self.written else 0.0
                self.written.discard(args[0])
            elif call.__name__ in ("write", "truncate"):
                self.written.add(args[0])
            left = seconds - (time.perf_counter() - begin)
            # Sleeping ends late by the timer's slack; the last of it is waited for.
            if left > 0.0001:
                time.sleep(left - 0.0001)
            while time.perf_counter() - begin < seconds:
                pass

    return slowed


class Slow(fuse.Operations):
    use_ns = True

    def __init__(self, folder, seconds, log=None, distance=0.0, disk=0.0, misses=0.0, copy=None, sync=0.0):
        self.folder, self.seconds, self.disk, self.misses = folder, seconds, disk, misses
        self.chance = random.Random(1)
        # The local one and the second one begin together; the second one's answer comes later.
        self.log = None if log is None else max(log, distance + log)
        self.written = set()
        self.copy, self.sync = copy, bool(sync)

    def at(self, path):
        return os.path.join(self.folder, path.lstrip("/"))

    def access(self, path, amode):
        return 0

    def chmod(self, path, mode):
        return os.chmod(self.at(path), mode)

    def chown(self, path, uid, gid):
        return os.chown(self.at(path), uid, gid)

    def create(self, path, mode, fi=None):
        uid, gid, _ = fuse.fuse_get_context()
        handle = os.open(self.at(path), os.O_RDWR | os.O_CREAT | os.O_TRUNC, mode)
        os.fchown(handle, uid, gid)
        return handle

    def flush(self, path, fh):
        return 0

    def fsync(self, path, datasync, fh):
        if self.sync and path in self.written:
            self.copy.flush(self.log)
        return os.fsync(fh)

    def getattr(self, path, fh=None):
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

    def link(self, target, source):
        return os.link(self.at(source), self.at(target))

    def mkdir(self, path, mode):
        os.mkdir(self.at(path), mode)
        uid, gid, _ = fuse.fuse_get_context()
        os.chown(self.at(path), uid, gid)

    def open(self, path, flags):
        return os.open(self.at(path), flags)

    def read(self, path, size, offset, fh):
        return os.pread(fh, size, offset)

    def readdir(self, path, fh):
        return [".", "..", *os.listdir(self.at(path))]

    def readlink(self, path):
        return os.readlink(self.at(path))

    def release(self, path, fh):
        return os.close(fh)

    def rename(self, old, new):
        return os.rename(self.at(old), self.at(new))

    def rmdir(self, path):
        return os.rmdir(self.at(path))

    def statfs(self, path):
        st = os.statvfs(self.at(path))
        names = ("f_bavail", "f_bfree", "f_blocks", "f_bsize", "f_favail", "f_ffree", "f_files", "f_flag",
                 "f_frsize", "f_namemax")
        return {name: getattr(st, name) for name in names}

    def truncate(self, path, length, fh=None):
        return os.ftruncate(fh, length) if fh else os.truncate(self.at(path), length)

    def unlink(self, path):
        return os.unlink(self.at(path))

    def utimens(self, path, times=None):
        return os.utime(self.at(path), ns=times)

    def write(self, path, data, offset, fh):
        if self.copy:
            self.copy.write(data)
        return os.pwrite(fh, data, offset)


for name, call in list(vars(Slow).items()):
    if inspect.isfunction(call) and name not in ("__init__", "at"):
        setattr(Slow, name, slow(call))

if __name__ == "__main__":
    folder, mountpoint, seconds, *options = sys.argv[1:]
    options = dict(option.split("=") for option in options)
    copy = replica.Copy(options.pop("copy"), options.pop("sent_log")) if "copy" in options else None
    options = {name: float(value) for name, value in options.items()}
    fuse.FUSE(
        Slow(folder, float(seconds), copy=copy, **options), mountpoint, foreground=True, allow_other=True, default_permissions=True,
        attr_timeout=0, entry_timeout=0, negative_timeout=0, direct_io=True, nonempty=False)
