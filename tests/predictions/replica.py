"""What a second server did not have, computed from the logs of both ends (slowfs.py, whose options copy= and replica write
them), and what was written. Lines of a log: time in ns (CLOCK_REALTIME, both are on one machine), bytes in total.
"""

import bisect


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

