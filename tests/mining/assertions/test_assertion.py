"""Assertions: the fewest edges, by exhaustive search, and the preferences among equals."""

from __future__ import annotations

from itertools import combinations

import numpy as np
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from specmine.mining.assertions.assertion import Statement, state_groups
from specmine.mining.assertions.edge_search import Edge
from specmine.mining.assertions.expression import evaluate, named_edges, render, shared_names
from specmine.model.call_path import CallPath, Frame


def path(text: str) -> CallPath:
    """Return the path of names parted by blanks; ``name@module`` where it is not ``app``."""
    split = [([*frame.split("@"), "app"])[:2] for frame in text.split()]
    return CallPath(tuple(Frame(name, module) for name, module in split))


def texts(statement: Statement | None) -> list[str]:
    """Return the expressions."""
    assert statement is not None
    return [render(formula) for formula in statement.formulas]


def fewest(paths: list[CallPath], labels: list[int]) -> int | None:
    """Return by exhaustion how many edges it takes to tell the groups apart; None if none suffice."""
    sets = [p.edges() for p in paths]
    edges = sorted(set().union(*sets))
    for size in range(len(edges) + 1):
        for chosen in combinations(edges, size):
            seen: dict[frozenset[Edge], int] = {}
            if all(seen.setdefault(s & frozenset(chosen), g) == g for s, g in zip(sets, labels, strict=True)):
                return size
    return None


inner = st.lists(st.sampled_from("abcd"), min_size=0, max_size=4).map(lambda f: path(" ".join(["m", *f, "z"])))


@settings(max_examples=300, deadline=None)
@given(st.lists(st.tuples(inner, st.integers(0, 2)), min_size=1, max_size=9, unique_by=lambda t: t[0]))
def test_no_statement_uses_fewer_edges(cases: list[tuple[CallPath, int]]) -> None:
    """A* against exhaustive search; each formula holds for exactly the paths of its group."""
    paths = [p for p, _ in cases]
    kinds = sorted({g for _, g in cases})
    labels = [kinds.index(g) for _, g in cases]
    got = state_groups(paths, labels)
    expected = fewest(paths, labels)
    if expected is None:
        assert got is None
        return
    assert got is not None
    assert (got.edges, got.optimal, got.lower_bound) == (expected, True, expected)
    assert len(got.formulas) == len(kinds)
    for p, label in zip(paths, labels, strict=True):
        true = [g for g, formula in enumerate(got.formulas) if evaluate(formula, named_edges(p, frozenset()))]
        assert true == [label]


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(inner, st.integers(0, 1)), min_size=2, max_size=9, unique_by=lambda t: t[0]), st.randoms())
def test_the_order_of_the_paths_does_not_matter(cases: list[tuple[CallPath, int]], random: object) -> None:
    """The same paths in another order give the same text."""
    assume({g for _, g in cases} == {0, 1})
    shuffled = list(reversed(cases))
    first = state_groups([p for p, _ in cases], [g for _, g in cases])
    second = state_groups([p for p, _ in shuffled], [g for _, g in shuffled])
    assert (first is None) == (second is None)
    if first is not None:
        assert texts(first) == texts(second)


def test_the_example_of_the_first_paper() -> None:
    """z over a->b->c is told from z over a->b and a->c by the edge b->c."""
    paths = [path("main a b c z"), path("main a b z"), path("main a c z")]
    assert texts(state_groups(paths, [0, 1, 1])) == ["b->c", "not b->c"]


def test_three_groups_take_two_edges() -> None:
    """As semop's acquire, release and the rest in the first paper."""
    paths = [path("m w acquire semop"), path("m w release semop"), path("m w zero semop"), path("m k zero semop")]
    assert texts(state_groups(paths, [0, 1, 2, 2])) == [
        "acquire->semop",
        "release->semop",
        "not acquire->semop and not release->semop",
    ]


def test_of_equal_edges_the_nearest_to_the_function_is_taken() -> None:
    """Not the first of the chain."""
    assert texts(state_groups([path("m p q z"), path("m r z")], [0, 1])) == ["q->z", "not q->z"]


def test_of_equally_near_edges_the_programs_own_is_taken() -> None:
    """Before a library's, whatever the names."""
    paths = [path("m zz z"), path("m aa@lib z")]
    assert texts(state_groups(paths, [0, 1], program=frozenset({"app"}))) == ["zz->z", "not zz->z"]
    assert texts(state_groups(paths, [0, 1])) == ["not aa->z", "aa->z"]


def test_then_the_name_decides() -> None:
    """In the order of the alphabet."""
    assert texts(state_groups([path("m y z"), path("m x z")], [0, 1])) == ["not x->z", "x->z"]


def test_names_of_two_modules_are_told_apart() -> None:
    """With the module inside the backticks."""
    paths = [path("m read@app z"), path("m read@libc z")]
    got = state_groups(paths, [0, 1], shared=shared_names(paths), program=frozenset({"app"}))
    assert texts(got) == ["`read (app)`->z", "not `read (app)`->z"]


def test_one_group_is_true_and_equal_edges_are_hopeless() -> None:
    """One group needs no edge; the same set of edges in two groups cannot be told apart."""
    assert texts(state_groups([path("m z"), path("m a z")], [0, 0])) == ["true"]
    twice = [path("m a b a b z"), path("m a b z")]  # recursion: the same edges but one
    assert texts(state_groups(twice, [0, 1])) == ["b->a", "not b->a"]
    assert state_groups([path("m a b a b z"), path("m a b a b a b z")], [0, 1]) is None


def test_a_planted_edge_is_found_among_many_paths_in_bounded_time() -> None:
    """1,000 paths of 10 layers, groups by two edges: two edges again, proved optimal."""
    rng = np.random.default_rng(1)
    frames = {tuple(int(n) for n in rng.integers(6, size=8)) for _ in range(1_000)}
    paths = [path("main " + " ".join(f"f{i}_{n}" for i, n in enumerate(own)) + " z") for own in sorted(frames)]
    edges = sorted({e for p in paths for e in p.edges() if e[0].name != "main" and e[1].name != "z"})
    chosen = (edges[10], edges[60])
    labels = [min(2, sum((e in p.edges()) << i for i, e in enumerate(chosen))) for p in paths]
    got = state_groups(paths, labels)
    assert got is not None
    assert (got.edges, got.optimal) == (2, True)


def test_an_exhausted_search_says_so_and_still_separates() -> None:
    """With next to no limit a good set is taken, marked as not proved, with a lower bound."""
    rng = np.random.default_rng(2)
    frames = {tuple(int(n) for n in rng.integers(4, size=8)) for _ in range(40)}
    paths = [path("main " + " ".join(f"f{i}_{n}" for i, n in enumerate(own)) + " z") for own in sorted(frames)]
    labels = [int(n) for n in rng.integers(2, size=len(paths))]
    got = state_groups(paths, labels, limit=10)
    assert got is not None
    assert not got.optimal
    assert got.lower_bound < got.edges
    for p, label in zip(paths, labels, strict=True):
        assert evaluate(got.formulas[label], named_edges(p, frozenset()))
        assert not evaluate(got.formulas[1 - label], named_edges(p, frozenset()))


def test_groups_that_follow_no_edges_are_given_up_soon() -> None:
    """2,000 paths with groups by chance: no statement, and no search for one."""
    rng = np.random.default_rng(3)
    frames = {tuple(int(n) for n in rng.integers(6, size=8)) for _ in range(2_000)}
    paths = [path("main " + " ".join(f"f{i}_{n}" for i, n in enumerate(own)) + " z") for own in sorted(frames)]
    assert state_groups(paths, [int(n) for n in rng.integers(3, size=len(paths))]) is None
