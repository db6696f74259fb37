"""By what factor a violated function really is slower: as bpftrace times its calls, during a fault and after it.

bpftrace shares nothing with specmine but the kernel's probes, and times each call of a few seconds.
"""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from bench.faults.programs.fault import Service
from bench.lib.peers import bpftrace, environment
from specmine.model.level import PROBABILITIES

SECONDS = 5
MOST_CALLS = 40_000
"""One who times them all disturbs the program: no more than so many."""
SHORTEST_NS = 20_000.0
"""Of shorter durations what bpftrace itself takes is a part that matters."""
FEWEST_BEYOND = 20
"""A quantile is known from so many longer calls on."""

_TIMED = """
uprobe:{at} {only} {{ @depth[tid]++; @began[tid, @depth[tid]] = nsecs; }}
uretprobe:{at} /@depth[tid]/ {{
    printf("%lu\\n", nsecs - @began[tid, @depth[tid]]);
    delete(@began[tid, @depth[tid]]); @depth[tid]--; @calls++;
    if (@calls >= {most}) {{ exit(); }}
}}
interval:s:{seconds} {{ exit(); }}
END {{ clear(@depth); clear(@began); clear(@calls); }}
"""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a function is: a file and an offset in it, and the name of the threads that count."""

    file: str
    offset: int
    only: str


@dataclass(frozen=True, slots=True)
class Timed:
    """How long calls of a function took, ns, and of which quantile a violation speaks."""

    place: Place
    quantile: str
    took: list[int]


def place_of(violation: dict[str, Any], service: Service) -> Place | None:
    """Return where a violated function is; None: its file is not mapped, or the violation is not about all calls."""
    if violation["what"] != "level" or violation["expression"] != "true" or violation["upper_seconds"] is not None:
        return None
    process = Path("/proc") / str(service.pid)
    words = (line.split(maxsplit=5) for line in (process / "maps").read_text().splitlines())
    files = {line[5].strip() for line in words if len(line) == 6}
    file = next((each for each in sorted(files) if Path(each).name == violation["module"]), None)
    if file is None:
        return None
    own = Path(file).samefile(process / "exe")
    name = (process / "comm").read_text().strip()
    return Place(file, int(violation["key"].rpartition("+")[2], 16), "" if own else f'/comm == "{name}"/')


def durations(place: Place) -> list[int]:
    """Return the durations of the calls of the next seconds, ns."""
    text = _TIMED.format(at=f"{place.file}:0x{place.offset:x}", only=place.only, most=MOST_CALLS, seconds=SECONDS)
    command = bpftrace(0, text)
    command.insert(command.index("-q"), "--unsafe")  # or it declines functions without a symbol
    ran = subprocess.run(command, capture_output=True, text=True, env=environment(), check=False)
    return [int(line) for line in ran.stdout.splitlines() if line.isdigit()]


def factor_between(before: Sequence[int], after: Sequence[int], quantile: str) -> float | None:
    """Return how many times as long a quantile is, or the mean; None: of too few calls, or of too short ones."""
    share = PROBABILITIES.get(quantile, 0.5)  # of a mean as many calls are wanted as of a median
    if min(len(before), len(after)) * (1 - share) < FEWEST_BEYOND:
        return None
    usual, now = (
        float(np.quantile(each, share) if quantile in PROBABILITIES else np.mean(each)) for each in (before, after)
    )
    return now / usual if usual >= SHORTEST_NS else None
