"""What the cases of lab.py and waits.py share: how one is declared, and what several do.

Owns: the list of cases. Not: the bench (bench.py), the client (client.py).
"""

import threading

from client import raw

FAR = "rtt=20ms"
# Bytes of a packet that show all but what is in files.
HEADERS = 512
CASES = {}


def case(name, expects=None, note=False, nothing=False, allowed=None, misses=True, fixture=True, state=None,
         near="healthy"):
    """`expects`: the trouble, if that is not the name; a `note` has no time: nothing else is judged; `nothing`: no
    finding may be reported. `allowed`: other findings that are true as well, each with its reason. `misses`: whether
    there is a near miss. `state`: what the verdict begins with, and `near` that of the near miss."""

    def keep(function):
        CASES[name] = {"make": function, "expects": expects or name, "note": note, "nothing": nothing,
                       "allowed": allowed or {}, "misses": misses, "fixture": fixture, "state": state,
                       "near": near}
        return function

    return keep


def together(*works):
    """Runs each in a thread of its own; what one of them raises is raised."""
    failed = []

    def run(work):
        try:
            work()
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=run, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failed:
        raise failed[0]


def in_order(fid, n, block, at=0):
    return [raw.read(fid, at + block * number, block) for number in range(n)]
