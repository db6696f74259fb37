"""Does watching libc's malloc and semop in one program slow down another program that calls them too?

    .venv/bin/python -m bench.overhead.bystander [--pairs 8] [--seconds 3]

64 prefork workers are mined, and not mined, in turn. A control program that nobody chose runs on a CPU of its own and
times its own calls of malloc and semop. For each pair and in all, the bench prints the ratio of its medians, with
mining to without. Needs root and two CPUs.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SPECMINE = Path(sys.executable).parent / "specmine"
PROMISE = 0.005
QUANTITIES = ("malloc_ns", "semop_ns")
Command = Sequence[str | Path]


def main() -> int:
    """Measure; 0 if the control program keeps its speed."""
    parser = argparse.ArgumentParser(description="What watching libc costs a bystander.")
    parser.add_argument("--pairs", type=int, default=8)
    parser.add_argument("--seconds", type=int, default=3, help="length of each run of the control program")
    options = parser.parse_args()
    if os.geteuid() != 0 or (os.cpu_count() or 1) < 2:
        print("bench.overhead.bystander: needs root and two CPUs", file=sys.stderr)
        return 4
    with tempfile.TemporaryDirectory(prefix="specmine-bench-") as folder:
        return measure(Path(folder), options.pairs, options.seconds)


def measure(folder: Path, pairs: int, seconds: int) -> int:
    """Run the pairs, the order changing, and print what came out."""
    control, forks = built(folder, "control"), built(folder, "forks")
    others, own = "0", str((os.cpu_count() or 2) - 1)
    ratios: dict[str, list[float]] = {name: [] for name in QUANTITIES}
    length = str(pairs * (2 * seconds + 20))
    with running(["taskset", "-c", others, forks, length, "64", "50000"]) as workers:
        for pair in range(pairs):
            found: dict[bool, dict[str, float]] = {}
            for watched in (True, False) if pair % 2 else (False, True):
                found[watched] = timed(control, own, seconds, workers.pid if watched else None)
            for name in QUANTITIES:
                ratios[name].append(found[True][name] / found[False][name])
            line = "  ".join(f"{name} {found[False][name]:.1f} -> {found[True][name]:.1f}" for name in QUANTITIES)
            print(f"pair {pair + 1}: {line}", flush=True)
    worst = 0.0
    for name in QUANTITIES:
        middle = statistics.median(ratios[name])
        spread = statistics.stdev(ratios[name]) / len(ratios[name]) ** 0.5 if pairs > 1 else float("nan")
        worst = max(worst, middle - 1)
        print(f"{name}: watched / unwatched = {middle:.4f} (standard error of the mean {spread:.4f})")
    print(f"the control program is slowed down by at most {worst:.2%}; promised: {PROMISE:.1%}")
    return 0 if worst <= PROMISE else 1


def timed(control: Path, cpu: str, seconds: int, watched: int | None) -> dict[str, float]:
    """Run the control program once, while the workers are mined if their pid is given."""
    command: Command = ["taskset", "-c", cpu, control, str(seconds)]
    if watched is None:
        return read(command)
    hints = ("--function", "malloc", "--function", "semop")
    mine: Command = ["taskset", "-c", "0", SPECMINE, "mine", "-p", str(watched), *hints]
    with running(mine, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:
        assert process.stderr is not None
        for line in process.stderr:
            if b"timing" in line or b"explaining" in line:  # the probes are on
                break
        else:
            raise SystemExit(f"bench.overhead.bystander: specmine mine ended with {process.wait()}")
        found = read(command)
        if process.poll() is not None:
            raise SystemExit("bench.overhead.bystander: specmine mine ended before the control program did")
        return found


def read(command: Command) -> dict[str, float]:
    """Run a target program and return its counts."""
    counts: dict[str, float] = json.loads(subprocess.run(list(command), check=True, stdout=subprocess.PIPE).stdout)
    return counts


def built(folder: Path, name: str) -> Path:
    """Compile a target program."""
    source = ROOT / "tests" / "programs" / f"{name}.c"
    subprocess.run(["gcc", "-O2", "-o", folder / name, source, "-lm", "-lpthread"], check=True)
    return folder / name


@contextmanager
def running(command: Command, **streams: int) -> Iterator[subprocess.Popen[bytes]]:
    """Run a command in the background, ended in order at the end."""
    process = subprocess.Popen(list(command), stdin=subprocess.DEVNULL, **streams)  # type: ignore[call-overload]
    try:
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=20)


if __name__ == "__main__":
    raise SystemExit(main())
