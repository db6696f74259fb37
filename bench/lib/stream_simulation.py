"""Simulated streams and their detector in C: ten host-months take minutes.

The C code has the formulas of the daemon's detector and of ``simulated_hosts``; a test compares both. The functions of
a host do not depend on each other, so each is simulated by itself, with random numbers of its own. Needs gcc.
"""

from __future__ import annotations

import ctypes
import math
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bench.lib.simulated_hosts import DAY, GRID, LEARNING, Hosts
from specmine.mining.detection import changes, detector, disturbances, innovations, threshold
from specmine.mining.detection.alarm import EVERY_CALL
from specmine.mining.detection.host_spread import usual_spreads, with_usual
from specmine.mining.detection.state import StreamState, first_state
from specmine.mining.detection.streams import Streams

Floats = NDArray[np.float64]
SOURCE = Path(__file__).with_name("stream_simulation.c")
STREAM = (
    "baseline", "variance", "lagged", "square", "last", "gap", "interval", "seen", "place", "doubt", "outlier",
    "offset", "begun", "entry", "age", "moved", "disturbed", "far",
)  # fmt: skip
ROWS = changes.OF_CHANGES
FUNCTION = (
    "interval", "spread", "correlation", "disturbed", "wave", "phase", "calls", "sigma", "wander", "first", "factor",
    "due", "before",
)  # fmt: skip
FACTORS = len(changes.STEPS)
MOST_PEAKS = 5_000_000
NUMBER = 8
"""Thresholds at which a change is timed."""

StreamRow = np.dtype([(name, "f8") for name in STREAM] + [(name, "f8", (FACTORS,)) for name in ROWS])
FunctionRow = np.dtype([(name, "f8") for name in FUNCTION] + [("random", "u8", (4,))])
ChangeRow = np.dtype(
    [("at", "f8"), ("factor", "f8"), *((name, "f8", (NUMBER,)) for name in ("found", "since", "size"))]
)
PeakRow = np.dtype([("at", "f8"), ("peak", "f8"), ("stream", "i8")])


@dataclass(frozen=True, slots=True)
class Watched:
    """What the detectors of some functions did for a while."""

    peaks: NDArray[np.void]
    """Peaks of evidence of a slowdown above ``FROM``: when (``at``, s), how much, which ``stream``."""
    windows: int
    fast: int
    """Windows after which the next one came soon."""


@cache
def library() -> ctypes.CDLL:
    """Compile the C code, once a process."""
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder) / "stream_simulation.so"
        options = ["-O2", "-march=native", "-ffp-contract=off", "-fno-math-errno", "-shared", "-fPIC"]
        subprocess.run(["gcc", *options, "-o", str(made), str(SOURCE), "-lm"], check=True)
        loaded = ctypes.CDLL(str(made))
    loaded.watch.restype = ctypes.c_int64
    return loaded


def constants() -> Floats:
    """Return the constants of the daemon's detector, in the order of the C code."""
    m, c, d = innovations, changes, disturbances
    numbers = (
        *c.STEPS, *c.SLABS, *c.PARTS, c.LEAST_STEP, c.LEAST_SLAB, c.FADED, c.FADED_PART, c.FADED_WINDOWS,
        m.YOUNG_WINDOWS, m.MOST_SURPRISE,
        m.BASELINE_SECONDS, m.SPREAD_SECONDS, m.BOUND, m.WINSORISED, m.GRAIN, m.MORE_CORRELATION,
        m.MOST_CORRELATION, m.NEIGHBOURS, m.EARLY_WINDOWS, m.EARLY_CORRELATION, m.PRIOR_WINDOWS, m.WIDER,
        d.LEAST_DISTURBED, d.MOST_DISTURBED, d.MOST_SHARE, d.LASTING_SECONDS, d.LONG_SECONDS, d.LONG, m.JUMPS, d.UP,
        d.UP_MOST, d.UP_EDGE, d.DOWN, d.DOWN_SCALE, d.FAR_SCALE, d.FAR_WINDOWS, d.LEAST_FAR,
        d.MOST_FAR, c.SUSPECTED,
        detector.LONGEST_SECONDS, detector.FIRST_WINDOWS, detector.LEAST_WINDOWS, math.log(detector.LEAST_FACTOR),
        threshold.FROM, GRID, DAY, threshold.NARROW, threshold.WIDE, threshold.MORE,
    )  # fmt: skip
    return np.array(numbers, dtype=np.float64)


def functions_of(hosts: Hosts) -> NDArray[np.void]:
    """Return the functions of simulated hosts as rows, with random numbers of their own."""
    rows = np.zeros(hosts.count, dtype=FunctionRow)
    for name in FUNCTION:
        rows[name] = hosts.started if name == "first" else getattr(hosts, name)
    rows["random"] = hosts.rng.integers(1, 2**63, (hosts.count, 4))
    return rows


def to_rows(streams: Streams) -> NDArray[np.void]:
    """Return streams as rows."""
    rows = np.zeros(len(streams.baseline), dtype=StreamRow)
    for name in (*STREAM, *ROWS):
        rows[name] = getattr(streams, name)
    return rows


def from_rows(rows: NDArray[np.void]) -> Streams:
    """Return rows as streams."""
    return Streams(**{name: rows[name].copy() for name in (*STREAM, *ROWS)})


def stepped(streams: Streams, places: Floats, sampling: Floats, elapsed: Floats, began: Floats) -> Streams:
    """Return streams after one window each, as ``innovations.step`` does."""
    rows, known = to_rows(streams), constants()
    size = StreamRow.itemsize
    for row in range(len(rows)):
        numbers = (float(each[row]) for each in (places, sampling, elapsed, began))
        library().step_stream(
            _pointer(known), ctypes.c_void_p(rows.ctypes.data + row * size), *map(ctypes.c_double, (*numbers, 1.0))
        )
    return from_rows(rows)


def measured(hosts: Hosts, windows: int) -> Floats:
    """Return the locations of so many windows of each function, shape (windows, functions)."""
    rows, places = functions_of(hosts), np.zeros((hosts.count, windows))
    library().measure(
        _pointer(constants()),
        _pointer(rows),
        ctypes.c_int64(hosts.count),
        ctypes.c_int64(windows),
        _pointer(places),
    )
    return places.T


def new_changes(at: Floats, factor: float) -> NDArray[np.void]:
    """Return changes by a factor at these times (s), not found yet."""
    changes = np.zeros(len(at), dtype=ChangeRow)
    changes["at"], changes["factor"], changes["found"] = at, math.log(factor), np.inf
    return changes


def watch(
    functions: NDArray[np.void],
    streams: NDArray[np.void],
    begin: float,
    end: float,
    *,
    changes: NDArray[np.void] | None = None,
    thresholds: Sequence[float] = (),
) -> Watched:
    """Let functions run from begin to end (s), and their streams watch them; both are changed in place.

    Parameters
    ----------
    functions, streams : ndarray of FunctionRow, StreamRow
    begin, end : float
        Seconds.
    changes : ndarray of ChangeRow, optional
        When each function changes; when that is found is written to it.
    thresholds : sequence of float
        Evidence at which a change is found, at most ``NUMBER``.
    """
    peaks = np.zeros(MOST_PEAKS if changes is None else 1, dtype=PeakRow)
    windows, fast = ctypes.c_int64(0), ctypes.c_int64(0)
    limits = np.array([*thresholds, *[np.inf] * (NUMBER - len(thresholds))])
    found = library().watch(
        _pointer(constants()),
        _pointer(functions),
        _pointer(streams),
        ctypes.c_int64(len(functions)),
        ctypes.c_double(begin),
        ctypes.c_double(end),
        None if changes is None else _pointer(changes),
        _pointer(limits),
        _pointer(peaks),
        ctypes.c_int64(len(peaks)),
        ctypes.byref(windows),
        ctypes.byref(fast),
    )
    return Watched(peaks=peaks[:found].copy(), windows=windows.value, fast=fast.value)


def learned(hosts: Hosts, seconds: float = LEARNING) -> tuple[NDArray[np.void], NDArray[np.void]]:
    """Return functions and the streams that have watched them for so long, as rows.

    What is usual on a host is looked at once, at the end: the variance then is what it had been with it all the while.
    """
    functions, sampling = functions_of(hosts), hosts.sigma**2 / hosts.calls
    first = innovations.PRIOR_SPREAD**2 + sampling
    streams = to_rows(innovations.started(np.zeros(hosts.count), first, hosts.interval))
    watch(functions, streams, 0.0, seconds)
    for begin in range(0, hosts.count, hosts.functions):
        rows = range(begin, begin + hosts.functions)
        known = [_state_of(streams[row], float(sampling[row])) for row in rows]
        usual = usual_spreads(known)
        streams["variance"][rows] = [with_usual(one, usual).variance for one in known]
    return functions, streams


def _state_of(row: np.void, sampling: float) -> StreamState:
    state = first_state(EVERY_CALL, 0.0, sampling)
    return replace(state, variance=float(row["variance"]), seen=float(row["seen"]), interval=float(row["interval"]))


def _pointer(array: NDArray[np.generic]) -> ctypes.c_void_p:
    return ctypes.c_void_p(array.ctypes.data)
