"""Does the memory of specmine's processes grow over hours of short lives and new builds?

    .venv/bin/python -m bench.resilience.soak [--hours 3] [--lives 120] [--every 300] [--functions 0]
        [--warm 900] [--results FILE] [--report FILE]

A daemon watches a service that lives on, and the same service started anew ``--lives`` times a minute for a second
each, with a new build each ``--every`` seconds; it is scraped and asked for its status as on any host. Every ten
seconds the bench writes down resident memory and descriptors of each process, and the size of the store. *Slope* is
that of a straight line through the means of twelve equal stretches of time, after the first ``--warm`` seconds, with
its 95 % interval (``bench/lib/slopes.py``). ``--functions`` adds a program of so many functions, all of them to be
watched. ``--report`` prints the table of a run that goes on or is over. Needs root and gcc.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

from bench.lib.driver import TARGETS, built, table
from bench.lib.slopes import Slope, slope
from tests.support.breakpoints import family
from tests.support.product import Daemon, daemon, running

HOUR_S, STEP_S = 3600.0, 10.0
LIFE_S = 1.0
BAR_MB_AN_HOUR = 0.5
"""What is promised of resident memory: the upper end of the interval."""
ROLES = {"holder": "holder", "parser": "reader", "worker.process": "worker", "compiler": "compiler"}
SECTIONS = {
    "metrics": "{listen: '127.0.0.1:0'}",
    "budget": "{overhead: 1%, agent: 1%}",
    "experiments": "{enabled: false}",
}


class Lives:
    """The service as it is started again and again."""

    def __init__(self, folder: Path, a_minute: float, new_build_s: float) -> None:
        self.folder, self.every_s, self.new_build_s = folder, 60.0 / a_minute, new_build_s
        self.path = folder / "redeployed"
        self.builds = self.started = self.failed = 0
        self.children: list[tuple[float, subprocess.Popen[bytes]]] = []
        self.next_s = self.next_build_s = time.monotonic()

    def turn(self) -> None:
        """Start what is due and end what has lived long enough."""
        now_s = time.monotonic()
        if now_s >= self.next_build_s:
            self.next_build_s = now_s + self.new_build_s
            self.deploy()
        while self.next_s <= now_s:
            self.next_s = max(self.next_s + self.every_s, now_s - 1.0)
            self.started += 1
            command = [str(self.path), str(self.folder / "calls")]
            self.children.append((now_s + LIFE_S, subprocess.Popen(command, stdout=subprocess.DEVNULL)))
        for end_s, child in list(self.children):
            if now_s >= end_s:
                self.children.remove((end_s, child))
                child.terminate()
                self.failed += child.wait() != 0

    def deploy(self) -> None:
        """Put a new build at the path."""
        self.builds += 1
        (self.folder / "made").mkdir(exist_ok=True)
        made = built(self.folder / "made", TARGETS / "redeployed.c", f"-Wl,--build-id=0x{self.builds:040x}")
        made.rename(self.path)

    def end(self) -> None:
        """End all."""
        for _, child in self.children:
            child.terminate()
            child.wait()


def many(folder: Path, number: int) -> Path:
    """Compile a program that calls so many functions in turn, and rests."""
    source, each = folder / "many.c", "__attribute__((noinline)) int fn_{0}(int x) {{ return x * {0} + 1; }}\n"
    lines = ["#include <unistd.h>\n", *(each.format(n) for n in range(number))]
    lines += ["int (*all[])(int) = {", *(f"fn_{n}, " for n in range(number)), "};\n"]
    lines += ["int main(void) { for (int n = 0;; n++) { all[n % (sizeof all / sizeof *all)](n);"]
    source.write_text("".join([*lines, " if (n % 50 == 0) usleep(1000); } }\n"]))
    return built(folder, source, "-O1")


def sample(one: Daemon, began_s: float, lives: Lives) -> dict[str, Any]:
    """Return what is seen of the daemon's processes now."""
    assert one.process is not None
    processes: dict[str, dict[str, float]] = {}
    for pid in family(one.process.pid):
        with suppress(OSError):
            command = Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace")
            role = "daemon" if pid == one.process.pid else next((r for w, r in ROLES.items() if w in command), "other")
            resident = int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
            ticks = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]
            descriptors = len(list(Path(f"/proc/{pid}/fd").iterdir()))
            cpu_s = sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK")
            processes[role] = {"mb": resident / 1e6, "descriptors": descriptors, "cpu_s": cpu_s, "pid": pid}
    status = one.ask() or {}
    with suppress(OSError, http.client.HTTPException):  # it is cut off after ten seconds: on a busy host too early
        if status.get("metrics"):
            urllib.request.urlopen(f"http://{status['metrics']}/metrics", timeout=10).read()
    return {
        "seconds": time.monotonic() - began_s,
        "processes": processes,
        "store_mb": sum(each.stat().st_size for each in one.folder.glob("specmine.db*")) / 1e6,
        "lives": lives.started,
        "failed": lives.failed,
        "builds": lives.builds,
        "functions": sum(status.get("functions", {}).values()),
        "restarts": status.get("restarts", {}),
        "lost": status.get("lost", {}),
        "ended": one.process.poll(),
        "warnings": sum(any(w in line for w in ("warning", "error", "Traceback")) for line in one.log.open()),
    }


def soak(seconds: float, a_minute: float, new_build_s: float, functions: int, results: Path) -> None:
    """Run, and write a line every ten seconds."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="specmine-bench-")))
        os.environ["CACHE_DIRECTORY"] = str(folder / "cache")
        (folder / "private").mkdir()
        lives = Lives(folder, a_minute, new_build_s)
        stack.callback(lives.end)
        lives.deploy()
        chosen, sections = f"{{exe: {lives.path}}}", {**SECTIONS, "kill_switch": str(folder / "off")}
        if functions:
            program = many(folder, functions)
            stack.enter_context(running(program))
            chosen, sections["functions"] = f"{chosen}, {{exe: {program}}}", "{watch: ['fn_*', work]}"
        one = stack.enter_context(daemon(folder / "private", programs=f"[{chosen}]", **sections))
        stack.enter_context(running(lives.path, folder / "calls"))
        one.start()
        began_s = next_s = time.monotonic()
        with results.open("a") as file:
            while time.monotonic() < began_s + seconds and one.process and one.process.poll() is None:
                lives.turn()
                if time.monotonic() >= next_s:
                    next_s += STEP_S
                    file.write(json.dumps(sample(one, began_s, lives)) + "\n")
                    file.flush()
                time.sleep(max(0.0, min(lives.next_s, next_s) - time.monotonic()))
        results.with_suffix(".log").write_bytes(one.log.read_bytes())


def report(results: Path, warm_s: float) -> int:
    """Print the table; 1 if a slope may be above the bar, or something ended."""
    lines = [json.loads(line) for line in results.read_text().splitlines()]
    warm = [each for each in lines if each["seconds"] >= warm_s]
    if not warm:
        print(f"{results}: less than {warm_s:.0f} s were written", file=sys.stderr)
        return 1
    rows: list[list[object]] = []
    worst = -1.0
    for role in ("daemon", "holder", "reader", "worker"):
        found = [(each["seconds"] / HOUR_S, each["processes"][role]) for each in warm if role in each["processes"]]
        if len(found) < len(warm) // 2 or not found:
            rows.append([role, *([f"there {len(found)} of {len(warm)} times"] + ["-"] * 5)])
            continue
        hours = [each for each, _ in found]
        megabytes = slope(hours, [process["mb"] for _, process in found])
        descriptors = slope(hours, [process["descriptors"] for _, process in found])
        worst = max(worst, megabytes.high)
        counts = [process["descriptors"] for _, process in found]
        first, last = statistics.mean(p["mb"] for _, p in found[:30]), statistics.mean(p["mb"] for _, p in found[-30:])
        cpu = (found[-1][1]["cpu_s"] - found[0][1]["cpu_s"]) / max(1e-9, (hours[-1] - hours[0]) * HOUR_S)
        spread = f"{min(counts)} to {max(counts)}"
        rows.append([role, f"{first:.1f}", f"{last:.1f}", shown(megabytes), spread, shown(descriptors), f"{cpu:.2%}"])
    store = slope([each["seconds"] / HOUR_S for each in warm], [each["store_mb"] for each in warm])
    head = ("process", "first 5 min, MB", "last 5 min, MB", "slope, MB an hour", "descriptors", "slope an hour", "CPU")
    table(head, rows)
    last = lines[-1]
    lived = f"{last['lives']} lives ({last['failed']} failed), {last['builds']} builds, {last['functions']} functions"
    print(f"{last['seconds'] / HOUR_S:.2f} hours, {lived}")
    print(f"store: {last['store_mb']:.1f} MB, {shown(store)} MB an hour")
    print(f"lost {last['lost']}; started anew {last['restarts']}; warnings and errors in the log: {last['warnings']}")
    return 1 if worst > BAR_MB_AN_HOUR or last["ended"] is not None or last["failed"] else 0


def shown(of: Slope) -> str:
    """Return a slope with its interval."""
    return f"{of.value:+.2f} ({of.low:+.2f} to {of.high:+.2f})"


def main() -> int:
    """Soak, or tell what came of it."""
    parser = argparse.ArgumentParser(description="Memory, descriptors and store over hours.")
    parser.add_argument("--hours", type=float, default=3.0)
    parser.add_argument("--lives", type=float, default=120.0, help="a minute")
    parser.add_argument("--every", type=float, default=300.0, help="seconds from one build to the next")
    parser.add_argument("--warm", type=float, default=900.0, help="seconds at the start that do not count")
    parser.add_argument("--functions", type=int, default=0, help="of a second program")
    parser.add_argument("--results", type=Path, default=Path("soak.ndjson"))
    parser.add_argument("--report", type=Path)
    options = parser.parse_args()
    if options.report:
        return report(options.report, options.warm)
    if os.geteuid() != 0:
        print("bench.resilience.soak: needs root", file=sys.stderr)
        return 4
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # what was started is ended then too
    soak(options.hours * HOUR_S, options.lives, options.every, options.functions, options.results)
    return report(options.results, options.warm)


if __name__ == "__main__":
    raise SystemExit(main())
