"""A misspelt name is answered with those that look like it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from specmine.cli.text.suggestions import did_you_mean
from specmine.model.similar_names import nearest

Run = Callable[..., tuple[int, str, str]]


def test_the_most_similar_come_first_and_nothing_else() -> None:
    assert nearest("functionz", ["functions", "show"]) == ["functions"]
    assert nearest("CheckSum", ["checksum"]) == ["checksum"]
    assert nearest("zzzz", ["functions"]) == []
    assert did_you_mean("cheksum", ["checksum"]) == "; did you mean checksum"
    assert did_you_mean("zzzz", ["checksum"]) == ""


def test_commands_functions_and_programs_are_suggested(outcome: Run, store: Path, document: dict[str, object]) -> None:
    """One line, exit code 2, and the name that was meant."""
    code, _, err = outcome("functionz")
    assert (code, err) == (2, "specmine: no such command 'functionz'; did you mean functions; see `specmine --help`\n")
    functions = document["functions"]
    assert isinstance(functions, list)
    name = max((str(each["function"]) for each in functions), key=len)
    code, _, err = outcome("show", f"{name}x", "--store", store)
    assert code == 2
    assert f"did you mean {name}" in err
    program = str(functions[0].get("program") or functions[0]["module"])
    code, _, err = outcome("functions", "--program", f"{program}q", "--store", store)
    assert code == 2
    assert f"did you mean {program}" in err
