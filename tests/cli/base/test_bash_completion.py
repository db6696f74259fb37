"""How bash reads a line, and what readline must get for it."""

from __future__ import annotations

import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specmine.cli.base.bash_completion import words_of, written

BREAKS = " \t\n\"'><=;|&(:"


@given(st.lists(st.text(st.characters(codec="ascii", categories=("L", "P", "S", "Zs")), min_size=1), min_size=1))
def test_words_are_those_that_a_shell_reads(words: list[str]) -> None:
    """Whatever the words hold: quoted as a shell wants them, they come back."""
    assert [each.text for each in words_of(shlex.join(words), BREAKS)] == words


@pytest.mark.parametrize(
    ("line", "texts", "quote", "kept"),
    [
        ("a std::ma", ["a", "std::ma"], "", "std::"),
        ("a ", ["a", ""], "", ""),
        ("a 'std::x y", ["a", "std::x y"], "'", ""),
        ('a "b\\"c', ["a", 'b"c'], '"', ""),
        ("a --program=x::y", ["a", "--program=x::y"], "", "--program=x::"),
        ("a x\\:y", ["a", "x:y"], "", ""),
        ("a ''", ["a", ""], "", ""),
    ],
)
def test_the_word_that_is_begun(line: str, texts: list[str], quote: str, kept: str) -> None:
    found = words_of(line, BREAKS)
    assert [each.text for each in found] == texts
    assert found[-1].quote == quote
    assert found[-1].text[: found[-1].broken] == kept


@pytest.mark.parametrize(
    ("line", "value", "replaces"),
    [
        ("std::ma", "std::map<int>", "map\\<int\\>"),
        ("st", "std::map", "std::map"),
        ("'std::ma", "std::map<int>", "std::map<int>"),
        ('"std', 'a"$b', 'a\\"\\$b'),
        ("--program=x::y", "x::yz", "yz"),
        ("--program=", "a b", "a\\ b"),
        ("::", "::operator new", "operator\\ new"),
    ],
)
def test_readline_gets_what_stands_behind_what_it_keeps(line: str, value: str, replaces: str) -> None:
    assert written(value, words_of(line, BREAKS)[-1]) == replaces
