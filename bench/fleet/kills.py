"""Is anything lost or counted twice when all that makes up a fleet is killed amid traffic?

    .venv/bin/python -m bench.fleet.kills [--kills 60] [--hosts 2] [--seconds S] [--seed 1]

Hosts write windows to their stores and send them over TLS with processes of their own. In turn the database with all
its backends, the loader, a forwarder, the planner, or the analyst gets SIGKILL at a random moment. In the end
the windows of all stores are compared with what arrived, by a hash of each lifetime's counts, paths and times. What
hosts are told is compared with the tables of duties. Needs PostgreSQL's binaries.
"""

from __future__ import annotations

import argparse
import math
import sys
import tempfile
import time
from pathlib import Path

from bench.lib.driver import table
from specmine.fleet.database.schema import initialize
from tests.support.fleet_killing import KilledFleet
from tests.support.postgres import running


def main() -> int:
    """Run it; exit 1 if contents differ."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=60)
    parser.add_argument("--hosts", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=math.inf, help="end after so long, whatever was killed")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="specmine-bench-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        with running(folder / "server", fsync=True) as server:
            url = server.url(server.new_database())
            initialize(url)
            fleet = KilledFleet(postgres=server, url=url, folder=folder, seed=given.seed)
            began = time.monotonic()
            observed, arrived = fleet.run(hosts=given.hosts, kills=given.kills, seconds=given.seconds)
            planned = fleet.planned()
    equal = sum(observed[key] == arrived.get(key) for key in observed)
    rows = [[what, str(number)] for what, number in sorted(fleet.kills.items())]
    rows += [
        ["lifetimes equal by hash", f"{equal} of {len(observed)}"],
        ["duties as told", str(planned)],
        ["seconds", f"{time.monotonic() - began:.0f}"],
    ]
    table(["killed", "times"], rows)
    return 0 if observed == arrived and planned else 1


if __name__ == "__main__":
    sys.exit(main())
