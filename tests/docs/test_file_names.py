"""Every file of code that a page names is there: pages outlive renames."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.docs.test_commands import PAGES
from tests.support.paths import ROOT

_NAMED = re.compile(r"`((?:[\w.-]+/)+[\w.-]+\.py|test_\w+\.py)`")
FOLDERS = (
    "analysis", "bench", "cli", "daemon", "examples", "experiments", "fleet", "mining", "model", "probes", "store",
    "tests", "web",
)  # fmt: skip
FILES = tuple(f"/{path.relative_to(ROOT)}" for folder in FOLDERS for path in (ROOT / folder).rglob("*.py"))


@pytest.mark.parametrize(
    "page", [*PAGES, ROOT / "ARCHITECTURE.md", ROOT / "CONTRIBUTING.md"], ids=lambda path: path.name
)
def test_a_file_that_a_page_names_is_there(page: Path) -> None:
    """By its name, or the end of its path."""
    named = set(_NAMED.findall(page.read_text(encoding="utf-8")))
    assert sorted(each for each in named if not any(path.endswith(f"/{each}") for path in FILES)) == []
