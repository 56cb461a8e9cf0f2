#!/usr/bin/env python3
"""A second server that gets what the first one wrote: the bytes themselves, over TCP, in the order of the writes.

    replica.py ADDRESS PORT LOG

takes them and notes in LOG what it has and when; slowfs.py (copy=ADDRESS:PORT sent_log=LOG) sends them, later, or with
sync=1 before a flush is answered. A frame is a length (4 bytes) and that many bytes of data; a length with the highest bit
set is a flush instead: the rest of it is the time in microseconds that the second server's log takes, after which the
server answers with one byte. `lacks` and `windows` compute from the logs what the second server did not have, and
what was written. Lines of a log: time in ns (CLOCK_REALTIME, both are on one machine), bytes in all.
"""

import bisect
import queue
import socket
import struct
import sys
import threading
import time

FLUSH = 1 << 31


class Copy:
    """Sends what was written while the writer continues, and waits for flushes."""

    def __init__(self, place, told):
        address, port = place.rsplit(":", 1)
        self.link = socket.create_connection((address, int(port)))
        self.link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.told, self.total, self.lock, self.waiting = open(told, "w"), 0, threading.Lock(), queue.SimpleQueue()
        self.flushes = queue.SimpleQueue()
        threading.Thread(target=self.send, daemon=True).start()
        threading.Thread(target=self.answers, daemon=True).start()

    def write(self, data):
        with self.lock:
            self.total += len(data)
            print(time.time_ns(), self.total, file=self.told, flush=True)
            self.waiting.put(struct.pack("!I", len(data)) + bytes(data))

    def flush(self, seconds):
        """Waits until the second server has all that was written before, and its log, too."""
        done = threading.Event()
        with self.lock:
            self.flushes.put(done)
            self.waiting.put(struct.pack("!I", FLUSH | int(seconds * 1e6)))
        done.wait(60)

    def send(self):
        while True:
            self.link.sendall(self.waiting.get())

    def answers(self):
        # Logs take equally long, so that the answers come in the order of the flushes.
        while answers := self.link.recv(4096):
            for _ in answers:
                self.flushes.get().set()


def take(address, port, log):
    with socket.create_server((address, port)) as listening, open(log, "w") as told:
        link, total = listening.accept()[0], 0
        link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        due = queue.SimpleQueue()
        threading.Thread(target=answer, args=(link, due), daemon=True).start()
        data, left, length = b"", 0, 0
        while more := link.recv(1 << 20):
            data += more
            while data:
                if left:
                    here = min(left, len(data))
                    data, left = data[here:], left - here
                    # A part of a write is of no use.
                    if not left:
                        total += length
                        print(time.time_ns(), total, file=told, flush=True)
                elif len(data) >= 4:
                    (left,), data = struct.unpack("!I", data[:4]), data[4:]
                    if left & FLUSH:
                        due.put(time.perf_counter() + (left & ~FLUSH) / 1e6)
                        left = 0
                    length = left
                else:
                    break


def answer(link, due):
    while True:
        at = due.get()
        # Sleeping ends late by the timer's slack; the last of it is waited for.
        if (left := at - time.perf_counter() - 0.0001) > 0:
            time.sleep(left)
        while time.perf_counter() < at:
            pass
        link.sendall(b"f")


def read(log):
    with open(log) as file:
        lines = [tuple(map(int, line.split())) for line in file]
    return [time for time, _ in lines], [total for _, total in lines]


def at(times, totals, time):
    return totals[place - 1] if (place := bisect.bisect_right(times, time)) else 0


def lacks(written, received, begin, end):
    """Bytes that the second server lacks between two times, on average and at most, and how many seconds it is behind."""
    found = risk(written, received, begin, end)
    return found["mean"], found["max"], found["behind"]


def risk(written, received, begin, end):
    """Likewise, and what it lacks in half of the time, and in 99 % of it."""
    (writes, sent), (arrivals, had) = read(written), read(received)
    times = sorted({begin, end, *(time for time in writes + arrivals if begin <= time <= end)})
    missing = [at(writes, sent, time) - at(arrivals, had, time) for time in times]
    lasted = [(bytes, after - time) for bytes, time, after in zip(missing, times, times[1:])]
    waits = [
        arrivals[place] - time
        for time, total in zip(writes, sent)
        if begin <= time <= end and (place := bisect.bisect_left(had, total)) < len(had)
    ]

    def quantile(share):
        rank, sum = share * (end - begin), 0
        for bytes, time in sorted(lasted):
            sum += time
            if sum >= rank:
                return bytes
        return max(missing)

    return {"mean": sum(bytes * time for bytes, time in lasted) / (end - begin), "max": max(missing), "p50": quantile(0.5),
            "p99": quantile(0.99), "behind": max(waits) / 1e9}


def windows(written, begin, end, seconds):
    """Most bytes that were written within that many whole seconds between two times."""
    writes, sent = read(written)
    total = lambda time: at(writes, sent, time)
    last = int((end - begin) / 1e9 - seconds)
    starts = [begin + second * 1_000_000_000 for second in range(last + 1)]
    return max(total(start + int(seconds * 1e9)) - total(start) for start in starts)


if __name__ == "__main__":
    take(sys.argv[1], int(sys.argv[2]), sys.argv[3])
