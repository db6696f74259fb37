"""What the product makes of recorded inputs is what it made before; a change on purpose is written and reviewed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from difflib import unified_diff
from itertools import islice

import pytest

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


def test_every_expected_output_is_compared() -> None:
    """No file in expected/ is left over."""
    assert {path.name.removesuffix(".gz") for path in EXPECTED.iterdir()} == set(OUTPUTS)
