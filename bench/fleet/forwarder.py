"""What does a host pay for the process that sends to the fleet?

    .venv/bin/python -m bench.fleet.forwarder [--contacts 8] [--functions 200]

Before each contact the store gets five minutes of all functions, five windows each. The forwarder is the process that
the timer starts: imports, store, TLS, push and duties are in its CPU time. A timer starts it each 300 s.
Needs PostgreSQL's binaries.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np

from bench.fleet.collect import SECOND, centres_of, observation
from bench.lib.bytecode import compiled
from bench.lib.driver import table
from bench.lib.tools.child_usage import child_usage
from specmine.fleet.database.schema import initialize
from specmine.model.function import Function
from specmine.store import Host, Writes, open_store
from tests.support.fleet_killing import configured
from tests.support.fleets import EnrolledHost, enrolled, load_all
from tests.support.paths import ROOT
from tests.support.postgres import running
from tests.support.stored import UTC

EVERY_S, WINDOWS = 300, 5


def main() -> int:
    """Run it and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--contacts", type=int, default=8)
    parser.add_argument("--functions", type=int, default=200)
    given = parser.parse_args()
    compiled()
    with tempfile.TemporaryDirectory(prefix="specmine-bench-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        with running(folder / "server") as server:
            url = server.url(server.new_database())
            initialize(url)
            host = enrolled(server, url, folder, "h0")
            used = []
            for at in range(given.contacts):
                _observe(host, at, given.functions)
                used.append(_contact(host))
            load_all(url)
    cpu = [each[0] for each in used[1:]]
    rows = [
        ["CPU time of the first contact, s", f"{used[0][0]:.2f}"],
        ["of a later one, median, s", f"{np.median(cpu):.2f}"],
        [f"share of a CPU, each {EVERY_S} s", f"{100 * float(np.median(cpu)) / EVERY_S:.2f} %"],
        ["memory at most, MB", f"{max(each[1] for each in used):.0f}"],
    ]
    table(["forwarder", "measured"], rows)
    return 0


def _observe(host: EnrolledHost, number: int, functions: int) -> None:
    """Write five minutes of all functions into the host's store."""
    rng = np.random.default_rng(number)
    names = [
        Function(build_id="ab", offset=64 * at, name=f"f{at}", module="app", in_program=True)
        for at in range(1, functions + 1)
    ]
    windows = []
    for at, each in enumerate(names):
        centres = centres_of(np.random.default_rng(at))
        for part in range(WINDOWS):
            seen = observation(each.key, host.lifetime.id, rng, paths=at % 10 < 3, centres=centres)
            start_ns = (1 + number * EVERY_S + part * EVERY_S // WINDOWS) * SECOND
            windows.append(replace(seen, start_ns=start_ns, end_ns=start_ns + 10 * SECOND))
    told = Host(boot_id=host.boot_id, hostname=host.name, utc_offset_ns=UTC, facts={"kernel": "6.18"})
    with open_store(host.config.store.path) as store:
        store.write(Writes((told, host.lifetime, *names, *windows)), UTC + (number + 1) * EVERY_S * SECOND)


def _contact(host: EnrolledHost) -> tuple[float, float]:
    """Let the forwarder run once; return its CPU time, s, and its largest memory, MB."""
    used = child_usage(
        [sys.executable, "-m", "specmine.fleet.forwarding.main", "--config", configured(host)],
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        cwd=ROOT,
    )
    return used.cpu_s, used.peak_mb


if __name__ == "__main__":
    sys.exit(main())
