"""Load the BPF programs and measure their prices, once in a cache: ``python -m tests.support.loading FOLDER``."""

from __future__ import annotations

import fcntl
import os
import sys
from pathlib import Path

from specmine.model.errors import SpecmineError
from specmine.probes.kernel.loader import loaded_earlier
from specmine.probes.process.selection import Selection
from specmine.probes.settings import SourceSettings
from specmine.probes.source import BpfSource


def load_once(cache: Path) -> None:
    """Fill the cache unless it is filled; who comes second waits for the first."""
    settings = SourceSettings(cache=str(cache))
    with (cache.parent / "loading").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if loaded_earlier(cache, settings.interpreter) is not None:
            return
        source = BpfSource([Selection(pid=os.getpid())], settings)
        try:
            source.start()
        except SpecmineError as error:  # a host on which nothing can be loaded: the tests say what they need
            print(f"{error}", file=sys.stderr)
        finally:
            source.close()


if __name__ == "__main__":
    load_once(Path(sys.argv[1]))
