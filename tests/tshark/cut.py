"""Captures cut to headers: which operations smbscope and tshark still find in them."""

import subprocess
from collections import Counter
from dataclasses import dataclass

import oracle
import rows as ours

SNAP_LENGTHS = (256, 128)


@dataclass
class Cut:
    """One file cut to one snap length, against the same file uncut."""

    operations: int
    lost: int
    added: int
    retimed: int
    unnamed: int
    theirs: int


def compare(program, comparison, folder):
    whole = comparison.rows
    cuts = {}
    for snap in SNAP_LENGTHS:
        path = folder / f"{snap}-{comparison.path.name.removesuffix('.gz')}"
        subprocess.run(
            ["editcap", "-s", str(snap), str(comparison.path), str(path)],
            check=True,
            capture_output=True,
        )
        rows = ours.read(program, path)
        before, after = (Counter(row.identity() for row in of) for of in (whole, rows))
        timed = [Counter((r.identity(), r.times()) for r in of) for of in (whole, rows)]
        names = [sum(row.path is not None for row in of) for of in (whole, rows)]
        cuts[snap] = Cut(
            operations=len(rows),
            lost=(before - after).total(),
            added=(after - before).total(),
            retimed=(timed[0] - timed[1]).total() - (before - after).total(),
            unnamed=names[0] - names[1],
            theirs=len(oracle.read(path).operations),
        )
        path.unlink()
    return cuts
