"""Does anything of a killed daemon stay in the program that it watched?

    .venv/bin/python bench/bench_kill.py [--times 100] [--program forks|paths] [--most 4]

A program under load is watched by a daemon that is killed (SIGKILL) at a random moment, again and again; the same
store is used all the time. For each kill: whether probes were in the program's text just before, how long it took
until its executable pages were again what the files say, whether the program lives, and whether the next daemon
knew as many functions and observations at its start as the store held. Needs root.
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests" / "live"))

from breakpoints import Text, family  # noqa: E402
from product import Daemon, daemon, running, seconds_until_clean, wait_for_probes  # noqa: E402

PROMISE_S = 0.1
WORKERS = {"forks": ["64"], "paths": []}


@dataclass(frozen=True, slots=True, kw_only=True)
class Kill:
    """What one kill showed."""

    moment_s: float
    """After the start of the daemon, or after its first probe."""
    probes: int
    free_s: float
    alive: bool
    known: tuple[int, int]
    """Functions and observations in the store."""
    restored: tuple[int, int]
    """The same, as the next daemon told at its start."""

    @property
    def good(self) -> bool:
        """True if every promise was kept."""
        return self.alive and self.free_s <= PROMISE_S and all(a >= b for a, b in zip(self.restored, self.known))
