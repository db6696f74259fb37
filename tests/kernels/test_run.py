"""What the runner of the kernel tests reads and prints."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from tests.kernels.run import WANTED, Row, pytest_command, read, table
from tests.support.paths import ROOT

LINES = """\
{"name": "one", "outcome": "passed", "properties": {"prices": "800 ns, 2.10, 3.00 (perf)"}, "said": "", "seconds": 1}
{"name": "two", "outcome": "failed", "properties": {}, "said": "no", "seconds": 2}
{"name": "three", "outcome": "passed", "properties": {}, "said": "", "seconds": 3}
{"name": "three", "outcome": "failed", "properties": {}, "said": "its end", "seconds": 3}
{"name": "four", "outcome": "skipped", "properties": {}, "said": "no session links", "seconds": 4}
"""


def test_a_failure_and_an_error_are_no_pass(tmp_path: Path) -> None:
    """Each test is counted once, by what became of it; what was not run is counted too."""
    lines = tmp_path / "lines"
    lines.write_text(LINES)
    row = read(lines, "6.1.0-1-amd64", 7)
    assert (row.passed, row.failed, row.not_applicable, row.not_run) == (1, ("two", "three"), 1, 3)
    assert row.prices.startswith("800 ns")


def test_a_run_that_is_cut_short_tells_what_it_showed(tmp_path: Path) -> None:
    """A line is there as soon as its test has ended: here the second one ends the run."""
    tests, lines = tmp_path / "test_two.py", tmp_path / "lines"
    tests.write_text("import os\n\ndef test_passes():\n    pass\n\ndef test_ends():\n    os._exit(3)\n")
    command = [*pytest_command(lines, [str(tests)]), "--rootdir", str(tmp_path)]
    ended = subprocess.run(command, cwd=ROOT, check=False, capture_output=True)
    assert ended.returncode == 3
    assert read(lines, "here", 2) == Row(release="here", passed=1, not_run=1)


def test_failures_are_named_below_the_table() -> None:
    """The table counts, the lines below name."""
    text = table([Row(release="6.1", passed=3, failed=("two",), not_applicable=2, not_run=4)])
    assert "| 6.1 | 3 | 1 | 2 | 4 |" in text
    assert text.endswith("6.1: two failed")


@pytest.mark.parametrize(
    ("version", "name", "fits"),
    [
        ("6.1", "linux-image-6.1.0-56-amd64", True),
        ("6.1", "linux-image-6.1.0-56-cloud-amd64", False),
        ("6.1", "linux-image-6.1.0-56-amd64-dbg", False),
        ("6.12", "linux-image-6.12.117+deb12-amd64", True),
        ("6.12", "linux-image-6.12.117+deb12-rt-amd64", False),
    ],
)
def test_the_ordinary_flavour_is_booted(version: str, name: str, fits: bool) -> None:
    """Cloud kernels have no file system of the host, debug packages no kernel."""
    assert bool(re.fullmatch(WANTED[version], name)) is fits
