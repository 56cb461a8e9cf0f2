"""The list of cases: what each one is called, and what is right to say about it.

Owns: the register, activities that several cases share. Not: the cases (kinds.py, near.py, healthy.py).
"""

from dataclasses import dataclass
from typing import Callable

import smb2
from sim import Scene, Session, blocks

CASES = {}


@dataclass
class Case:
    name: str
    set: str
    state: str
    owner: str
    cause: str
    make: Callable[[str], Scene]


def case(state, owner, cause, snap=262144):
    """Registers a function that fills a Scene; its name begins with the set.

    State and owner may be several words with "or" between them, where the capture admits each.
    """
    states = ("healthy", "slow", "broken", "unknown")
    assert all(one in states for one in state.split(" or ")) and len(cause.split()) <= 18, cause

    def register(function):
        name = function.__name__

        def make():
            scene = Scene(name, snap)
            function(scene)
            return scene
        add(Case(name, name.split("_")[0], state, owner, cause, make))
        return function
    return register


def add(one):
    assert one.name not in CASES
    CASES[one.name] = one


def browse(c, count, folder="docs", low=0.05, high=0.4):
    """A person clicks through files: one compound a click."""
    for number in range(count):
        c.stat(f"{folder}\\page{number:02d}.txt")
        c.think(low, high)


def edit(c, name, size=20000):
    """A document is read, then saved by way of a temporary file, as office programs do."""
    c.get(name, size)
    c.think(0.5, 2.5)
    temporary = name.rsplit(".", 1)[0] + ".tmp"
    fid = c.open(temporary, 0, disposition=5, access=0x13019F)
    c.stream(fid, blocks(size, 65536), 2, True)
    c.flush(fid)
    c.rename(fid, name)
    c.close(fid, size)


def bind(first, client, server, **more):
    """Another channel of the session of `first`."""
    c = Session(first.scene, client, server, logon=False, number=first.numbers, t=first.t, **more)
    c.call(smb2.NEGOTIATE, smb2.negotiate(), smb2.negotiated())
    c.session, c.tree = first.session, 0
    c.call(smb2.SETUP, smb2.setup(smb2.ntlm_negotiate(), 1), smb2.set_up(smb2.ntlm_challenge(c.domain)),
           smb2.MORE_PROCESSING)
    c.call(smb2.SETUP, smb2.setup(smb2.ntlm_authenticate(c.domain, c.user, "PC"), 1), smb2.set_up(), service=0.003)
    c.tree = first.tree
    return c
