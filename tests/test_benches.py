"""Every bench finds what it imports: benches run seldom, so nobody else would see that a name has moved."""

from __future__ import annotations

import subprocess
import sys

from tests.support.paths import ROOT

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
    paths = [each.relative_to(ROOT).with_suffix("") for each in sorted(ROOT.glob("bench/*/*.py"))]
    names = [".".join(each.parts) for each in paths]
    assert len(names) > 20
    done = subprocess.run([sys.executable, "-c", _LOAD, ROOT, *names], capture_output=True, text=True, check=True)
    assert not done.stdout
