"""Every bench finds what it imports: benches run seldom, so nobody else would see that a name has moved."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

BENCH = Path(__file__).resolve().parents[2] / "bench"
_LOAD = """
import importlib, sys
sys.path.insert(0, sys.argv[1])
for name in sys.argv[2:]:
    try:
        importlib.import_module(name)
    except Exception as error:
        print(f"{name}: {error!r}")
"""


def test_every_bench_finds_what_it_imports() -> None:
    """None of them does anything when it is imported, and each of its imports is there."""
    names = [each.stem for each in sorted(BENCH.glob("*.py"))]
    assert len(names) > 20
    done = subprocess.run([sys.executable, "-c", _LOAD, BENCH, *names], capture_output=True, text=True, check=True)
    assert not done.stdout
