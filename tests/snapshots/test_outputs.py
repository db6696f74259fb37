"""What the product makes of recorded inputs is what it made before; a change on purpose is written and reviewed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from difflib import unified_diff
from itertools import islice
from json import JSONDecoder

import pytest

from specmine.daemon.documents.json_text import json_text
from tests.snapshots.outputs import OUTPUTS
from tests.snapshots.run import EXPECTED, Workshop, expected, workshop

MOST_SHOWN = 60
"""Lines of a difference."""


def rounded(text: str) -> str:
    """Return a text with nine digits of each number that has more: further ones depend on the kind of CPU."""
    return re.sub(r"\b\d+\.\d+(?:e[-+]\d+)?\b", _nine_digits, text)


def _nine_digits(found: re.Match[str]) -> str:
    digits = found[0].partition("e")[0].replace(".", "").lstrip("0")
    return f"{float(found[0]):.9g}" if len(digits) > 9 else found[0]


@pytest.fixture(scope="module")
def shop() -> Iterator[Workshop]:
    """Give one workshop to all outputs: what several need is made once."""
    with workshop() as one:
        yield one


@pytest.mark.parametrize("name", OUTPUTS)
def test_an_output_is_as_expected(name: str, shop: Workshop) -> None:
    """The output of today is the expected one."""
    before, now = rounded(expected(name)).splitlines(), rounded(str(shop.make(name))).splitlines()
    found = "\n".join(islice(unified_diff(before, now, f"expected/{name}", "now", lineterm="", n=2), MOST_SHOWN))
    assert not found, f"\n{found}\nif this is wanted: python -m tests.snapshots.run --write\n"


@pytest.mark.parametrize("name", [each for each in OUTPUTS if each.endswith(".json")])
def test_no_number_in_json_has_more_digits_than_it_should(name: str) -> None:
    """Floats have 6 significant digits, shares 9: in every output, whichever command wrote it."""
    text = expected(name)
    if text.startswith("{"):
        document, _ = JSONDecoder().raw_decode(text)
        assert json_text(document) == text[: text.rindex("}\n") + 2].split("--- standard error")[0]


def test_every_expected_output_is_compared() -> None:
    """No file in expected/ is left over."""
    assert {path.name.removesuffix(".gz") for path in EXPECTED.iterdir()} == set(OUTPUTS)
