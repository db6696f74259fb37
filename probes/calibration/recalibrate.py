"""Measure prices and biases again every few hours, in a child with programs and a holder of its own.

Clocks change, virtual machines move. The child goes the way of the start (calibration.py) and ends; nothing in the
daemon's own maps or links is touched, and a child that fails leaves the old prices standing.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from specmine.model.batch import Prices
from specmine.model.buckets import BUCKETS
from specmine.model.errors import SpecmineError
from specmine.probes.kernel.links import Links
from specmine.probes.kernel.loader import Loaded, load
from specmine.probes.kernel.maps import map_array
from specmine.probes.kernel.structs import COUNTERS, MAX_SLOTS, SLOT

from .calibrate import KEPT_S, measured

EVERY_NS = KEPT_S * 1_000_000_000
LIMIT_NS = 120_000_000_000
"""A child that takes longer is killed."""
_MEMORY = 16 << 20
"""Kernel memory of the child's maps: it watches one program of 600 bytes."""


class Recalibration:
    """The child, when there is one, and when there will be."""

    def __init__(self, *, interpreter: str, mode: str, cache: Path | None, now_ns: int) -> None:
        """Begin with fresh prices; nothing runs before EVERY_NS have passed."""
        self._arguments = (interpreter, mode, str(cache or ""))
        self._begin_ns = now_ns + EVERY_NS
        self._child: subprocess.Popen[bytes] | None = None

    def pids(self) -> list[int]:
        """Return the child's process id, if there is a child."""
        return [self._child.pid] if self._child else []

    def poll(self, now_ns: int) -> Prices | None:
        """Start the child when it is time; return what it measured once it has ended well."""
        if self._child is None:
            if now_ns >= self._begin_ns:
                self._begin_ns = now_ns + EVERY_NS
                self._start()
            return None
        if self._child.poll() is None:
            if now_ns >= self._begin_ns - EVERY_NS + LIMIT_NS:
                self.close()
            return None
        child, self._child = self._child, None
        assert child.stdout is not None
        with child.stdout:
            told = child.stdout.read()
        with contextlib.suppress(ValueError, TypeError):
            return Prices(**json.loads(told))
        return None

    def _start(self) -> None:
        with contextlib.suppress(OSError):
            self._child = subprocess.Popen(
                [sys.executable, "-P", "-m", "specmine.probes.calibration.recalibrate", *self._arguments],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,  # less than a pipe holds
                stderr=subprocess.DEVNULL,
                start_new_session=True,
                env={**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
            )

    def close(self) -> None:
        """End the child; its holder sees that and takes its probes off."""
        if self._child is not None:
            self._child.kill()
            self._child.wait()
            if self._child.stdout is not None:
                self._child.stdout.close()
            self._child = None


def measured_here(loaded: Loaded) -> Prices:
    """Measure with these programs, in a holder of this one purpose. Raises ProbeError if that cannot be."""
    slots = map_array(loaded.maps["slots"], MAX_SLOTS, SLOT, writable=True)
    counters = map_array(loaded.maps["counters"], MAX_SLOTS, COUNTERS)
    links = Links(loaded)
    try:
        return measured(loaded, links, slots, counters)
    finally:
        links.shut()


def main(arguments: Sequence[str]) -> int:
    """Measure with the programs of this kind of link and print the prices as JSON."""
    interpreter, mode, folder = arguments
    cache = Path(folder) if folder else None
    try:
        loaded = load(
            interpreter=interpreter, memory_bytes=_MEMORY, buckets=BUCKETS, modes=(mode,), cache=cache, sampling=False
        )
        prices = measured_here(loaded)
    except SpecmineError:
        return 1
    print(json.dumps(asdict(prices)))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
