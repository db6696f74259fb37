"""Does mining find the truth every time, and how soon?

    .venv/bin/python -m bench.truth.mine [--times 10] [--seconds 30]

It mines ``paths`` (the function z is fast over the call edge b->c and mixed elsewhere) and ``single`` (one behaviour)
again and again, and compares the result with what the programs count. Needs root, gcc, and a host with idle CPUs: where
other programs preempt these, their durations are not what they were written to be.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]

from tests.support.truth import function_named, seconds_until_settled, wrong_about_paths, wrong_about_single  # noqa: E402

SPECMINE = Path(sys.executable).parent / "specmine"
TOLD = {"paths": "z", "single": "smooth"}


def main() -> int:
    """Mine and compare; 0 if every run was right."""
    parser = argparse.ArgumentParser(description="How often and how soon mining finds the truth.")
    parser.add_argument("--times", type=int, default=10)
    parser.add_argument("--seconds", type=int, default=30)
    options = parser.parse_args()
    if os.geteuid() != 0:
        print("bench.truth.mine: needs root", file=sys.stderr)
        return 4
    right = 0
    with tempfile.TemporaryDirectory(prefix="specmine-bench-") as folder:
        for name, function in TOLD.items():
            program = built(Path(folder), name)
            print(f"{name}: {function}\n   run  settled after  windows  border   behaviours and shares")
            right += sum(one_run(program, number + 1, options.seconds) for number in range(options.times))
    print(f"right: {right} of {len(TOLD) * options.times}")
    return 0 if right == len(TOLD) * options.times else 1


def one_run(program: Path, number: int, seconds: int) -> bool:
    """Mine once and print a line; return True if the result is right."""
    recording = program.with_suffix(".recording")
    options = ["--duration", str(seconds), "--format", "json", "--record", str(recording)]
    done = subprocess.run(
        [SPECMINE, "mine", *options, "--", program, str(seconds + 60)], check=False, capture_output=True, text=True
    )
    if not done.stdout:
        print(f"{number:6}  {done.stderr}")
        return False
    document = json.loads(done.stdout)
    counts = json.loads(next(line for line in done.stderr.splitlines() if line.startswith("{")))
    wrong = wrong_about_paths(document, counts) if program.name == "paths" else wrong_about_single(document)
    settled = seconds_until_settled(recording, TOLD[program.name])
    print(f"{number:6}  {settled or 0:11.1f} s  {described(function_named(document, TOLD[program.name]))}", flush=True)
    if wrong:
        print(f"        WRONG: {wrong}", flush=True)
    return not wrong


def described(function: Mapping[str, Any]) -> str:
    """Return windows, borders and behaviours of a function."""
    borders = " ".join(f"{each * 1e6:.1f} us" for each in function["borders_seconds"]) or "none"
    shares = ", ".join(
        f"{each['expression']}: {' '.join(f'{share:.3f}' for share in each['shares'])}"
        for each in function["behaviours"]
    )
    return f"{function['observations']:7}  {borders:7}  {shares}"


def built(folder: Path, name: str) -> Path:
    """Compile a target program."""
    source = ROOT / "tests" / "programs" / f"{name}.c"
    flags = ["-O2", "-fno-omit-frame-pointer"]
    subprocess.run(["gcc", *flags, "-o", folder / name, source, "-lm"], check=True)
    return folder / name


if __name__ == "__main__":
    raise SystemExit(main())
