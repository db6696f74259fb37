"""A plugin of pytest that writes a line of JSON for each test as soon as it has ended.

``-p tests.kernels.result_lines --result-lines FILE``. An emulated kernel takes half an hour for a few tests: what
it has shown is known also where it is ended before its time.
"""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest


class ResultLines:
    """Writes the outcome of each phase of a test that says something."""

    def __init__(self, path: Path) -> None:
        """Begin an empty file."""
        self._path = path
        self._began_s = time.monotonic()
        path.write_text("")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Add a line: of the test itself, or of a set-up or an end that did not pass."""
        if report.when != "call" and report.passed:
            return
        line = {
            "name": report.nodeid.partition("::")[2],
            "outcome": report.outcome,
            "properties": {name: str(value) for name, value in report.user_properties},
            "said": "" if report.passed else report.longreprtext[-4000:],
            "seconds": round(time.monotonic() - self._began_s, 1),
        }
        with self._path.open("a") as file:
            file.write(json.dumps(line) + "\n")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option that names the file."""
    parser.addoption("--result-lines", type=Path, metavar="FILE", help="write a line of JSON a test to FILE")


def pytest_configure(config: pytest.Config) -> None:
    """Write, if a file is named."""
    path = config.getoption("--result-lines")
    if path is not None:
        config.pluginmanager.register(ResultLines(path), "result-lines-writer")
