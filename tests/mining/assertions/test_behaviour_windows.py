"""Windows of a behaviour hold the calls that are known to fulfil its formula, no others."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from specmine.mining.assertions.behaviour_windows import windows_of_formula
from specmine.mining.assertions.expression import parse
from specmine.model.call_path import CallPath, Frame
from specmine.model.observation import Observation, PathHistogram
from tests.support.insides import inside_of_calls, observation_of

FLUSH, PARSE = Frame("flush", "libc"), Frame("parse", "app")
NEAR, FAR = (CallPath((Frame("main", "app"), Frame(name, "app"), Frame("z", "app"))) for name in ("near", "far"))


def window(flush: int, neither: int) -> Observation:
    """Return calls over one path that reached a callee, and calls over another that did not."""
    reached = np.arange(flush + neither) < flush
    inside = inside_of_calls({FLUSH: 1e3 * reached}, np.full(len(reached), 1e4))
    calls = [one.calls for one in inside.sets] or [inside.calls.part(0, 0)]
    paths = (
        PathHistogram(path=NEAR, histogram=calls[0]),
        PathHistogram(path=FAR, histogram=inside.calls.without(calls[0])),
    )
    return replace(observation_of(inside), paths=paths)


@pytest.mark.parametrize(
    ("text", "calls"),
    [
        ("true", [100, 9]),
        ("far->z", [30, 9]),
        ("calls flush", [70]),
        ("not calls flush", [30]),
        ("calls `flush (libc)`", [70]),
        ("calls parse", []),
    ],
)
def test_only_calls_that_are_known_to_fulfil_it_count(text: str, calls: list[int]) -> None:
    """Windows without such a call are left out, and windows in which a callee named was not timed."""
    untimed = window(0, 9)
    untimed = replace(untimed, inside=(replace(untimed.inside[0], timed=(PARSE,), partly=(FLUSH,)),))
    if text == "calls parse":
        untimed = replace(untimed, inside=())
    found = windows_of_formula([window(70, 30), untimed], parse(text))
    assert [one.histogram.total for one in found] == calls


def test_calls_over_incomplete_paths_fulfil_no_formula() -> None:
    """What is above them is not known."""
    whole = window(70, 30)
    cut = replace(whole, paths=tuple(replace(one, path=one.path._replace(complete=False)) for one in whole.paths))
    assert windows_of_formula([cut], parse("not far->z")) == ()
