"""The marker ``kernel``: skipped where it cannot run, never silently so in continuous integration."""

from __future__ import annotations

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


def test_files_with_kernel_tests_say_so(request: pytest.FixtureRequest) -> None:
    """``make test`` runs kernel tests of the files alone that hold the words ``mark.kernel``."""
    conftest = request.config.pluginmanager.get_plugin(str(CONFTEST))
    assert conftest is not None
    assert conftest.unsaid == []
