"""The store returns what was written."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from specmine.model.buckets import BUCKETS
from specmine.model.histogram import Histogram
from specmine.model.json_codec import encode
from specmine.model.observation import Observation
from specmine.store import Build, Document, FunctionRecord, Verdict, Writes, open_store
from specmine.store.codec import decode_histogram, decode_paths, encode_histogram, encode_paths
from tests.support.stored import FUNCTION, HOST, LIFETIME, SECOND, UTC, fill, observation


def alike(first: Observation, second: Observation) -> bool:
    """Whether two observations are equal in every field; they compare by identity otherwise."""
    encoded = [encode(replace(each, paths=tuple(sorted(each.paths, key=lambda p: p.path)))) for each in (first, second)]
    return bool(encoded[0] == encoded[1])


def test_what_was_put_comes_back(tmp_path: Path) -> None:
    """Everything put into a store is there after it was closed and opened again."""
    windows = [observation(second, names=("b", "?")) for second in range(3)]
    with open_store(tmp_path / "s.db") as store:
        fill(store, windows)
        record = FunctionRecord(function=FUNCTION.key, state={"state": "single", "tried": 4})
        document = Document(name="specification", document={"functions": []})
        other = replace(FUNCTION, offset=32, stepped=False, unsampled=True, code="1:d:l0")
        store.write(Writes((record, document, Build(build_id="ab", label="v1"), other)), UTC)
    with open_store(tmp_path / "s.db", read_only=True) as store:
        contents = store.load()
        specification = store.document("specification")
    assert contents.hosts == (HOST,)
    assert contents.builds == (Build(build_id="ab", executable=LIFETIME.executable, label="v1"),)
    assert contents.lifetimes == (LIFETIME,)
    assert contents.functions == (FUNCTION, other)
    assert all(alike(*pair) for pair in zip(windows, contents.observations, strict=True))
    assert contents.states == {FUNCTION.key: {"state": "single", "tried": 4}}
    assert contents.documents == {"specification": specification} == {"specification": {"functions": []}}


def test_load_takes_the_newest_of_each_function(tmp_path: Path) -> None:
    """The newest observations of each function come, oldest first."""
    with open_store(tmp_path / "s.db") as store:
        fill(store, [observation(second) for second in range(9)] + [observation(1, key="ab+0x20")])
        found = store.load(newest=3).observations
    assert [(each.function, each.start_ns // SECOND) for each in found] == [
        ("ab+0x20", 1),
        (FUNCTION.key, 6),
        (FUNCTION.key, 7),
        (FUNCTION.key, 8),
    ]


def test_times_of_an_earlier_boot_move_to_the_present_one(tmp_path: Path) -> None:
    """An observation of an earlier boot lies as far back as the wall clock says."""
    with open_store(tmp_path / "s.db") as store:
        fill(store, [observation(20)])
        (found,) = store.load().observations_at(UTC + 50 * SECOND)
    assert found.end_ns == (21 - 50) * SECOND


def test_a_repeated_verdict_is_kept_once(tmp_path: Path) -> None:
    """The history holds changes, not every check."""
    verdicts = ["holds", "holds", "violated", "holds"]
    with open_store(tmp_path / "s.db") as store:
        for second, verdict in enumerate(verdicts):
            record = Verdict(function="f", subject="a", verdict=verdict, utc_ns=second, evidence={"p": 0.5})
            store.write(Writes((record,)), UTC)
        history = store.read(Verdict, function="f")
    assert [(each.utc_ns, each.verdict) for each in history] == [(0, "holds"), (2, "violated"), (3, "holds")]


@given(st.dictionaries(st.integers(0, BUCKETS - 1), st.integers(1, 2**64 - 1), max_size=50))
def test_histograms_survive_the_bytes(counts: dict[int, int]) -> None:
    """Any counts come back exactly."""
    histogram = Histogram.from_pairs(list(counts), list(counts.values()))
    assert decode_histogram(encode_histogram(histogram)) == histogram
    assert {bucket: count for bucket, count in histogram.pairs} == counts


@given(st.data())
def test_damaged_bytes_are_an_error_and_never_a_wrong_shape(data: st.DataObject) -> None:
    """Bytes changed anywhere raise ValueError or decode to histograms of the right shape."""
    blob = bytearray(encode_paths(observation(1, names=("b", "?")).paths))
    blob[data.draw(st.integers(0, len(blob) - 1))] ^= data.draw(st.integers(1, 255))
    try:
        found = decode_paths(bytes(blob))
    except ValueError:
        return
    assert all(each.histogram.dense.shape == (BUCKETS,) for each in found)
