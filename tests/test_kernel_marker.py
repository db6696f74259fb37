"""The marker ``kernel``: skipped where it cannot run, never silently so in continuous integration; run again there."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

CONFTEST = Path(__file__).with_name("conftest.py")


@pytest.mark.parametrize(
    ("missing", "ci", "expected"),
    [
        ("", None, None),
        ("", "true", None),
        ("not root", None, pytest.skip),
        ("not root", "", pytest.skip),
        ("not root", "false", pytest.skip),
        ("not root", "true", pytest.fail),
        ("not root", "1", pytest.fail),
    ],
)
def test_what_is_missing_skips_at_home_and_fails_in_ci(
    missing: str, ci: str | None, expected: object, request: pytest.FixtureRequest
) -> None:
    """A machine without the kernel's help is fine for a developer, a broken promise in CI."""
    conftest = request.config.pluginmanager.get_plugin(str(CONFTEST))
    assert conftest is not None
    assert conftest.outcome_without_kernel(missing, ci) is expected


FAILING = """
import pytest
from pathlib import Path

def attempt(name):
    tries = Path(__file__).with_name(name)
    tries.write_text(tries.read_text() + "x" if tries.exists() else "x")
    return len(tries.read_text())

@pytest.mark.kernel
def test_once():
    assert attempt("once") > 1, "the host was slow"

@pytest.mark.kernel
def test_always():
    assert not attempt("always")

def test_pure():
    assert attempt("pure") > 1
"""


@pytest.mark.parametrize(("ci", "tries"), [("true", (2, 2, 1)), ("", (1, 1, 1))])
def test_a_kernel_test_that_fails_in_ci_has_one_more_try_and_its_reason_is_shown(
    tmp_path: Path, ci: str, tries: tuple[int, int, int]
) -> None:
    """One that always fails still fails, and one that needs no kernel has no second try."""
    (tmp_path / "conftest.py").write_text(CONFTEST.read_text() + "\n\nmissing_for_kernel_tests = str\n")
    (tmp_path / "test_it.py").write_text(FAILING)
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers = kernel: as here\n")
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", str(tmp_path)],
        env={**os.environ, "CI": ci, "PYTEST_ADDOPTS": ""},
        check=False,
        capture_output=True,
        text=True,
    )
    assert run.returncode == 1, run.stdout + run.stderr
    assert tuple(len((tmp_path / name).read_text()) for name in ("once", "always", "pure")) == tries
    assert ("failed at first: test_it.py::test_once" in run.stdout) == bool(ci)
    assert ("1 passed" in run.stdout) == bool(ci)
    assert "the host was slow" in run.stdout
