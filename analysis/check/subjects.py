"""What a formula speaks of: which function a name means, and which call paths and calls a condition means."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from specmine.analysis.lifetimes.lifetime import FunctionLifetime
from specmine.mining.assertions.expression import evaluate
from specmine.mining.regression.sample import Sample
from specmine.mining.spl.syntax import Condition
from specmine.model.globs import names_of


def is_called(function: str, module: str, wanted: str) -> bool:
    """Tell whether a name of a formula means a function."""
    return wanted in names_of(function, module)


def meant(observed: FunctionLifetime, condition: Condition) -> bool:
    """Tell whether calls are those of a condition."""
    if condition.on_path is not None:
        return passes(observed.path, condition.on_path)
    return observed.fulfils(condition.edges)


def goes_over(path: Sequence[str], condition: Condition) -> bool:
    """Tell whether a call path is one of a condition's."""
    if condition.on_path is not None:
        return passes(path, condition.on_path)
    return bool(path) and evaluate(condition.edges, frozenset(pairwise(path)))


def passes(path: Sequence[str], function: str) -> bool:
    """Tell whether a call path leads through a function."""
    return any(is_called(frame, "", function) for frame in path[:-1])


def calls_by_class(sample: Sample, borders_ns: Sequence[float]) -> tuple[int, ...]:
    """Count calls per class; a duration equal to a border belongs to the lower one."""
    cell = np.searchsorted(np.asarray(borders_ns, dtype=np.float64), sample.middle, side="left")
    return tuple(int(each) for each in np.bincount(cell, weights=sample.counts, minlength=len(borders_ns) + 1))
