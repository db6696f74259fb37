"""Does anything of a killed daemon stay in the program that it watched?

    .venv/bin/python -m bench.overhead.killed_daemon [--times 100] [--program forks|paths] [--most 3]

A daemon watches a program under load and is killed (SIGKILL) at a random moment, again and again, with the same store.
Every CPU is busy twice over. For each kill the bench prints how many probes were in the program's text just before, and
how long it took until its executable pages were again what the files say. It also prints how many observations the
store held, and how many the next daemon knew at its start. Needs root and gcc.
"""

from __future__ import annotations

import argparse
import os
import random
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

from tests.support.killing import FREE_S, Kill, kill  # noqa: E402
from tests.support.product import daemon, running  # noqa: E402

ARGUMENTS = {"forks": ["64"], "paths": []}


def main() -> int:
    """Kill and report; 0 if every promise held every time."""
    parser = argparse.ArgumentParser(description="What a killed daemon leaves behind.")
    parser.add_argument("--times", type=int, default=100)
    parser.add_argument("--program", choices=list(ARGUMENTS), default="forks")
    parser.add_argument("--most", type=float, default=3.0, help="longest time before the kill, in seconds")
    options = parser.parse_args()
    if os.geteuid() != 0:
        print("bench.overhead.killed_daemon: needs root", file=sys.stderr)
        return 4
    with tempfile.TemporaryDirectory(prefix="specmine-bench-") as folder:
        program = built(Path(folder), options.program)
        return report(list(kills(Path(folder), program, options.times, options.most)), options.times)


def kills(folder: Path, program: Path, times: int, most_s: float) -> Iterator[Kill]:
    """Kill one daemon after the other; each tenth while it starts, the others once its probes are on."""
    chance = random.Random(1)
    with (
        running(program, times * 60, *ARGUMENTS[program.name]) as child,
        daemon(folder, programs=f"[{{exe: {program}}}]") as one,
    ):
        one.start()
        print("  kill  moment  probes  free in   stored  restored")
        for number in range(times):
            found = kill(one, child.pid, chance.uniform(0, most_s), at_start=number % 10 == 9)
            if child.poll() is not None:
                print(f"the program ended with {child.returncode}")
                return
            counts = f"{sum(found.stored.values()):7} {sum(found.restored.values()):9}"
            line = f"{number + 1:6} {found.moment_s:5.2f} s {found.probes:7} {found.free_s * 1e3:5.0f} ms {counts}"
            print(line, flush=True)
            yield found


def report(found: list[Kill], times: int) -> int:
    """Print what came out of all; 0 if it is good."""
    free = [each.free_s for each in found]
    late = sum(each > FREE_S for each in free)
    forgot = sum(not each.continued for each in found)
    print(
        f"the program lived through {len(found)} of {times} kills, {sum(each.probes > 0 for each in found)} with probes"
    )
    print(f"probes gone after {statistics.median(free) * 1e3:.0f} ms (median), {max(free) * 1e3:.0f} ms (longest)")
    print(f"later than {FREE_S * 1e3:.0f} ms: {late}; restarted knowing less than the store: {forgot}")
    return 1 if len(found) < times or late or forgot else 0


def built(folder: Path, name: str) -> Path:
    """Compile a target program."""
    source = ROOT / "tests" / "programs" / f"{name}.c"
    subprocess.run(
        ["gcc", "-O2", "-fno-omit-frame-pointer", "-o", folder / name, source, "-lm", "-lpthread"], check=True
    )
    return folder / name


if __name__ == "__main__":
    raise SystemExit(main())
