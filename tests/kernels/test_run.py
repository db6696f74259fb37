"""What the runner of the kernel tests reads and prints."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.kernels.run import WANTED, Row, read, table

REPORT = """<testsuites><testsuite>
<testcase name="one"><properties><property name="prices" value="800 ns, 2.10, 3.00 (perf)"/></properties></testcase>
<testcase name="two"><failure message="no"/></testcase>
<testcase name="three"><error message="no"/></testcase>
<testcase name="four"><skipped message="no session links"/></testcase>
</testsuite></testsuites>"""


def test_a_failure_and_an_error_are_no_pass(tmp_path: Path) -> None:
    """Each test is counted once, by what became of it."""
    report = tmp_path / "report.xml"
    report.write_text(REPORT)
    row = read(report, "6.1.0-1-amd64")
    assert (row.passed, row.failed, row.not_applicable) == (1, ("two", "three"), 1)
    assert row.prices.startswith("800 ns")


def test_failures_are_named_below_the_table() -> None:
    """The table counts, the lines below name."""
    text = table([Row(release="6.1", passed=3, failed=("two",), not_applicable=2)])
    assert "| 6.1 | 3 | 1 | 2 |" in text
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
