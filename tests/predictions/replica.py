#!/usr/bin/env python3
"""A second server that gets later what the first one wrote: the bytes themselves, over TCP, in the order of the writes.

    replica.py ADDRESS PORT LOG

takes them and notes in LOG what it has and when; slowfs.py (copy=ADDRESS:PORT sent_log=LOG) sends them. `lacks` computes from
both what the second server did not have yet. Lines of a log: time in ns (CLOCK_REALTIME, both are on one machine), bytes in all.
"""

import bisect
import queue
import socket
import sys
import threading
import time


class Copy:
    """Sends what was written while the writer continues."""

    def __init__(self, place, told):
        address, port = place.rsplit(":", 1)
        self.link = socket.create_connection((address, int(port)))
        self.link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.told, self.total, self.lock, self.waiting = open(told, "w"), 0, threading.Lock(), queue.SimpleQueue()
        threading.Thread(target=self.send, daemon=True).start()

    def write(self, data):
        with self.lock:
            self.total += len(data)
            print(time.time_ns(), self.total, file=self.told, flush=True)
            self.waiting.put(bytes(data))

    def send(self):
        while True:
            self.link.sendall(self.waiting.get())


def take(address, port, log):
    with socket.create_server((address, port)) as listening, open(log, "w") as told:
        link, total = listening.accept()[0], 0
        while data := link.recv(1 << 20):
            total += len(data)
            print(time.time_ns(), total, file=told, flush=True)


def read(log):
    with open(log) as file:
        lines = [tuple(map(int, line.split())) for line in file]
    return [time for time, _ in lines], [total for _, total in lines]


def lacks(written, received, begin, end):
    """Bytes that the second server lacks between two times, on average and at most, and how many seconds it is behind."""
    (writes, sent), (arrivals, had) = read(written), read(received)
    at = lambda times, totals, time: totals[place - 1] if (place := bisect.bisect_right(times, time)) else 0
    times = sorted({begin, end, *(time for time in writes + arrivals if begin <= time <= end)})
    missing = [at(writes, sent, time) - at(arrivals, had, time) for time in times]
    mean = sum(bytes * (after - time) for bytes, time, after in zip(missing, times, times[1:])) / (end - begin)
    waits = [
        arrivals[place] - time
        for time, total in zip(writes, sent)
        if begin <= time <= end and (place := bisect.bisect_left(had, total)) < len(had)
    ]
    return mean, max(missing), max(waits) / 1e9


if __name__ == "__main__":
    take(sys.argv[1], int(sys.argv[2]), sys.argv[3])
