"""The calls of each behaviour for pictures: of now and the normal time, or what the document itself holds."""

from __future__ import annotations

from typing import Any

from specmine.analysis.normal_and_now import FEWEST_OF_A_BEHAVIOUR, behaviour_calls

PARTS = [{"expression": "a->f", "calls": 70, "histogram": [[600, 70]], "quantiles": {"p50": {"seconds": 1.0}}},
         {"expression": "not a->f", "calls": 30, "histogram": [[700, 30]], "quantiles": {}}]  # fmt: skip
ENTRY: dict[str, Any] = {"function": "f", "behaviours": PARTS}


def side(calls: int, bucket: int) -> dict[str, Any]:
    """Return a side of a trend with both behaviours."""
    one = {"calls": calls, "histogram": [[bucket, calls]], "quantiles": {"p50": {"seconds": 2.0}}}
    return {"bias_seconds": 0.0, "behaviours": [{**one, "expression": each["expression"]} for each in PARTS]}


def test_windows_are_preferred_to_what_is_stated() -> None:
    """With enough calls in both, the normal time stands behind now."""
    known = {"normal": side(400, 500), "now": side(60, 550)}
    for each in behaviour_calls(known, ENTRY):
        assert (sum(calls for *_, calls in each.before), sum(calls for *_, calls in each.now)) == (400, 60)
        assert each.before[0][0] < each.now[0][0]
        assert each.quantiles == {"p50": {"seconds": 2.0}}


def test_few_calls_are_not_set_beside_the_normal_time() -> None:
    """Then all windows stand as they are, without a comparison; without windows, what the document holds."""
    known = {"normal": side(400, 500), "now": side(FEWEST_OF_A_BEHAVIOUR - 1, 550)}
    assert [(each.before, sum(calls for *_, calls in each.now)) for each in behaviour_calls(known, ENTRY)] == [
        ([], 400), ([], 400)]  # fmt: skip
    alone = behaviour_calls({}, ENTRY)
    assert [sum(calls for *_, calls in each.now) for each in alone] == [70, 30]
    assert alone[0].quantiles == {"p50": {"seconds": 1.0}}


def test_a_function_of_one_behaviour_has_none_to_draw() -> None:
    """Its picture is that of all calls."""
    assert behaviour_calls({}, {"behaviours": [{"expression": "true", "calls": 3}]}) == []
    assert behaviour_calls({}, {"behaviours": PARTS[:1]}) == []
    assert behaviour_calls({}, {}) == []
