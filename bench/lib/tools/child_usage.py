"""What a command used: its CPU time, and the most memory that it held.

The kernel remembers the most memory of a process over its exec, and before that a child has its parent's. So a bench
that holds 120 MB would find 120 MB in all of its children. A small interpreter starts the command instead.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_STARTER = """
import json, os, sys
started = os.posix_spawnp(sys.argv[2], sys.argv[2:], os.environ)
_, status, used = os.wait4(started, 0)
with open(sys.argv[1], "w") as out:
    json.dump([used.ru_utime + used.ru_stime, used.ru_maxrss, os.waitstatus_to_exitcode(status)], out)
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildUsage:
    """What one run of a command used."""

    seconds: float
    """By the clock on the wall, with the start of the interpreter that started it."""
    cpu_s: float
    peak_mb: float
    """Most memory resident at once."""
    out: str
    """What it printed to standard output."""


def child_usage(command: Sequence[str | Path], *, env: Mapping[str, str] | None = None, **options: Any) -> ChildUsage:
    """Run a command to its end and return what it used; ``options`` are those of ``subprocess.run``.

    Raises
    ------
    subprocess.CalledProcessError
        If it ends with an exit code other than 0.
    """
    with tempfile.NamedTemporaryFile(prefix="specmine-bench-") as result:
        words = [sys.executable, "-I", "-S", "-c", _STARTER, result.name, *map(str, command)]
        began = time.perf_counter()
        done = subprocess.run(words, env=env, check=True, stdout=subprocess.PIPE, text=True, **options)
        seconds = time.perf_counter() - began
        cpu_s, peak_kb, code = json.loads(Path(result.name).read_text())
    if code:
        raise subprocess.CalledProcessError(code, words[6:], done.stdout)
    return ChildUsage(seconds=seconds, cpu_s=cpu_s, peak_mb=peak_kb / 1024, out=done.stdout)
