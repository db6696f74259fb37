"""Globs of the user over the names of functions."""

from __future__ import annotations

import pytest

from specmine.model.function import Function
from specmine.model.globs import bare_name, matches

FUNCTION = Function(
    build_id="b",
    offset=16,
    name="ns::Queue<int>::push(int, void (*)(int))",
    module="libq.so.1",
    aliases=("queue_push",),
    mangled="_ZN2ns5Queue4pushEi",
)


@pytest.mark.parametrize(
    "glob",
    [
        "ns::Queue<int>::push(int, void (\\*)(int))".replace("\\*", "[*]"),
        "ns::Queue<int>::push",
        "ns::*::push",
        "_ZN2ns*",
        "queue_push",
        "*(libq.so.1)",
    ],
)
def test_a_glob_may_speak_of_any_name(glob: str) -> None:
    """Display name, it without parameters, mangled name, alias and name with module are all tried."""
    assert matches(FUNCTION, (glob,))


@pytest.mark.parametrize("glob", ["push", "NS::*", "ns::Queue<int>", "*(libq)", ""])
def test_a_glob_fits_whole_names_and_their_case(glob: str) -> None:
    """A glob must cover the whole name, in its case."""
    assert not matches(FUNCTION, (glob,))
    assert not matches(FUNCTION, ())


@pytest.mark.parametrize(
    ("name", "bare"),
    [
        ("f", "f"),
        ("f(int)", "f"),
        ("ns::f(void (*)(int)) const", "ns::f"),
        ("(anonymous namespace)::f(int)", "(anonymous namespace)::f"),
        ("operator()(int)", "operator()"),
        ("(anonymous namespace)::g", "(anonymous namespace)::g"),
    ],
)
def test_the_parameter_list_is_taken_off(name: str, bare: str) -> None:
    """Only the last pair of parentheses is the parameter list."""
    assert bare_name(name) == bare
