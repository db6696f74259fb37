"""One specification out of several: states and behaviours that fit each other."""

from __future__ import annotations

from typing import Any

from specmine.analysis.merge.agreement import agreement_document
from specmine.analysis.merge.specifications import merge_specifications


def document(build: str, paths: dict[str, tuple[int, tuple[float, float]]]) -> dict[str, Any]:
    """Return a specification of z: per path its group and class shares, 100 calls each."""
    groups = sorted({group for group, _ in paths.values()})
    return {
        "schema": "specmine.specification/1",
        "program": {"path": "/bin/app", "build_id": build},
        "host": {},
        "collection": {"seconds": 1.0},
        "functions": [
            {
                "function": "z",
                "module": "app",
                "state": "explained" if len(groups) > 1 else "unexplained",
                "reason": None,
                "timed": 100 * len(paths),
                "classes": [{"upper_seconds": 1e-5, "share": 0.5}, {"upper_seconds": None, "share": 0.5}],
                "behaviours": [{"expression": str(group)} for group in groups],
                "paths": [
                    {
                        "frames": path.split(";"),
                        "complete": True,
                        "calls": 100,
                        "shares": list(shares),
                        "behaviour": group,
                    }
                    for path, (group, shares) in paths.items()
                ],
            }
        ],
    }


def one(*documents: dict[str, Any]) -> dict[str, Any]:
    """Return the one function of the merged specification."""
    (entry,) = merge_specifications(documents).document["functions"]
    return dict(entry)


def test_groups_that_only_an_inlined_frame_told_apart_become_one() -> None:
    """The deciding function is gone in the other build: one behaviour is left, and the state says that."""
    first = document("b1", {"main;s;f;z": (0, (1.0, 0.0)), "main;s;z": (1, (0.0, 1.0))})
    second = document("b2", {"main;t;z": (0, (0.5, 0.5))})
    entry = one(first, second)
    assert entry["state"] == "unexplained"
    assert [(each["expression"], each["calls"], each["shares"]) for each in entry["behaviours"]] == [
        ("true", 300, [0.5, 0.5])
    ]
    assert [(each["frames"], each["behaviour"]) for each in entry["paths"]] == [(["main", "z"], 0)]


def test_functions_are_sorted_by_calls_then_name() -> None:
    """Calls, not those of them that were timed: as in every other list."""

    def counted(name: str, calls: int, timed: int) -> dict[str, Any]:
        (entry,) = document("b1", {"main;z": (0, (0.5, 0.5))})["functions"]
        return dict(entry, function=name, calls=calls, timed=timed)

    some = document("b1", {}) | {"functions": [counted("y", 9, 9), counted("x", 9, 3), counted("w", 800, 2)]}
    merged = merge_specifications([some, some]).document
    assert [(each["function"], each["calls"]) for each in merged["functions"]] == [("w", 1600), ("x", 18), ("y", 18)]
    listed = agreement_document([], merged)["functions"]
    assert [(each["function"], each["calls"]) for each in listed] == [("y", 18), ("x", 6), ("w", 4)]


def test_classes_have_the_shares_of_all() -> None:
    """Three times as many calls of the second input move them."""
    first = document("b1", {"main;a;z": (0, (1.0, 0.0)), "main;b;z": (1, (0.0, 1.0))})
    second = document("b1", {"main;a;z": (0, (1.0, 0.0)), "main;c;z": (0, (1.0, 0.0)), "main;d;z": (0, (1.0, 0.0))})
    entry = one(first, second)
    assert [each["share"] for each in entry["classes"]] == [0.8, 0.2]
    assert {each["expression"] for each in entry["behaviours"]} == {"b->z", "not b->z"}
    assert entry["merge"]["steps"][0]["shared_paths"] == 1


def test_what_was_observed_adds_up() -> None:
    """Histograms of one scale are one; of another build the larger stands for both."""
    first = document("b1", {"main;a;z": (0, (1.0, 0.0))})
    second = document("b1", {"main;a;z": (0, (1.0, 0.0)), "main;b;z": (0, (1.0, 0.0))})
    for each, histogram in ((first, [[7, 60], [9, 40]]), (second, [[9, 200]])):
        each["functions"][0] |= {"histogram": histogram, "watched_seconds": 4.0, "observations": 5}
    entry = one(first, second)
    assert entry["histogram"] == [[7, 60], [9, 240]]
    assert (entry["watched_seconds"], entry["observations"]) == (8.0, 10)
    second["functions"][0]["build_id"] = "other"
    assert one(first, second)["histogram"] == [[9, 200]]


def test_what_few_calls_do_not_tell_is_undecided() -> None:
    """One group by 20 calls a path, worth 10: the other input's two groups have the same shares, and are kept."""
    shares = {"main;a;z": (0.9, 0.1), "main;b;z": (0.5, 0.5), "main;c;z": (0.9, 0.1)}
    few = document("b1", {path: (0, own) for path, own in shares.items()})
    many = document("b1", {path: (int(path == "main;b;z"), own) for path, own in shares.items()})
    for each, calls, independent_calls in ((few, 20, 10.0), (many, 2_000, 1_000.0)):
        each["functions"][0]["timed"] = 3 * calls
        for path in each["functions"][0]["paths"]:
            path |= {"calls": calls, "independent_calls": independent_calls}
    entry = one(few, many)
    (step,) = entry["merge"]["steps"]
    assert (step["shared_paths"], step["consistent_paths"], step["undecided_paths"]) == (3, 2, 1)
    assert (step["calls_ratio"], step["paths_ratio"]) == (1.0, 1.0)
    assert round(step["undecided_ratio"], 3) == 0.333
    assert {each["expression"] for each in entry["behaviours"]} == {"b->z", "not b->z"}
    assert {path["independent_calls"] for path in entry["paths"]} == {1_010.0}
    for path in few["functions"][0]["paths"]:
        path |= {"calls": 2_000, "independent_calls": 1_000.0, "shares": [0.9, 0.1]}
    assert one(few, many)["merge"]["steps"][0]["undecided_paths"] == 0
