"""Feed damaged input to the product: no crash, no hang, no traceback, bounded memory, one clear line.

    .venv/bin/python -m tests.support.fuzz.run [--count 1000] [--seed 1] [--keep FOLDER] [KIND...]

Without a KIND: all, ten times as many ELF files as others. Files that broke a rule are copied to the folder named by
``--keep``.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib
import os
import random
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tests.support.fuzz import configurations, conversations, documents, elf, imports, recordings, stores
from tests.support.fuzz.attempt import Attempt, Fuzzer
from tests.support.fuzz.victim import Done, broken_rule, run_forked

FUZZERS: Mapping[str, Fuzzer] = {
    "stores": stores.attempts,
    "recordings": recordings.attempts,
    "configurations": configurations.attempts,
    "imports": imports.attempts,
    "documents": documents.attempts,
}
"""Fuzzers whose attempts are command lines."""
KINDS = ("elf", *FUZZERS, "conversations")
_COMMANDS = ("status", "functions", "show", "assertions", "violations", "export", "report", "merge", "check", "compare")


@dataclass
class Result:
    """What became of the attempts of one kind."""

    attempts: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)
    """Exit codes, or kinds of answers."""
    slowest_s: float = 0.0
    """CPU time."""
    peak_bytes: int = 0
    faults: list[str] = field(default_factory=list)

    def add(self, name: str, attempt: Attempt, done: Done, before: bytes | None) -> bool:
        """Take in one outcome; return whether it broke a rule."""
        self.attempts += 1
        self.outcomes[str(done.code)] += 1
        self.slowest_s = max(self.slowest_s, done.cpu_s)
        self.peak_bytes = max(self.peak_bytes, done.peak_bytes)
        broken = broken_rule(done, attempt.codes, is_json=attempt.is_json)
        if attempt.untouched is not None and _digest(attempt.untouched) != before:
            broken = broken or "changed what it was to read"
        if broken:
            self.faults.append(f"{name}: {' '.join(attempt.arguments)}: {broken}")
        return bool(broken)


def _digest(path: Path) -> bytes:
    """Return a digest of a file; its bytes would count as memory of the process forked next."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").digest()


def fuzz(kind: str, count: int, seed: int, folder: Path, keep: Path | None = None) -> Result:
    """Make ``count`` attempts of a kind in a folder."""
    if kind == "elf":
        found = elf.run(count, seed, folder, keep)
        ended = [f"{len(found.children)} children"] if len(found.children) > 1 else []
        return Result(found.files, found.answers, found.slowest_s, found.peak_bytes, found.faults + ended)
    if kind == "conversations":
        talk = conversations.talk(count, seed, folder)
        return Result(count, talk.outcomes, talk.slowest_s, talk.peak_bytes, talk.faults)
    result = Result()
    for name in _COMMANDS:
        importlib.import_module(f"specmine.cli.commands.{name}")  # once, not in each fork
    for attempt in FUZZERS[kind](folder, random.Random(f"specmine {kind} {seed}")):
        before = _digest(attempt.untouched) if attempt.untouched is not None else None
        done = run_forked(attempt.work)
        broken = result.add(f"{kind} {result.attempts}", attempt, done, before)
        if broken and keep is not None:
            for path in folder.glob("damaged*"):
                shutil.copy(path, keep / f"{seed}-{result.attempts}-{path.name}")
        if result.attempts >= count:
            return result
    raise AssertionError("a fuzzer ended")


def main() -> int:
    """Run and print; 0 if no rule was broken."""
    parser = argparse.ArgumentParser(description="Feed damaged input to the product.")
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", type=Path, help="folder for the files that broke a rule")
    parser.add_argument("kinds", nargs="*", metavar="KIND", help=f"of {', '.join(KINDS)}")
    options = parser.parse_args()
    if wrong := set(options.kinds) - set(KINDS):
        parser.error(f"there is no kind {', '.join(sorted(wrong))}; known: {', '.join(KINDS)}")
    if options.keep is not None:
        options.keep.mkdir(parents=True, exist_ok=True)
    os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    print("| input | attempts | outcomes | slowest, CPU s | memory, MB | rules broken | s |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    faults: list[str] = []
    for kind in options.kinds or KINDS:
        begun, count = time.monotonic(), options.count * (10 if kind == "elf" else 1)
        with tempfile.TemporaryDirectory(prefix="specmine-fuzz-") as folder:
            found = fuzz(kind, count, options.seed, Path(folder), options.keep)
        outcomes = ", ".join(f"{name}: {number:,}" for name, number in sorted(found.outcomes.items()))
        cells = (kind, f"{found.attempts:,}", outcomes, f"{found.slowest_s:.1f}", f"{found.peak_bytes >> 20}")
        print("|", " | ".join((*cells, str(len(found.faults)), f"{time.monotonic() - begun:.0f}")), "|", flush=True)
        faults += found.faults
    print(*faults[:50], sep="\n")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
