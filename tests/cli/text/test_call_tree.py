"""Call paths drawn as one tree."""

from __future__ import annotations

from specmine.cli.text.call_tree import deciding_edges, tree

PATHS = [
    {"frames": ["main", "a", "b", "c", "z"], "complete": True, "calls": 10, "behaviour": 0},
    {"frames": ["main", "a", "b", "z"], "complete": True, "calls": 20, "behaviour": 1},
    {"frames": ["b", "z"], "complete": False, "calls": 1, "behaviour": None},
]


def test_paths_merge_and_deciding_edges_stand_out() -> None:
    """Common beginnings are drawn once, calls add up, incomplete paths stand apart."""
    formula = [[{"caller": "b (app)", "callee": "c", "present": True}]]
    lines = tree(PATHS, deciding_edges([{"formula": formula}, {"formula": [[]]}]), 80)
    assert lines == [
        "  main -> a -> b   30",
        "    -> z   20  behaviour 2",
        "    => c -> z   10  behaviour 1",
        "  (incomplete: not followed to the thread's start)",
        "  b -> z   1  no behaviour",
    ]


def test_a_path_that_ends_inside_another_is_not_lost() -> None:
    """A path that is the beginning of another has its own mark."""
    paths = [
        {"frames": ["main", "z"], "complete": True, "calls": 5, "behaviour": 0},
        {"frames": ["main", "z", "z2", "z"], "complete": True, "calls": 7, "behaviour": 1},
    ]
    assert tree(paths, frozenset(), 80) == [
        "  main -> z   12  behaviour 1",
        "    -> z2 -> z   7  behaviour 2",
    ]


def test_a_path_of_few_calls_says_so() -> None:
    """Where it is not sure which behaviour it has, that is shown."""
    paths = [
        {"frames": ["main", "a", "z"], "complete": True, "calls": 900, "behaviour": 0, "certainty": 1.0},
        {"frames": ["main", "b", "z"], "complete": True, "calls": 3, "behaviour": 1, "certainty": 0.52},
    ]
    assert tree(paths, frozenset(), 80) == [
        "  main   903",
        "    -> a -> z   900  behaviour 1",
        "    -> b -> z   3  behaviour 2 (52 % sure)",
    ]


def test_deep_trees_fit() -> None:
    """Sixty levels of forks stay within the width and lose no frame."""
    paths = [
        {"frames": [f"f{at}" for at in range(depth)] + ["z"], "complete": True, "calls": 1, "behaviour": 0}
        for depth in range(1, 60)
    ]
    lines = tree(paths, frozenset(), 80)
    assert max(map(len, lines)) <= 80
    assert all(f"f{at}" in "\n".join(lines) for at in range(59))
