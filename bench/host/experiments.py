"""Are the host's derived properties true, and does deriving them disturb other programs?

    .venv/bin/python -m bench.host.experiments [PART...] [--wait 60]

These are the acceptance checks that need a quiet machine. Each has a truth of its own: slices forced through
sched_setattr, limits set on a group, pinned tasks, a foreign task started on purpose, a production loop next to the
experiment. Each repeats until a quiet second is found, or reports that there was none. The parts are slices, thesis,
shares, quotas, cores, host, balance, disturbed, production and loop (bench/host/checks/). Needs root, gcc, perf and
strace.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from bench.host.checks.disturbance import disturbed, production
from bench.host.checks.limits import cores, quotas
from bench.host.checks.scheduling import balance, shares, slices, thesis
from bench.host.checks.table import Bench, Table
from bench.host.checks.timers import host, loop
from bench.lib.child_processes import in_order

PARTS: dict[str, Callable[[Bench, Table], None]] = {
    "slices": slices,
    "thesis": thesis,
    "shares": shares,
    "quotas": quotas,
    "cores": cores,
    "host": host,
    "balance": balance,
    "disturbed": disturbed,
    "production": production,
    "loop": loop,
}


def main() -> int:
    """Run the parts asked for; 1 if a check failed."""
    parser = argparse.ArgumentParser(description="Are the host's derived properties true?")
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], metavar="PART")
    parser.add_argument("--wait", type=float, default=60.0, help="seconds to wait for a quiet host, each time")
    options = parser.parse_args()
    in_order()
    if os.geteuid() != 0:
        print("bench.host.experiments: needs root", file=sys.stderr)
        return 4
    table = Table()
    print("| check | expected | found | |\n| --- | --- | --- | --- |")
    with tempfile.TemporaryDirectory(prefix="specmine-bench-") as folder:
        bench = Bench(options.wait, Path(folder))
        for part in options.parts or PARTS:
            PARTS[part](bench, table)
    print(f"{table.failed} failed, {table.unknown} withheld: no quiet second was found")
    return 1 if table.failed else 0


if __name__ == "__main__":
    sys.exit(main())
