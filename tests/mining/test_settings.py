"""Settings refuse values that make no sense, by name."""

from __future__ import annotations

import pytest

from specmine.mining.settings import MiningSettings


@pytest.mark.parametrize(
    "bad",
    [
        {"match_threshold": 0.0},
        {"stable_share": 1.0},
        {"minimum_calls": 0},
        {"resolution_ns": -1.0},
        {"window_shares": (60.0,)},
    ],
)
def test_nonsense_is_refused_by_name(bad: dict[str, float]) -> None:
    """The message names the setting."""
    with pytest.raises(ValueError, match=next(iter(bad))):
        MiningSettings(**bad)  # type: ignore[arg-type]
