#!/usr/bin/env python3
"""A folder mounted over itself, each of whose calls takes a given time: storage as slow as is wanted.

    slowfs.py FOLDER MOUNTPOINT SECONDS [log=SECONDS] [distance=SECONDS] [disk=SECONDS] [misses=SHARE]
              [jitter=SHARE] [copy=ADDRESS:PORT sent_log=FILE [sync=1]]
    slowfs.py replica ADDRESS PORT LOG

Calls go to FOLDER; one that is done sooner sleeps until the time is over. With a log, a flush of what was written takes its
time instead, one of nothing none, and with a distance it is over when a second device, so far away (both ways), has done
the same. With a disk, the given share of reads takes its time. With jitter each time is up to that share longer or shorter.
With a copy, what is written is sent to a second server later, and noted (replica.py); with sync=1 a flush of what was
written waits until that server's log has it, too. `replica` is that second server: it notes in LOG what it has and when.

It compiles slowfs.c, which does the work, into the cache when that changed, and becomes that program. Needs a C compiler,
pkg-config and libfuse 3 with its headers.
"""

import hashlib
import os
import subprocess
import sys

SOURCE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "slowfs.c")


def program():
    """The program, compiled if there is none of this source."""
    with open(SOURCE, "rb") as file:
        version = hashlib.sha256(file.read()).hexdigest()[:12]
    cache = os.environ.get("SMBSCOPE_CACHE", os.path.expanduser("~/.cache/smbscope"))
    place = os.path.join(cache, f"slowfs-{version}")
    if not os.path.exists(place):
        os.makedirs(cache, exist_ok=True)
        flags = subprocess.run(["pkg-config", "--cflags", "--libs", "fuse3"], capture_output=True, text=True, check=False)
        if flags.returncode:
            sys.exit("slowfs: no headers of libfuse 3 (scripts/setup.sh predictions): " + flags.stderr.strip())
        made = f"{place}.{os.getpid()}"
        subprocess.run(["cc", "-O2", "-Wall", "-Wextra", "-o", made, SOURCE, *flags.stdout.split()], check=True)
        os.rename(made, place)
    return place


if __name__ == "__main__":
    os.execv(program(), ["slowfs", *sys.argv[1:]])
