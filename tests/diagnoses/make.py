#!/usr/bin/env python3
"""Writes captures with known causes, captures that only look alike, and healthy ones: make.py OUT [NAME...]

NAME is a case or the beginning of names ("near_", "healthy_office"). The same bytes come out every time. What is right
to say about each is in expected.tsv next to this file; `make.py --expected` writes that list again.
Standard library only.
"""

import os
import sys

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

import fresh  # noqa: E402,F401  the modules register their cases
import healthy  # noqa: E402,F401
import kinds  # noqa: E402,F401
import near  # noqa: E402,F401
import reports  # noqa: E402,F401
import reports_slow  # noqa: E402,F401
import varied  # noqa: E402,F401
from cases import CASES  # noqa: E402

ORDER = {"kind": 0, "near": 1, "other": 2, "varied": 3, "fresh": 4, "healthy": 5}


def main(arguments):
    cases = sorted(CASES.values(), key=lambda case: (ORDER[case.set], case.name))
    if arguments == ["--expected"]:
        with open(os.path.join(HERE, "expected.tsv"), "w") as file:
            file.write("name\tset\tstate\towner\tcause\n")
            for case in cases:
                file.write(f"{case.name}\t{case.set}\t{case.state}\t{case.owner}\t{case.cause}\n")
        return 0
    if not arguments or arguments[0].startswith("-"):
        print(__doc__, file=sys.stderr)
        return 2
    out, names = arguments[0], arguments[1:]
    chosen = [case for case in cases if not names or any(case.name.startswith(name) for name in names)]
    if not chosen:
        print(f"no case begins with {' or '.join(names)}", file=sys.stderr)
        return 2
    os.makedirs(out, exist_ok=True)
    for case in chosen:
        case.make().write(os.path.join(out, case.name + ".pcap"))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
