"""The evidence of a change of a stream, one factor of change after the other, and what is known of the change.

A lock that is held now and then pauses some calls in some of the windows: the others are as usual. So some factors are
looked for in a part of the windows only. How many windows of a stream are far off is known from its past alone. So such
a window counts as one of that share of them against one of the larger share.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from .disturbances import normal_density
from .streams import Floats, Streams

SLOWER = {1.35: 0.12, 1.7: 0.15, 2.3: 0.2, 3.5: 0.25, 6.0: 0.35, 15.0: 0.6, 80.0: 1.2}
FASTER = {1.35: 0.12, 1.7: 0.15, 2.3: 0.2, 4.0: 0.35, 15.0: 0.9}
"""Factors of change that are looked for at first, each with a spread in log units, so that those in between are found
too. The windows since then tell the factor better and better."""
PAUSED, PAUSED_PART = {6.0: 0.35, 15.0: 0.6, 80.0: 1.2}, 0.25
"""Those that are also looked for in this share of the windows, where the others stay as they are."""
STEPS = np.log(np.array([*SLOWER, *(1 / factor for factor in FASTER), *PAUSED]))
SLABS = np.array([*SLOWER.values(), *FASTER.values(), *PAUSED.values()])
PARTS = np.repeat([1.0, PAUSED_PART], [len(SLOWER) + len(FASTER), len(PAUSED)])
LEAST_STEP = 0.2
"""Changes smaller than this, in log units, are not looked for."""
LEAST_SLAB = 0.03
"""The factor stays unsure by this, in log units, however many windows it is known from."""
FADED, FADED_PART, FADED_WINDOWS = 0.1, 0.3, 8.0
"""A change is over if its newest windows, about so many, are off by less than this on average, in log units, or by less
than this part of it. Else the filter would take it for granted that they came back by chance."""
SUSPECTED = 3.0
"""Evidence from which windows come fast, and teach by their time. Else they would soon outweigh all others: a function
that was learned from few windows would take the change for its usual spread."""
OF_CHANGES = ("evidence", "size", "unsure", "absorbed", "windows", "total", "lately", "since")
"""The fields of ``Streams`` that have a row for each factor."""


@dataclass(frozen=True, slots=True)
class Explained:
    """What an unchanged program says of a window: the densities of its parts, and what the filter takes over."""

    quiet: Floats
    heavy: Floats
    stay: Floats
    jump: Floats
    usual: Floats
    kept: Floats
    gain: Floats

    def take(self, rows: NDArray[np.intp]) -> tuple[Floats, ...]:
        """Return columns of some streams."""
        return tuple(getattr(self, field.name)[rows, None] for field in fields(Explained))


def changes_after(
    before: Streams, surprise: Floats, width: Floats, began: Floats, residual: Floats, explained: Explained
) -> dict[str, Floats]:
    """Return the evidence of each change after a window, and what is known of the change.

    If the program changed by d, the filter's surprise is d times what the filter has not absorbed yet, plus the usual
    noise: a regression, whose coefficient d is estimated on line (Willsky and Jones, *A generalized likelihood ratio
    approach to the detection and estimation of jumps in linear systems*, IEEE TAC 21, 1976). Each window is predicted
    from the windows before it, so the evidence remains that of an e-detector.
    """
    found = {name: np.zeros_like(before.evidence) for name in OF_CHANGES}
    # a window without evidence before it adds some only if it is off by more than the least slab
    off = surprise**2 > width * np.log1p(SLABS.min() ** 2 / width)
    rows = np.flatnonzero(off | (before.evidence > 0).any(axis=1))
    if not len(rows):
        return found
    evidence = before.evidence[rows]
    fresh = evidence <= 0
    quiet, heavy, stay, jump, usual, kept, gain = explained.take(rows)
    size = np.where(fresh, STEPS, before.size[rows])
    unsure = np.where(fresh, SLABS**2, before.unsure[rows])
    absorbed = np.where(fresh, 0.0, before.absorbed[rows])
    left = 1 - kept * absorbed
    apart = surprise[rows, None] - size * left
    spread = width[rows, None] + unsure * left**2
    there = quiet * normal_density(apart, spread)
    changed = PARTS * (stay * (there + heavy) + jump) + (1 - PARTS) * usual
    told = PARTS * stay * there / changed * unsure * left / spread
    size = size + told * apart
    windows = np.where(fresh, 0.0, before.windows[rows]) + 1
    total = np.where(fresh, 0.0, before.total[rows]) + residual[rows, None]
    newest = 1 / np.minimum(windows, FADED_WINDOWS)
    lately = np.where(fresh, 0.0, before.lately[rows])
    lately = lately + newest * (residual[rows, None] - lately)
    least = np.maximum(FADED, FADED_PART * PARTS * np.abs(size))
    over = (windows >= FADED_WINDOWS) & (np.sign(STEPS) * lately < least)
    # how far off such a window is says nothing of how many are
    more = np.minimum(np.log(changed / usual), np.where(PARTS < 1, np.log(PARTS / before.far[rows, None]), np.inf))
    found["evidence"][rows] = np.where(over, 0.0, np.where(fresh, 0.0, evidence) + more)
    found["size"][rows] = np.where(STEPS > 0, np.maximum(size, LEAST_STEP), np.minimum(size, -LEAST_STEP))
    found["unsure"][rows] = np.maximum(unsure * (1 - told * left), LEAST_SLAB**2)
    found["absorbed"][rows] = np.where(PARTS < 1, 0.0, kept * absorbed + gain * left)
    found["windows"][rows] = windows
    found["total"][rows] = total
    found["lately"][rows] = lately
    found["since"][rows] = np.where(fresh, began[rows, None], before.since[rows])
    return found
