"""Nothing that the product writes has changed but for names: models, answers, metrics, comparisons, verdicts."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.equivalence.comparing import difference
from tests.equivalence.outputs import OUTPUTS
from tests.equivalence.run import Workshop, workshop

GOLDEN = Path(__file__).parent / "golden"


@pytest.fixture(scope="module")
def shop() -> Iterator[Workshop]:
    """Give one workshop to all outputs: what several need is made once."""
    with workshop() as one:
        yield one


def golden(name: str) -> str:
    """Return an output as it was, compressed if it is large."""
    compressed = GOLDEN / f"{name}.gz"
    if compressed.exists():
        return gzip.decompress(compressed.read_bytes()).decode()
    return (GOLDEN / name).read_text(encoding="utf-8")


@pytest.mark.parametrize("name", OUTPUTS)
def test_an_output_is_as_before(name: str, shop: Workshop) -> None:
    """The output of today is the golden one under the new names."""
    found = difference(name, golden(name), str(shop.make(name)))
    assert not found, f"\n{found}\n"


def test_every_golden_output_is_compared() -> None:
    """No file in golden/ is left over."""
    assert {path.name.removesuffix(".gz") for path in GOLDEN.iterdir()} == set(OUTPUTS)
