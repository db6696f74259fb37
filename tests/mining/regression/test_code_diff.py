"""Suspects are ranked by what speaks against them, and what was only linked anew is none."""

from __future__ import annotations

import pytest

from specmine.mining.regression.code_diff import (
    CodeChange,
    Name,
    ReachedFunction,
    code_change,
    rank_suspects,
    same_code,
    unchanged_code,
)


def one(
    name: str, digest: str, *, share: float = 0.0, offset: int = 16, callers: tuple[str, ...] = ()
) -> ReachedFunction:
    """Return a function of which a thousand samples are a whole."""
    return ReachedFunction(
        name=(name, "app"), digest=f"1:{digest}:l0", offset=offset, samples=1000 * share, share=share,
        callers={(each, "app"): 1.0 for each in callers},
    )  # fmt: skip


def build(*functions: ReachedFunction) -> dict[Name, ReachedFunction]:
    """Return functions by name."""
    return {each.name: each for each in functions}


BASE = build(
    one("hot", "a", share=0.3, callers=("run",)),
    one("cold", "b", share=0.01, callers=("run",)),
    one("run", "c", share=0.05, callers=("main",)),
    one("main", "d"),
    one("aside", "e", share=0.2, callers=("main",)),
)


@pytest.mark.parametrize(
    ("first", "second", "same"),
    [
        ("1:a:l0", "1:a:l0", True),
        ("1:a:l0", "1:b:l0", False),
        ("1:a:l0", "1:a:l1", False),
        ("1:a:l0", "1:a:e1", True),
        ("1:a:l0", "2:a:l0", None),
        ("", "1:a:l0", None),
    ],
)
def test_digests_are_compared_as_far_as_they_go(first: str, second: str, same: bool | None) -> None:
    """Another scheme says nothing; names count only where the same names could be known."""
    assert same_code(first, second) is same


def test_nothing_is_suspect_where_all_only_moved() -> None:
    """Another place is no change, and times that grew without changed code below them accuse nobody."""
    moved = {name: ReachedFunction(name=name, digest=each.digest, offset=each.offset + 64, samples=each.samples,
                           share=(each.share or 0) * 1.5, callers=each.callers)
             for name, each in BASE.items()}  # fmt: skip
    assert rank_suspects(BASE, moved, {("hot", "app"): 1.5}) == ()
    assert {code_change(BASE[name], moved[name]) for name in BASE} == {CodeChange.MOVED}


def test_changed_code_that_takes_more_comes_first_and_callers_behind_it() -> None:
    """What grew leads, changed or new; the worse caller follows, who calls none of them is not there."""
    new = BASE | build(
        one("hot", "x", share=0.45, callers=("run",)),
        one("cold", "y", share=0.01, callers=("run",)),
        one("fresh", "z", share=0.02, callers=("main",)),
    )
    found = rank_suspects(BASE, new, {("run", "app"): 1.3, ("aside", "app"): 1.2})
    assert [each.name[0] for each in found] == ["hot", "fresh", "cold", "run"]
    assert [each.grown for each in found] == [True, True, False, True]
    assert found[-1].through == (("cold", "app"), ("hot", "app"))
    assert found[-1].code is CodeChange.SAME


def test_few_samples_show_no_growth() -> None:
    """Three samples instead of one are chance."""
    base = build(ReachedFunction(name=("f", "app"), digest="1:a:l0", samples=1, share=0.01))
    new = build(ReachedFunction(name=("f", "app"), digest="1:b:l0", samples=3, share=0.03))
    assert [each.grown for each in rank_suspects(base, new, {})] == [False]


def test_code_is_unchanged_only_if_that_of_all_callees_is() -> None:
    """A changed leaf spoils its callers up to the root; functions beside it stay unchanged."""
    new = BASE | build(one("cold", "x", share=0.01, callers=("run",)))
    found = {name: unchanged_code((name, "app"), BASE, new) for name in ("main", "run", "hot", "cold", "aside")}
    assert found == {"main": False, "run": False, "hot": True, "cold": False, "aside": True}


@pytest.mark.parametrize(("share", "known"), [(0.001, True), (0.05, None)])
def test_a_callee_of_unknown_code_counts_if_it_takes_time(share: float, known: bool | None) -> None:
    """Where a callee that matters has no digest, or only one build reached it, nobody knows."""
    unknown = ReachedFunction(name=("lib", "libx.so"), share=share, samples=1000 * share, callers={("run", "app"): 1.0})
    assert unchanged_code(("run", "app"), BASE | build(unknown), BASE | build(unknown)) is known
    assert unchanged_code(("run", "app"), BASE, BASE | build(unknown)) is known
    same_file = ReachedFunction(name=("lib", "libx.so"), key="ab+0x10", share=share, callers={("run", "app"): 1.0})
    assert unchanged_code(("run", "app"), BASE | build(same_file), BASE | build(same_file)) is True


def test_without_samples_nobody_knows_what_is_called() -> None:
    """A function that was named instead of found has code of its own, but its callees are unknown."""
    named = build(ReachedFunction(name=("run", "app"), digest="1:c:l0", offset=16))
    assert unchanged_code(("run", "app"), named, named) is None
    assert unchanged_code(("other", "app"), BASE, BASE) is None
