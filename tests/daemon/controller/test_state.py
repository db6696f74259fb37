"""What the controller keeps of lifetimes."""

from __future__ import annotations

from collections.abc import Mapping

from specmine.daemon.controller.state import KEPT_ENDED, MOST_ENDED, with_lifetimes
from specmine.model.batch import Lifetime


def lived(number: int, *, build: str = "b", processes: int = 0) -> Lifetime:
    """Return a lifetime that has ended, or has not."""
    return Lifetime(
        id=f"boot:{number}:1", pid=number, executable="/app", build_id=build, start_ns=number, processes=processes
    )


def test_lifetimes_that_ended_are_forgotten_in_time() -> None:
    """Ten thousand short lives: what runs, the first, the newest and one of each build are still known."""
    known: Mapping[str, Lifetime] = with_lifetimes({}, [lived(0)])
    known = with_lifetimes(known, [lived(1, processes=3), lived(2, build="old")])
    for number in range(3, 10_000):
        known = with_lifetimes(known, [lived(number, processes=1)])
        known = with_lifetimes(known, [lived(number)])
        assert len(known) <= MOST_ENDED + 2
    assert {"boot:0:1", "boot:1:1", "boot:2:1"} <= set(known)
    assert known["boot:1:1"].processes == 3
    newest = [f"boot:{number}:1" for number in range(10_000 - KEPT_ENDED, 10_000)]
    assert list(known)[-KEPT_ENDED:] == newest


def test_without_news_nothing_is_copied() -> None:
    """A batch comes up to twenty times a second."""
    known = {"boot:1:1": lived(1)}
    assert with_lifetimes(known, ()) is known
