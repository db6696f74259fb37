"""Do the clients of running servers feel the faults that bench.faults.live injects?

    .venv/bin/python -m bench.faults.felt [PROGRAM...] [--seconds 15] [--only REGEX]

No specmine runs. For each fault, the mean time of a request by the clients' own account is taken before it, during it
and after it was undone. Of harmless ones it must stay the same. Needs root and the packages of the programs.
"""

from __future__ import annotations

import argparse
import re
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from bench.faults.programs import apache, mariadb
from bench.lib.child_processes import in_order
from bench.lib.driver import table

PROGRAMS = {"apache": apache.served, "mariadb": mariadb.served}
SETTLE_S = 3.0
Account = Callable[[], tuple[float, float]]


def mean_ms(account: Account, seconds: float) -> float:
    """Return the mean time of the requests of the next seconds, ms."""
    time.sleep(SETTLE_S)
    before = account()
    time.sleep(seconds)
    requests, took = (new - old for new, old in zip(account(), before, strict=True))
    return 1e3 * took / requests if requests else float("nan")


def main() -> int:
    """Try each fault; 0."""
    parser = argparse.ArgumentParser(description="What clients feel of the faults.")
    parser.add_argument("programs", nargs="*", metavar="PROGRAM", help=f"of {', '.join(PROGRAMS)}; all by default")
    parser.add_argument("--seconds", type=float, default=15)
    parser.add_argument("--only", default="", help="faults whose name matches this")
    options = parser.parse_args()
    in_order()
    rows = []
    for name in options.programs or PROGRAMS:
        with tempfile.TemporaryDirectory(dir="/var/tmp") as where, PROGRAMS[name](Path(where)) as service:
            account = service.clients
            assert account is not None
            time.sleep(SETTLE_S)
            usual = mean_ms(account, options.seconds)
            for fault in service.faults:
                if not re.search(options.only, fault.name):
                    continue
                fault.inject()
                during = mean_ms(account, options.seconds)
                fault.undo()
                after = mean_ms(account, options.seconds)
                rows.append(
                    (name, fault.name, f"{usual:.2f}", f"{during:.2f}", f"{after:.2f}", f"{during / usual:.2f}")
                )
                print(rows[-1], flush=True)
                usual = after
    table(("program", "fault", "before, ms", "during, ms", "after, ms", "times"), rows)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
