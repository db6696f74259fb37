"""The demo of a fleet: three hosts, one slow, one with a newer build; the fleet says which is what.

    make fleet-demo      (or: .venv/bin/python -m examples.fleet.run [--seconds 240] [--restarts 4])

Needs root, gcc and PostgreSQL's binaries. The hosts are this machine with a name and a boot of its own for each, in
namespaces. Each runs specmined and a small server; that of web-2 has 2.3 times as much to do. web-3 gets a build in
which one function is slower. What hosts learn goes over TLS to a PostgreSQL in a temporary folder. All that was started
is stopped at the end, and the folder removed.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from examples.fleet.host import DemoHost, compiled
from specmine.fleet.database.centre.serving import serve
from specmine.fleet.database.connecting import connected
from specmine.fleet.database.levels import FleetRetention
from specmine.fleet.database.schema import initialize
from specmine.store import Build, Writes, open_store
from tests.support.postgres import Postgres, binaries, running

WINDOWS = 2  # of each function in each lifetime, if there is time
LEAST_S = 12  # of each lifetime; of the time beyond that one takes half at most
SLOW, UPGRADED, REGRESSED = "web-2", "web-3", "parse"
SLOWNESS = "2.3"
OUTLIERS = re.compile(r"specmine_fleet_outlier_hosts? |specmine_fleet_outlier_host_factor_ratio\{")


def main() -> int:
    """Run the demo; 0 if the slow host and the new build's function are named."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=240, help="at most, of all lifetimes of the programs")
    parser.add_argument("--restarts", type=int, default=4, help="lifetimes of each build")
    given = parser.parse_args()
    if os.geteuid() != 0 or binaries() is None or shutil.which("gcc") is None:
        print("fleet-demo: needs root, gcc, and PostgreSQL (package postgresql)")
        return 4
    began = time.monotonic()
    print(f"Three hosts run the same server, each with specmined. {SLOW} has {SLOWNESS} times as much to do for each"
          f" call.\nThen {UPGRADED} gets build v2, in which {REGRESSED}() takes 1.5 times as long. Will the fleet tell"
          " which is which?\n", flush=True)  # fmt: skip
    with ExitStack() as stack:
        folder = Path(tempfile.mkdtemp(prefix="specmine-fleet-"))
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        folder.chmod(0o755)
        server = stack.enter_context(running(folder / "server", fsync=True))
        url = started(server)
        builds = {"v1": compiled(folder, "v1"), "v2": compiled(folder, "v2", "-DPARSE=60000")}
        fleet = [
            DemoHost(name=name, folder=folder / name, environment={"SLOWNESS": SLOWNESS if name == SLOW else "1"})
            for name in ("web-1", SLOW, UPGRADED)
        ]
        for each in fleet:
            each.enroll(url, server.tls_url(url.partition("@/")[2].partition("?")[0]), server.authority)
            each.install(builds["v1"])
            stack.callback(each.close)
        live(fleet, builds, given)
        metrics = folder / "fleet.prom"
        collect(fleet, url, builds, metrics)
        ok = told(url, metrics)
    print(f"\nfleet-demo: {time.monotonic() - began:.0f} s; {'as it should be' if ok else 'NOT as it should be'}")
    return 0 if ok else 1


def started(server: Postgres) -> str:
    """Return the URL of a new fleet."""
    url = server.url(server.new_database())
    initialize(url)
    return url


def live(fleet: list[DemoHost], builds: dict[str, Path], given: argparse.Namespace) -> None:
    """Let the hosts work: some lifetimes with the first build, then with the newer one on the last host."""
    for each in fleet:
        each.restart_program()
        each.start_daemon()
    for each in fleet:
        each.wait_for_store(60)
    end, left = time.monotonic() + given.seconds, given.restarts * len(builds)
    for build, path in builds.items():
        others = "All hosts run" if build == "v1" else f"{fleet[-1].name} runs"
        print(f"{others} build {build}; each program is started {given.restarts} times.", flush=True)
        fleet[-1].install(path)
        for _ in range(given.restarts):
            for each in fleet:
                each.restart_program()
            now, left = time.monotonic(), left - 1
            until = now + max(LEAST_S, (end - now - left * LEAST_S) / 2)
            while time.monotonic() < until and min(each.windows() for each in fleet) < WINDOWS:
                time.sleep(0.5)
        for each in fleet:
            each.forward()


def collect(fleet: list[DemoHost], url: str, builds: dict[str, Path], metrics: Path) -> None:
    """End the daemons, name the builds, send the rest, load it, and write metrics."""
    labels = {build_id(path): label for label, path in builds.items()}
    for each in fleet:
        each.close()
        with open_store(each.store) as store:
            known = {one.build_id for one in store.read(Build)}
            named = [Build(build_id=one, label=label) for one, label in labels.items() if one in known]
            store.write(Writes(tuple(named)), time.time_ns())
        each.forward()
    served = serve(url, FleetRetention(), once=True, tell=print, metrics=metrics)
    print(f"The fleet's database holds {served.rows} rows of {len(fleet)} hosts; it refused {served.refused} pushes.")
    with connected(url, autocommit=True) as db:
        for row in db.execute("SELECT why FROM specmine.refused"):
            print(f"refused: {row['why']}")


def told(url: str, metrics: Path) -> bool:
    """Show what the commands and the metrics say, and return whether it is true."""
    print(f"\n$ export SPECMINE_FLEET='{url}'")
    levels = command(url, "fleet", "levels")
    comparison = ("compare", "--fleet", url, "--host", UPGRADED, "v1", "v2")
    command(url, *comparison)
    text = command(url, *comparison, "--format", "json", show=False)
    document: dict[str, Any] = json.loads(text) if text else {"functions": [], "machine_code": {"suspects": []}}
    worse = [each["function"] for each in document["functions"] if each["verdict"] == "worse"]
    changed = [each["function"] for each in document["machine_code"]["suspects"] if each["code"] == "changed"]
    series = [line for line in metrics.read_text(encoding="utf-8").splitlines() if OUTLIERS.match(line)]
    print("Metrics of the fleet, for Prometheus:", *series, sep="\n  ")
    print(f"\nSo {SLOW} is slow as a host, in all of its functions. Build v2 is slower in"
          f" {', '.join(worse) or 'nothing'}; its code changed in {', '.join(changed) or 'nothing'}.")  # fmt: skip
    alone = f"{SLOW} alone is slower" in levels and levels.count("alone is") == 1
    named = len(series) == 2 and f'host="{SLOW}"' in series[1]
    return alone and named and REGRESSED in worse and changed == [REGRESSED]


def command(url: str, *arguments: str, show: bool = True) -> str:
    """Run a command of specmine, and return what it prints."""
    done = subprocess.run(
        [sys.executable, "-m", "specmine.cli", *arguments], check=False, capture_output=True, text=True,
        env={**os.environ, "SPECMINE_FLEET": url},
    )  # fmt: skip
    if show:
        shown = " ".join('"$SPECMINE_FLEET"' if each == url else each for each in arguments)
        print(f"\n$ specmine {shown}\n{done.stdout}{done.stderr}", flush=True)
    return done.stdout


def build_id(path: Path) -> str:
    """Return the build-id of a file."""
    notes = subprocess.run(["readelf", "-n", path], check=True, capture_output=True, text=True).stdout
    return notes.partition("Build ID: ")[2].split()[0]


if __name__ == "__main__":
    sys.exit(main())
