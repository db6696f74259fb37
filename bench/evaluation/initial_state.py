"""Do executions of stock programs differ by more than the calls inside one: Kalibera's random initial state?

    .venv/bin/python -m bench.evaluation.initial_state [PROGRAM...] [--executions 6] [--seconds 6] [--budget 5%]
        [--folder DIR]

The headline experiment of Kalibera, Bulej and Tuma (Benchmark Precision and Random Initial State, SPECTS 2005).
Programs are started anew for each execution, under the loads of bench/lib/server_load.py, and mined. For each
function that five executions have, the impact factor of the random initial state is computed from single calls: the
spread of calls of different executions over that of one. *Centred*: each execution's trimmed mean is subtracted
first. *Medians* are the least and the largest median of an execution. Results found in the folder are used again.
Needs root, gcc and the packages of server_load.py.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

import numpy as np

from bench.evaluation.models import mined
from bench.lib.driver import table
from bench.lib.server_load import NAMES
from specmine.analysis.lifetimes.from_store import from_store
from specmine.mining.regression.within_lifetime import within_of

DEFAULT = ("redis-server", "xz")


def rows_of(name: str, stores: list[Path]) -> list[list[str]]:
    """Return a row for each function that enough executions have, the largest impact factor first."""
    found = defaultdict(list)
    for store in stores:
        for each in from_store(store):
            if each.drawn_ns is not None:
                found[each.key].append(each.drawn_ns)
    rows = []
    for (function, module), runs in sorted(found.items()):
        within = within_of((), runs)
        if within.impact is None or within.centred is None:
            continue
        medians = [float(np.median(run)) * 1e-3 for run in runs]
        shown = [name, f"{function} ({module})", str(within.sampled), f"{min(medians):.3g} to {max(medians):.3g}"]
        rows.append((within.impact, [*shown, f"{within.impact:.2f}", f"{within.centred:.2f}"]))
    return [row for _, row in sorted(rows, key=lambda pair: -pair[0])]


def main() -> int:
    """Mine and print a table; 0."""
    parser = argparse.ArgumentParser(description="Impact factors of the random initial state of stock programs.")
    parser.add_argument("program", nargs="*", help=f"of {', '.join(NAMES)}; default: {', '.join(DEFAULT)}")
    parser.add_argument("--executions", type=int, default=6)
    parser.add_argument("--seconds", type=int, default=6)
    parser.add_argument("--budget", default="5%")
    parser.add_argument("--folder", type=Path, help="keeps the results, and has those of an earlier run")
    options = parser.parse_args()
    if unknown := set(options.program) - set(NAMES):
        parser.error(f"no program {', '.join(sorted(unknown))}; known: {', '.join(NAMES)}")
    if os.geteuid() != 0:
        print("bench.evaluation.initial_state: needs root", file=sys.stderr)
        return 4
    rows = []
    with tempfile.TemporaryDirectory(prefix="specmine-bench-") as temporary:
        folder = options.folder or Path(temporary)
        folder.mkdir(exist_ok=True)
        for name in options.program or DEFAULT:
            numbers = range(1, options.executions + 1)
            rows += rows_of(name, [mined(name, each, folder, options.seconds, options.budget) for each in numbers])
    table(("program", "function", "executions", "medians, us", "impact factor", "centred"), rows)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
