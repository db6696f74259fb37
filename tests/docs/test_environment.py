"""docs/environment.md names every experiment and every reason, and nothing else."""

from __future__ import annotations

import ast
import re

from specmine.experiments.library import EXPERIMENTS
from tests.support.paths import ROOT

MANUAL = (ROOT / "docs" / "environment.md").read_text(encoding="utf-8")
MEASURED = (ROOT / "docs" / "measured" / "environment.md").read_text(encoding="utf-8")


def _rows(heading: str) -> list[str]:
    """Return the first cells of the table that begins with a heading."""
    table = MANUAL.split(f"\n| {heading} |", 1)[1].split("\n\n", 1)[0]
    return [line.split("|")[1] for line in table.splitlines()[2:]]


def test_every_experiment_is_documented() -> None:
    """The table of experiments is the list."""
    assert [cell.strip(" `") for cell in _rows("name")] == list(EXPERIMENTS)


def test_every_reason_is_documented() -> None:
    """The codes that the code gives as reasons are those of the table."""
    given = set()
    for path in (ROOT / "experiments").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if (
                isinstance(node, ast.Call)
                and ast.unparse(node.func) == "Reason"
                and isinstance(code := node.keywords[0].value, ast.Constant)
            ):
                given.add(code.value)
    documented = {code for cell in _rows("reason") for code in re.findall(r"`([a-z-]+)`", cell)}
    assert documented == given


def test_every_part_of_the_bench_is_named() -> None:
    """The command of the page of measurements runs all parts of the bench."""
    bench = (ROOT / "bench" / "host" / "experiments.py").read_text(encoding="utf-8")
    parts = re.findall(r'^    "(\w+)": \w+,$', bench, re.MULTILINE)
    command = next(line for line in MEASURED.splitlines() if re.match(r" {4}.*bench\.host\.experiments ", line))
    assert parts
    assert command.split("bench.host.experiments")[1].split() == parts
