"""The bucket of a function's hits, without a kernel."""

from __future__ import annotations

from typing import cast

import pytest

from specmine.probes.timing.function.slot import NO_LIMIT, Slot
from specmine.probes.timing.function.token_bucket import TokenBucket


class CountedSlot:
    """A slot that the test counts up."""

    def __init__(self) -> None:
        """Begin with some hits of before."""
        self.hits, self.limit = 1000, NO_LIMIT

    def count(self, counter: str) -> int:
        """Return the hits."""
        assert counter == "hits"
        return self.hits

    def set_limit(self, hits: int) -> None:
        """Note the limit."""
        self.limit = hits


def bucket() -> tuple[CountedSlot, TokenBucket]:
    """Return a bucket of 400 hits, full."""
    slot = CountedSlot()
    made = TokenBucket(cast("Slot", slot))
    made.fill(400)
    return slot, made


@pytest.mark.parametrize(("taken", "left"), [(0, 100), (100, 75), (396, 1)])
def test_a_smaller_burst_leaves_the_same_part(taken: int, left: int) -> None:
    """Once it is known that hits are dear, what is left shrinks as the burst does; again, nothing happens."""
    slot, made = bucket()
    slot.hits += taken
    for _ in range(2):
        made.resize(100)
        assert slot.limit == slot.hits + left


def test_an_empty_bucket_stays_as_it_is() -> None:
    """What was taken after it ran empty is told by its limit."""
    slot, made = bucket()
    slot.hits += 500
    made.resize(100)
    assert slot.limit == 1400


def test_a_bucket_without_a_limit_gets_none() -> None:
    """Any number of hits stays any number."""
    slot, made = bucket()
    made.fill(0)
    made.resize(100)
    assert slot.limit == NO_LIMIT
