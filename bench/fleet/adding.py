"""What does it cost to add up the hours of one function over a whole fleet?

    .venv/bin/python -m bench.fleet.adding [--hosts 1000] [--hours 24]

Rows as the database holds them, 1,000 calls each: with durations alone, and with 60 call paths. They are drawn 200
times and repeated. *Hours of the fleet* are what these come to, one for each hour. Needs no database.
"""

from __future__ import annotations

import argparse
import resource
import sys
import time

import numpy as np

from bench.fleet.collect import CALLS, observation
from bench.lib.driver import table
from specmine.fleet.codec import encode_histograms, encode_path_numbers, encode_paths
from specmine.fleet.sums import RowBytes, histogram_sum, summed

DRAWN, AT_ONCE = 200, 4000


def main() -> int:
    """Run it and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hosts", type=int, default=1000)
    parser.add_argument("--hours", type=int, default=24)
    given = parser.parse_args()
    number, rng = given.hosts * given.hours, np.random.default_rng(1)
    drawn, centres = [], np.array([9.0, 11.5])
    for _ in range(DRAWN):
        seen = observation("ab+0x40", "boot:1:1", rng, paths=True, centres=centres)
        ids = [int(one.path.frames[-1].name[1:]) for one in seen.paths]
        drawn.append(RowBytes(counts=encode_histograms((seen.histogram,)), paths=encode_paths(seen.paths),
                              path_ids=encode_path_numbers(ids)))  # fmt: skip
    each_row = [drawn[at % DRAWN] for at in range(number)]
    plain = [RowBytes(counts=each.counts, paths=None, path_ids=None) for each in each_row]
    rows = []
    for what, chosen in (("durations alone", plain), ("60 call paths", each_row)):
        began = time.process_time()
        hours = _hours(chosen, given.hosts)
        took = time.process_time() - began
        rows.append([f"{number:,} host-hours, {what}", f"{took:.2f} s", f"{took / number * 1e6:.0f} us"])
        began = time.process_time()
        whole = summed(hours, np.zeros(len(hours), np.int64), 1)[0]
        rows.append([f"{len(hours)} hours of the fleet, {what}", f"{(time.process_time() - began) * 1e3:.1f} ms", "-"])
        assert histogram_sum([whole.counts]).total == number * CALLS
    table(["added up", "CPU time", "of a row"], rows)
    print(f"\nmemory of the bench at most: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB")
    return 0


def _hours(rows: list[RowBytes], hosts: int) -> list[RowBytes]:
    """Return one row for each hour, some thousand rows at a time as when hours are folded."""
    found = []
    for first in range(0, len(rows), hosts):
        chosen = rows[first : first + hosts]
        parts = [chosen[at : at + AT_ONCE] for at in range(0, len(chosen), AT_ONCE)]
        sums = [summed(part, np.zeros(len(part), np.int64), 1)[0] for part in parts]
        found.append(sums[0] if len(sums) == 1 else summed(sums, np.zeros(len(sums), np.int64), 1)[0])
    return found


if __name__ == "__main__":
    sys.exit(main())
