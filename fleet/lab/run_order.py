"""Which runs there are, and in which random order: builds take turns, so that time does the same to all of them."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedRun:
    """One lifetime that is to be run."""

    number: int
    """From 0 on, in the order in which they are run."""
    block: int
    """Runs of one block belong on one host."""
    build: str
    rebuild: int
    """Which making of that build, from 0 on."""


def runs_in_order(labels: Sequence[str], *, rebuilds: int, lifetimes: int, seed: int) -> tuple[PlannedRun, ...]:
    """Return the runs of a benchmark.

    Parameters
    ----------
    labels : sequence of str
    rebuilds : int
        How often each build is made.
    lifetimes : int
        Runs of each build that was made.
    seed : int
        Of the order.

    Notes
    -----
    Randomised complete blocks: one run of each build, one after the other in random order, on the same host. Where
    builds are made several times, a block has all runs of one making of each, so that a host makes it once.
    """
    chance = random.Random(seed)
    blocks = [[rebuild] * lifetimes for rebuild in range(rebuilds)] if rebuilds > 1 else [[0]] * lifetimes
    found: list[PlannedRun] = []
    for block, rounds in enumerate(blocks):
        for rebuild in rounds:
            for label in chance.sample(list(labels), len(labels)):
                found.append(PlannedRun(number=len(found), block=block, build=label, rebuild=rebuild))
    return tuple(found)
