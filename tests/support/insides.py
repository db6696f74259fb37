"""What happened inside calls of which every part is known."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from specmine.model.buckets import BUCKETS, bucket_of
from specmine.model.call_path import Frame
from specmine.model.histogram import EMPTY, Histogram
from specmine.model.inside.parts import ANYWHERE, BLOCKED_PART, CalleeSet, CalleeTime, Inside
from specmine.model.observation import Kind, Observation

Array = NDArray[np.floating[Any]]


def inside_of_calls(
    callees: Mapping[Frame, Array],
    own: Array,
    *,
    blocked: Mapping[Frame, Array] | None = None,
    own_blocked: Array | None = None,
) -> Inside:
    """Return what the kernel would have counted.

    Parameters
    ----------
    callees : mapping
        Time of each callee in each call, ns; 0 where a call does not reach it.
    own : ndarray
        The rest of each call.
    blocked, own_blocked :
        Of these times, the part that was blocked.
    """
    whole = own + sum(callees.values())
    buckets = bucket_of(whole.round())
    frames = sorted(callees)

    def summed(these: NDArray[np.bool_], values: Array) -> Histogram:
        sums = np.bincount(buckets[these], weights=values[these].round(), minlength=BUCKETS)
        return Histogram.from_dense(sums) if sums.any() else EMPTY

    nothing = np.zeros(len(own))
    within = [(blocked or {}).get(frame, nothing) for frame in frames]
    stood = sum(within, nothing if own_blocked is None else own_blocked)
    much = [(each > 0) & (each >= BLOCKED_PART * whole) for each in (*within, stood)]
    reached = np.array([*(callees[frame] > 0 for frame in frames), *much]).T
    sets = []
    for both in np.unique(reached, axis=0):
        these = (reached == both).all(axis=1)
        if not both.any():
            continue
        row, (*places, anywhere) = both[: len(frames)], both[len(frames) :]
        where = [frame for frame, is_there in zip(frames, places, strict=True) if is_there]
        sets.append(
            CalleeSet(
                calls=summed(these, np.ones(len(own))),
                callees=tuple(
                    CalleeTime(
                        callee=frame,
                        calls=summed(these, np.ones(len(own))),
                        time_ns=summed(these, callees[frame]),
                        blocked_ns=summed(these, (blocked or {}).get(frame, np.zeros(len(own)))),
                    )
                    for frame, is_in in zip(frames, row, strict=True)
                    if is_in
                ),
                blocked=tuple(sorted([ANYWHERE, *where])) if anywhere else (),
                blocked_ns=summed(these, stood) if anywhere else EMPTY,
            )
        )
    every = np.ones(len(own), bool)
    return Inside(
        calls=Histogram.from_durations(whole.round()),
        timed=tuple(frames),
        sets=tuple(sorted(sets, key=lambda each: ([one.callee for one in each.callees], each.blocked))),
        blocked_ns=EMPTY if own_blocked is None else summed(every, own_blocked),
        split=True,
    )


def observation_of(*parts: Inside, start_ns: int = 0, kind: Kind = Kind.TIME) -> Observation:
    """Return a window whose calls are those of these parts."""
    whole = Histogram.sum(part.calls for part in parts)
    return Observation(
        function="f",
        lifetime="l",
        kind=kind,
        start_ns=start_ns,
        end_ns=start_ns + 10,
        histogram=whole,
        calls=whole.total,
        watched_ns=10,
        inside=parts,
    )
