"""Values through JSON and back."""

from __future__ import annotations

import json
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specmine.model.batch import Activity, Batch, HotSample, Refusal, Spent, Watch
from specmine.model.buckets import BUCKETS
from specmine.model.call_path import CallPath, Frame
from specmine.model.function import Function, Reason
from specmine.model.histogram import Histogram
from specmine.model.json_codec import decode, encode
from specmine.model.observation import Kind, Observation, PathHistogram

names = st.text(max_size=12)
frames = st.builds(Frame, names, names)
numbers = st.integers(0, 1 << 60)
costs = st.floats(0, 1e15, allow_nan=False)
histograms = st.dictionaries(st.integers(0, BUCKETS - 1), st.integers(1, 1 << 62), max_size=5).map(
    lambda used: Histogram.from_pairs(list(used), list(used.values()))
)
paths = st.builds(CallPath, st.lists(frames, max_size=4).map(tuple), st.booleans())
observations = st.builds(
    Observation,
    function=names,
    lifetime=names,
    kind=st.sampled_from(Kind),
    start_ns=st.just(1),
    end_ns=st.integers(2, 1 << 60),
    histogram=histograms,
    calls=numbers,
    watched_ns=numbers,
    bias_ns=costs,
    paths=st.lists(st.builds(PathHistogram, path=paths, histogram=histograms), max_size=2).map(tuple),
)
functions = st.builds(Function, build_id=names, offset=numbers, name=names, module=names)
reasons = st.builds(Reason, code=names, text=names)
refusals = st.builds(Refusal, function=names, kind=st.sampled_from(Kind), reason=reasons)
batches = st.builds(
    Batch,
    now_ns=numbers,
    observations=st.lists(observations, max_size=2).map(tuple),
    activity=st.lists(
        st.builds(
            Activity, function=names, kind=st.sampled_from(Kind), watched_ns=numbers, hits=numbers, calls=numbers,
            cost_ns=costs, limited=st.booleans(),
        ),
        max_size=2,
    ).map(tuple),
    hot_samples=st.lists(
        st.builds(
            HotSample, function=names, samples=numbers, on_cpu_ns=costs, off_cpu_ns=costs, inclusive_ns=costs,
            callers=st.lists(st.tuples(names, costs), max_size=2).map(tuple),
        ),
        max_size=2,
    ).map(tuple),
    functions=st.lists(functions, max_size=2).map(tuple),
    refusals=st.lists(refusals, max_size=2).map(tuple),
    lost=st.dictionaries(names, numbers, max_size=2),
    spent=st.builds(Spent, overhead_ns=costs, program_cpu_ns=numbers),
    exit_status=st.none() | st.integers(-64, 255),
)  # fmt: skip


@given(batches)
def test_a_batch_survives_json(batch: Batch) -> None:
    """What is written is what is read, histograms and floats to the last bit."""
    text = json.dumps(encode(batch))
    again = decode(Batch, json.loads(text))
    assert json.dumps(encode(again)) == text
    for name in ("activity", "hot_samples", "functions", "refusals", "lost", "spent", "exit_status", "now_ns"):
        assert getattr(again, name) == getattr(batch, name)
    for old, new in zip(batch.observations, again.observations, strict=True):
        assert old.histogram == new.histogram
        assert [each.path for each in old.paths] == [each.path for each in new.paths]


def test_defaults_are_left_out() -> None:
    """A recording holds what was said, not what might have been."""
    assert encode(Watch(function="f", kind=Kind.TIME)) == {"function": "f", "kind": "time"}
    assert encode(Batch(now_ns=5)) == {"now_ns": 5}


def test_named_tuples_have_the_form_of_dataclasses() -> None:
    """Objects with a member for each field that is not at its default."""
    path = CallPath((Frame("main", "app"),))
    assert encode(path) == {"frames": [{"name": "main", "module": "app"}]}
    assert encode(path._replace(complete=False), full=True)["complete"] is False
    assert decode(CallPath, {"frames": [{"name": "main", "module": "app", "line": 7}], "complete": True}) == path
    with pytest.raises(ValueError, match="not a CallPath"):
        decode(CallPath, {"complete": True})


def test_unknown_fields_are_ignored() -> None:
    """A recording of a later version can be read as far as it is known."""
    assert decode(Watch, {"function": "f", "kind": "path", "colour": "blue"}) == Watch(function="f", kind=Kind.PATH)


@dataclass(frozen=True)
class _Odd:
    value: int | str


@pytest.mark.parametrize(
    ("kind", "data"),
    [
        (Watch, {"function": "f"}),
        (Watch, {"function": "f", "kind": "glance"}),
        (Watch, {"function": 3, "kind": "time"}),
        (Watch, ["f", "time"]),
        (Batch, {"now_ns": 1, "observations": [{"function": "f"}]}),
        (Batch, {"now_ns": 1, "lost": 3}),
        (Batch, {"now_ns": True}),
        (Batch, {"now_ns": 1.0}),
        (Spent, {"overhead_ns": "5.0", "program_cpu_ns": 1}),
        (Spent, {"overhead_ns": False, "program_cpu_ns": 1}),
        (CallPath, {"frames": "ab", "complete": True}),
        (CallPath, {"frames": [], "complete": 1}),
        (_Odd, {"value": 3}),
    ],
)
def test_what_does_not_fit_is_an_error(kind: type, data: object) -> None:
    """Damage is a ValueError, whatever form it takes."""
    with pytest.raises(ValueError, match=r"."):
        decode(kind, data)


def test_values_without_a_form_are_refused() -> None:
    """Only what can be read back is written."""
    with pytest.raises(TypeError, match="object has no JSON form"):
        encode({"x": object()})


def test_what_is_known_of_a_type_holds_for_all_its_values() -> None:
    """Members and defaults are looked up once a type: a value that was encoded before changes nothing for the next."""

    @dataclass(frozen=True)
    class Held:
        number: int = 1
        names: list[str] = field(default_factory=list)

    @dataclass(frozen=True)
    class More(Held):
        number: int = 2
        flag: bool = True

    held = Held(names=["a"])
    assert [encode(held), encode(Held()), encode(held)] == [{"names": ["a"]}, {}, {"names": ["a"]}]
    held.names.clear()
    assert encode(held) == {}
    assert encode(More()) == {}
    assert encode(More(number=1, flag=False)) == {"number": 1, "flag": False}
    assert encode(Held(number=True)) == {"number": True}, "no default, though it is equal"
    assert encode(Held(), full=True) == {"number": 1, "names": []}
