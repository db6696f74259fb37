"""Paths that differ in rare edges only are explained as one, and the explanation holds for each of them."""

from __future__ import annotations

import numpy as np

from specmine.mining.assertions.explanation import Behaviour, ExplainedPath, Explanation
from specmine.mining.assertions.expression import Formula, Literal, evaluate, named_edges
from specmine.mining.assertions.merged_paths import merged_paths, unmerged
from specmine.model.call_path import GAP, CallPath, Frame


def path(text: str, *, complete: bool = True) -> CallPath:
    """Return the path of names that are parted by blanks."""
    return CallPath(tuple(Frame(name, "") for name in text.split()), complete)


def names(one: CallPath) -> str:
    """Return the names of a path, a dot for a gap."""
    return " ".join(frame.name if frame is not GAP else "." for frame in one.frames)


PATHS = [path(f"main a{n % 3} b{n % 5} c{n} z") for n in range(3_000)]
CALLS = np.full(3_000, 10)


def test_few_paths_stay_as_they_are() -> None:
    """Up to the limit nothing is merged."""
    merged = merged_paths(PATHS[:100], CALLS[:100])
    assert merged.paths == tuple(PATHS[:100])
    assert merged.member.tolist() == list(range(100))


def test_rare_edges_become_gaps() -> None:
    """Of 3,000 callers with ten calls each nothing is left but where they are called from."""
    merged = merged_paths(PATHS, CALLS)
    assert {names(one) for one in merged.paths} == {f"main a{a} b{b} . z" for a in range(3) for b in range(5)}
    assert [names(merged.paths[number]) for number in merged.member[:2]] == ["main a0 b0 . z", "main a1 b1 . z"]
    first = merged.paths[merged.member[0]]
    assert first.edges() == {(Frame("main", ""), Frame("a0", "")), (Frame("a0", ""), Frame("b0", ""))}


def test_a_heavy_edge_stays() -> None:
    """One of the callers takes a third of the calls."""
    merged = merged_paths(PATHS, np.where(np.arange(3_000) == 7, 15_000, CALLS))
    assert names(merged.paths[merged.member[7]]) == "main a1 b2 c7 z"
    assert len(merged.paths) == 16


def test_what_is_too_many_is_left_out_by_weight() -> None:
    """Where every edge is common only the heaviest paths are kept."""
    rng = np.random.default_rng(1)
    every = [path("main " + " ".join(f"f{n}" for n in rng.permutation(8)) + " z") for _ in range(500)]
    merged = merged_paths(every, np.arange(500), most=100)
    assert len(merged.paths) == 100
    left = [one for one, member in zip(every, merged.member.tolist(), strict=True) if member < 0]
    assert len(left) == 500 - sum(member >= 0 for member in merged.member.tolist())
    assert {every.index(one) for one in merged.paths} <= set(range(500))
    assert every[499] in merged.paths


def test_incomplete_paths_are_one() -> None:
    """They distinguish nothing."""
    some = [path(f"x{n} z", complete=False) for n in range(3_000)]
    merged = merged_paths([*PATHS, *some], np.full(6_000, 10))
    assert sum(not one.complete for one in merged.paths) == 1


def test_an_explanation_of_merged_paths_holds_for_each() -> None:
    """Behaviours, calls and classes are those of the paths; a path that was left out has what its edges say."""
    merged = merged_paths(PATHS, CALLS)
    formula = {True: "main->a0", False: "not main->a0"}
    counts = np.array([[10, 0] if n % 3 else [2, 8] for n in range(3_000)])
    over = {True: [2_000, 8_000], False: [20_000, 0]}
    literals = {flag: _formula(flag) for flag in (True, False)}
    order = (False, True)
    explanation = Explanation(
        borders=(5,),
        bias_ns=0.0,
        class_calls=(22_000, 8_000),
        behaviours=tuple(
            Behaviour(expression=formula[flag], formula=literals[flag], calls=sum(over[flag]), paths=5,
                      class_calls=tuple(over[flag])) for flag in order
        ),
        paths=tuple(
            ExplainedPath(path=one, calls=2_000, class_calls=(0, 0), behaviour=int("main a0" in names(one)),
                          certainty=1.0, independent_calls=500.0) for one in merged.paths
        ),
    )  # fmt: skip
    got = unmerged(explanation, PATHS, counts, merged)
    assert [one.paths for one in got.behaviours] == [2_000, 1_000]
    assert [one.class_calls for one in got.behaviours] == [(20_000, 0), (2_000, 8_000)]
    assert sum(one.calls for one in got.paths) == 30_000
    for one in got.paths[::97]:
        assert one.behaviour is not None
        assert evaluate(got.behaviours[one.behaviour].formula, named_edges(one.path, ()))
        assert one.independent_calls == 2.5
    merged.member[0] = -1
    assert (
        next(one for one in unmerged(explanation, PATHS, counts, merged).paths if one.path == PATHS[0]).behaviour == 1
    )


def _formula(present: bool) -> Formula:
    return ((Literal("main", "a0", present),),)
