"""What could not be used, in words for one and for many."""

from __future__ import annotations

import pytest

from specmine.analysis.wording.losses import words_of


@pytest.mark.parametrize(
    ("name", "number", "words"),
    [
        ("abandoned_calls", 1, "call that an exception or longjmp left"),
        ("abandoned_calls", 3, "calls that an exception or longjmp left"),
        ("unsent_paths", 1, "call path that came late"),
        ("unsent_alarms", 1, "alarm of the budget that came late"),
        ("new_things", 2, "new things"),
    ],
)
def test_one_is_one(name: str, number: int, words: str) -> None:
    """A single loss is in the singular; what is not known by name is named as it is."""
    assert words_of(name, number) == words
