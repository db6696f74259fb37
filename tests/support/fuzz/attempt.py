"""What a fuzzer tries: a command line over damaged files, and what may come of it."""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

from specmine.cli.main import run
from specmine.daemon.main import main

FINE, VIOLATED, WRONG, TOO_LITTLE = 0, 1, 2, 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One command line."""

    arguments: tuple[str, ...]
    """Of ``specmine``, or of ``specmined``."""
    codes: Collection[int]
    """Exit codes that it may have."""
    untouched: Path | None = None
    """A file that it may not change."""

    @property
    def is_json(self) -> bool:
        """Whether it is to write JSON."""
        return "json" in self.arguments

    def work(self) -> int:
        """Run it in this process."""
        if "--check-config" in self.arguments:
            return main(list(self.arguments))
        return run(list(self.arguments))


Fuzzer = Callable[[Path, random.Random], Iterator[Attempt]]
"""Makes its samples in a folder, then yields attempts for ever. A damaged file stays until the next attempt."""
