"""What people are told of the slowdowns that would be found."""

from __future__ import annotations

from typing import Any

import pytest

from specmine.analysis.wording.detectable import counted, sentence

MINUTE = "A slowdown of 1.6x would be found within 1 min in half of the cases"
LATER = "Twice as slow would be found within 15 min in half of the cases, smaller slowdowns later"
NEVER = "Twice as slow would not be found within 15 min: it has too few calls, or they vary too much"
EARLY = "Which slowdown would be found is not known before 90 windows: 30 are there; about 42 min more"


def known(ratio: float | None, doubled: float | None, windows: int = 120) -> dict[str, Any]:
    """Return a function with an assertion, and what would be found of it."""
    found = {"ratio": ratio, "within_seconds": 60.0, "doubled_seconds": doubled}
    windows_known = {"windows": windows, "windows_needed": 90, "window_seconds": 42.0}
    return {"function": "f", "state": "single", "detectable": found | windows_known}


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        (known(1.62, 60.0), f"{MINUTE}, smaller ones later"),
        (known(2.9, 300.0), f"{MINUTE.replace('1.6', '2.9')}, twice as slow within 5 min"),
        (
            known(None, 900.0),
            LATER,
        ),
        (known(None, None), NEVER),
        (known(None, None, 30), EARLY),
        ({"state": "waiting"}, "A slowdown of it would not be found yet: nothing is asserted of it"),
        ({"state": "refused"}, ""),
        ({"state": "single"}, ""),
        ({"state": "single", "detectable": None}, ""),
    ],
)
def test_of_one_function(entry: dict[str, Any], words: str) -> None:
    """What would be found, and how soon; a store does not know it."""
    assert sentence(entry) == words


def test_of_all() -> None:
    """Each function is counted once; what is not known is said."""
    entries = [known(1.5, 60.0), known(2.5, 300.0), known(None, None), known(None, None, 3), {"state": "waiting"}]
    assert counted(entries) == (
        "Twice as slow would be found within 1 min in 1 of 4 functions, within 15 min in 1 more, "
        "later or not at all in 1, not known yet of 1"
    )
    assert counted([known(1.5, 60.0)] * 2) == "Twice as slow would be found within 1 min in 2 of 2 functions"
    early = "How soon twice as slow would be found is not known yet of 1 function: watched too briefly"
    assert counted([known(None, None, 3)]) == early
    assert counted([{"state": "single"}]) == ""
