"""Units and ranges have the letters of people wherever the text wraps."""

from __future__ import annotations

import io
import textwrap

import pytest

from specmine.cli.base.typography import typeset


def stream(encoding: str) -> io.TextIOWrapper:
    """Return where a text goes."""
    return io.TextIOWrapper(io.BytesIO(), encoding=encoding)


@pytest.mark.parametrize("columns", range(18, 60))
def test_a_line_may_end_between_a_number_and_its_unit(columns: int) -> None:
    """No unit stays as it was, however wide the terminal is."""
    text = textwrap.fill(
        "it takes from 3.7 us to 99 us, normally 35-41 us, 2x as long", columns, subsequent_indent="    "
    )
    shown = typeset(text, stream("utf-8"))
    assert " ".join(shown.split()) == "it takes from 3.7 µs to 99 µs, normally 35–41 µs, 2× as long"
    assert typeset(text, stream("ascii")) == text


def test_a_function_of_that_name_keeps_it() -> None:
    """Below a number there may be a row of a function that is called us."""
    assert typeset("f   12\nus  13\n", stream("utf-8")) == "f   12\nus  13\n"
