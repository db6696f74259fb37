"""Pages explain, and what was measured stands apart, in docs/measured/, with what falls short first."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.support.paths import ROOT

DOCS = ROOT / "docs"
INDEX = DOCS / "measured" / "README.md"
MEASURED = sorted(path for path in (DOCS / "measured").glob("*.md") if path != INDEX)

MOST_WORDS = 2600
LONGER = {
    "cli.md": "reference",
    "configuration.md": "reference",
    "glossary.md": "reference",
    "metrics.md": "reference",
    "mining.md": "the method and the reason of each default",
}


@pytest.mark.parametrize("page", MEASURED, ids=lambda path: path.name)
def test_a_page_of_measurements_begins_with_what_falls_short(page: Path) -> None:
    """Its first section lists it; and the index has the page."""
    sections = re.findall(r"^## (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    assert sections[0] == "What falls short"
    assert f"]({page.name})" in INDEX.read_text(encoding="utf-8")


@pytest.mark.parametrize("page", sorted(DOCS.glob("*.md")), ids=lambda path: path.name)
def test_a_page_that_explains_is_short(page: Path) -> None:
    """Reference may be longer; what a page has of measurements belongs to docs/measured/."""
    words = len(page.read_text(encoding="utf-8").split())
    assert words <= MOST_WORDS or page.name in LONGER
