"""What is odd is counted and named, with what to do; what is not is passed over in silence."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from specmine.analysis.importers.oddities import Resolution, oddities
from specmine.analysis.importers.records import Chunk, Names
from specmine.model.call_path import Frame
from tests.support.recordings import analyzed, calls, csv_text


def warnings(folder: Path, text: str) -> list[str]:
    """Return the warnings of a recording."""
    found: list[str] = analyzed(folder, text)["collection"]["source"]["warnings"]
    return found


def test_an_ordinary_recording_has_none(tmp_path: Path) -> None:
    """Nor do calls of 0 ns, which a coarse clock gives."""
    assert warnings(tmp_path, csv_text(calls(3000))) == []
    assert warnings(tmp_path, csv_text([("main;z", 0)] * 3000 + calls(10))) == []


@pytest.mark.parametrize(("unit", "warned"), [(1e-9, True), (1e-3, False), (1.0, False)])
def test_durations_in_seconds_are_noticed(tmp_path: Path, unit: float, warned: bool) -> None:
    """Below a nanosecond there is no call. Microseconds cannot be told from short calls."""
    lines = [f"z,{path},{duration * unit:.12f}" for path, duration in calls(3000)]
    found = warnings(tmp_path, "function,path,duration_ns\n" + "\n".join(lines))
    assert [each.startswith("3,000 of 3,000 calls took less than 1 ns") for each in found] == [True] * warned


def test_functions_without_a_whole_call_are_named_and_others_are_not() -> None:
    """A few calls cut off at the ends of a recording are usual; a function of which all are has a reason."""
    names, resolution = Names(), Resolution()
    whole, cut = names.function(Frame("whole", "")), [names.function(Frame(f"cut{n}", "")) for n in range(5)]
    path = names.path(Frame("whole", ""), ())
    resolution.add(Chunk(paths=np.array([path]), durations_ns=np.array([5.0]), lifetimes=np.array([0])))
    names.censored[whole] = 3
    assert oddities(names, resolution) == ()
    for number, function in enumerate(cut):
        names.censored[function] = 10 - number
    names.unentered[cut[0]] = 2
    entries, returns = oddities(names, resolution)
    assert entries.startswith("40 entries of cut0, cut1, cut2 and 2 more have no return")
    assert "record the returns too" in entries
    assert returns.startswith("2 returns of cut0 have no entry")


def test_a_ring_of_spans_is_a_warning(tmp_path: Path) -> None:
    """With the name and the field that is wrong."""
    spans = [
        {"traceId": "t", "spanId": own, "parentSpanId": parent, "name": "loop", "startTimeUnixNano": "1",
         "endTimeUnixNano": "900"}
        for own, parent in (("a", "b"), ("b", "a"))
    ]  # fmt: skip
    (found,) = warnings(tmp_path, json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]}))
    assert found.startswith("2 spans of loop are each other's parents") and "parentSpanId" in found
