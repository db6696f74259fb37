"""Several executions cut into the same classes before they are merged."""

from __future__ import annotations

from typing import Any

import numpy as np

from specmine.analysis.merge.reclassify import by_function, reclassify
from specmine.analysis.merge.specifications import merge_specifications
from specmine.mining.settings import MiningSettings
from specmine.model.call_path import CallPath, Frame
from specmine.model.histogram import Histogram
from specmine.model.observation import Kind, Observation, PathHistogram
from tests.support.recordings import FAST_NS, PATHS, SLOW_NS

KEY = "b1+0x10"
BORDER_NS = 35_000
SLOW = (0.0, 0.4, 0.4)
"""Share of slow calls on each path."""


def windows(seed: int, *, paths: bool, slow: tuple[float, ...] = SLOW, calls: int = 300) -> list[Observation]:
    """Draw five windows of calls to z, with their call paths or without."""
    random = np.random.default_rng(seed)
    made = []
    for number in range(5):
        which = random.integers(0, len(PATHS), calls)
        late = random.random(calls) < np.array(slow)[which]
        durations = (random.lognormal(0.0, 0.08, calls) * np.where(late, SLOW_NS, FAST_NS)).astype(np.int64)
        own = [CallPath(tuple(Frame(name, "app") for name in each.split(";"))) for each in PATHS]
        made.append(
            Observation(
                function=KEY, lifetime=f"boot:{seed}", kind=Kind.PATH if paths else Kind.TIME, start_ns=number,
                end_ns=number + 1, histogram=Histogram.from_durations(durations), calls=calls, watched_ns=1,
                paths=tuple(PathHistogram(path=path, histogram=Histogram.from_durations(durations[which == at]))
                            for at, path in enumerate(own)) if paths else (),
            )
        )  # fmt: skip
    return made


def document(*borders_ns: float, state: str = "explained") -> dict[str, Any]:
    """Return what one execution says of z, as far as merging reads it."""
    entry = {
        "function": "z",
        "module": "app",
        "key": KEY,
        "build_id": "b1",
        "state": state,
        "calls": 1500,
        "timed": 1500,
        "borders_seconds": [each * 1e-9 for each in borders_ns],
        "borders": [],
        "classes": [{"upper_seconds": None, "share": 1.0}],
        "behaviours": [],
        "paths": [],
    }
    return {
        "schema": "specmine.specification/1",
        "program": {"path": "/bin/app", "build_id": "b1"},
        "host": {"boot_id": "boot"},
        "collection": {"seconds": 10.0},
        "functions": [entry],
    }


def again(documents: list[dict[str, Any]], seen: list[list[Observation]]) -> list[dict[str, Any]]:
    """Return the one function of each under common classes."""
    made = reclassify(documents, [by_function(each) for each in seen], mining=MiningSettings())
    return [each["functions"][0] for each in made]


def test_all_executions_get_the_border_that_most_have() -> None:
    """Where one overlooked it, its call paths are grouped by it all the same, by its own calls only."""
    seen = [[*windows(seed, paths=False), *windows(10 + seed, paths=True)] for seed in (1, 2)]
    first, second = again([document(BORDER_NS), document(state="unexplained")], seen)
    assert [each["state"] for each in (first, second)] == ["explained", "explained"]
    assert first["borders_seconds"] == second["borders_seconds"]
    for each in (first, second):
        assert sorted(one["expression"] for one in each["behaviours"]) == ["b->c", "not b->c"]
        assert sum(one["calls"] for one in each["behaviours"]) == 1500
        assert sum(one["share"] for one in each["classes"]) == 1.0
    assert first["borders"][0]["evidence"] == {"executions": 2, "of_executions": 2}
    step = merge_specifications([{**document(), "functions": [each]} for each in (first, second)]).document[
        "functions"
    ][0]["merge"]
    assert step["steps"][0]["calls_ratio"] == 1.0


def test_a_border_of_one_execution_alone_goes() -> None:
    """With it go its classes and groups; the entry says which borders those were."""
    none = (0.0, 0.0, 0.0)
    seen = [
        [*windows(1, paths=False), *windows(11, paths=True)],
        *(windows(seed, paths=False, slow=none) for seed in (2, 3)),
    ]
    first, second, _ = again([document(BORDER_NS), document(state="single"), document(state="single")], seen)
    assert (first["state"], first["borders_seconds"], len(first["classes"])) == ("single", [], 1)
    assert [each["paths"] for each in first["behaviours"]] == [0]
    assert len(first["dropped_seconds"]) == 1
    assert second["dropped_seconds"] == []


def test_what_is_asserted_anew_has_levels() -> None:
    """Each behaviour and class under the common border does, with a range; and the merge of all has them too."""
    seen = [[*windows(seed, paths=False), *windows(10 + seed, paths=True)] for seed in (1, 2)]
    asserted = {"p50": {"seconds": 2e-5, "low": 1e-5, "high": 3e-5}}
    documents = [document(BORDER_NS), document(state="single")]
    for each in documents:
        each["functions"][0]["quantiles"] = asserted
    made = again(documents, seen)
    merged = merge_specifications([{**document(), "functions": [each]} for each in made]).document["functions"][0]
    for entry in (*made, merged):
        for each in (*entry["behaviours"], *entry["classes"]):
            assert (
                each["quantiles"]["p50"]["low"] < each["quantiles"]["p50"]["seconds"] < each["quantiles"]["p50"]["high"]
            )
    none = (0.0, 0.0, 0.0)
    seen[1:] = [windows(seed, paths=False, slow=none) for seed in (2, 3)]
    (whole,) = again([*documents, documents[1]], seen)[0]["behaviours"]
    assert (whole["expression"], whole["quantiles"]) == ("true", asserted)


def test_an_execution_without_call_paths_agrees_and_disagrees_with_nothing() -> None:
    """It has the classes of the others, and no word on which call paths go with them."""
    seen = [[*windows(1, paths=False), *windows(11, paths=True)], windows(2, paths=False)]
    first, second = again([document(BORDER_NS), document(state="single")], seen)
    assert (second["state"], second["reason"]["code"]) == ("unexplained", "unseen-paths")
    assert [round(each["share"], 1) for each in second["classes"]] == [0.7, 0.3]
    made = merge_specifications([{**document(), "functions": [each]} for each in (first, second)]).document[
        "functions"
    ][0]
    assert made["merge"]["steps"] == []
    assert made["state"] == "explained"


def test_inputs_without_observations_stay_as_they_are() -> None:
    """A specification in JSON cannot be counted again."""
    own = [document(BORDER_NS), document(50_000.0)]
    assert reclassify(own, [by_function(windows(1, paths=True)), {}], mining=MiningSettings()) == own
