"""Calls that left their CPU while they lasted: from the kernel's sparse counts to running, waiting and blocked."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from specmine.model.histogram import EMPTY, Histogram
from specmine.model.inside.parts import ANYWHERE, CalleeSet, Inside
from specmine.model.split import Split
from specmine.probes.kernel.structs import BLOCKED_CALL


def split_of(histogram: Histogram, rows: NDArray[np.void]) -> Split:
    """Return what timed calls did of their time.

    Parameters
    ----------
    histogram : Histogram
        All timed calls by duration.
    rows : ndarray
        Of those that left their CPU: ``key`` and ``value``.
    """
    if not len(rows):
        return Split(waiting_ns=EMPTY, blocked_ns=EMPTY, on_cpu=histogram)
    key, value = rows["key"], rows["value"]
    left = Histogram.from_pairs(key["bucket"], value["calls"])
    # a call that ended while the counts were read may be in one of them only
    return Split(
        waiting_ns=Histogram.from_pairs(key["bucket"], value["waiting"]),
        blocked_ns=Histogram.from_pairs(key["bucket"], value["blocked"]),
        on_cpu=histogram.without(left)
        + Histogram.from_pairs(key["running"] & ~np.uint16(BLOCKED_CALL), value["calls"]),
    )


def blocked_calls(histogram: Histogram, rows: NDArray[np.void]) -> tuple[Inside, ...]:
    """Return which timed calls were blocked for much of their time, of a function in which none other is timed.

    Parameters
    ----------
    histogram : Histogram
        All timed calls by duration.
    rows : ndarray
        Of those that left their CPU: ``key`` and ``value``.

    Returns
    -------
    tuple of Inside
        () where no call was blocked at all.
    """
    key, value = rows["key"], rows["value"]
    if not value["blocked"].any():
        return ()
    much = (key["running"] & np.uint16(BLOCKED_CALL)) > 0
    calls = CalleeSet(
        calls=Histogram.from_pairs(key["bucket"][much], value["calls"][much]),
        callees=(),
        blocked=(ANYWHERE,),
        blocked_ns=Histogram.from_pairs(key["bucket"][much], value["blocked"][much]),
    )
    return (
        Inside(
            calls=histogram,
            timed=(),
            sets=(calls,) if calls.calls.total else (),
            waiting_ns=Histogram.from_pairs(key["bucket"], value["waiting"]),
            blocked_ns=Histogram.from_pairs(key["bucket"], value["blocked"]),
            split=True,
        ),
    )


def by_path(rows: NDArray[np.void]) -> dict[int, NDArray[np.void]]:
    """Return the rows of each path id."""
    paths = rows["key"]["path"]
    return {path: rows[paths == path] for path in sorted(set(paths.tolist()))}
