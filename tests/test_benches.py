"""Every bench finds what it imports and says what it is for: benches run seldom, so nobody else would see it."""

from __future__ import annotations

import subprocess
import sys

import pytest

from bench.lib.index import benches
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
    paths = [*ROOT.glob("bench/**/*.py"), *ROOT.glob("examples/**/*.py")]
    names = [".".join(path.relative_to(ROOT).with_suffix("").parts) for path in sorted(paths)]
    assert len(names) > 40
    done = subprocess.run([sys.executable, "-c", _LOAD, ROOT, *names], capture_output=True, text=True, check=True)
    assert not done.stdout


@pytest.mark.parametrize(("name", "text"), benches().items())
def test_every_bench_has_a_question_a_command_and_its_needs(name: str, text: str) -> None:
    """The docstring begins with the question that the bench answers, which ``make bench BENCHES=list`` lists."""
    assert text.splitlines()[0].endswith("?")
    assert f".venv/bin/python -m bench.{name}" in text
    assert "Needs " in text
