"""Differences that are understood: who is right, and why."""

from dataclasses import dataclass
from typing import Callable


@dataclass(frozen=True)
class Explanation:
    """A reason, and exactly which differences it covers."""

    name: str
    text: str
    covers: Callable


EXPLANATIONS = []


def reason(difference, comparison):
    for explanation in EXPLANATIONS:
        if explanation.covers(difference, comparison):
            return explanation.name
    return None


def ntstatus(status):
    return status


def path(name):
    return (name or "").replace("/", "\\").strip("\\").lower()
