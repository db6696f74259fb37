"""A specification whose parts are not what their names say is refused in one line that names the part."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from specmine.analysis.documents import json_specification
from specmine.analysis.specification_shape import check_shape
from specmine.model.errors import InputError
from tests.support.command_line import DATA

SAMPLE: dict[str, Any] = json.loads((DATA / "app.json").read_text())


def test_what_specmine_writes_is_accepted() -> None:
    """The sample has a function in each of six states."""
    check_shape(SAMPLE, "it")


def test_paths_without_a_behaviour_are_accepted() -> None:
    """Incomplete ones, and those of functions that what happened inside calls explains."""
    document = copy.deepcopy(SAMPLE)
    path = next(each for one in document["functions"] for each in one.get("paths") or ())
    path.update(complete=False, behaviour=None, certainty=None, independent_calls=None)
    check_shape(document, "it")


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("calls", "many", "functions[0].calls is 'many'"),
        ("calls", -1, "functions[0].calls is -1"),
        ("time_share", float("nan"), "functions[0].time_share is nan"),
        ("unknown", [0.5, float("inf")], "functions.unknown is inf, which is no number in JSON"),
        ("evidence", {"deep": [{"er": float("nan")}]}, "functions.evidence.deep.er is nan"),
        ("function", None, "functions[0].function is None"),
        ("behaviours", None, "functions[0].behaviours is None"),
        ("behaviours", [{"expression": "true", "shares": [1.0]}], "functions[0].behaviours[0] has no calls"),
        ("borders_seconds", [10**400], "functions[0].borders_seconds is"),
        ("histogram", [[10**9, 1]], "functions[0].histogram is"),
        ("\x1b[2J", [{"calls": "x"}], "functions[0].\\x1b[2J[0].calls is 'x'"),
    ],
)
def test_a_wrong_part_is_named(name: str, value: object, words: str) -> None:
    """Type, range, and what an entry must have."""
    document = copy.deepcopy(SAMPLE)
    document["functions"][0][name] = value
    with pytest.raises(InputError) as refused:
        check_shape(document, "it")
    assert words in refused.value.message


def test_a_part_of_the_whole_is_named() -> None:
    """The program of a specification is an object, that of a function's entry a name; each entry has a module."""
    with pytest.raises(InputError, match="program is 'app'"):
        check_shape({**SAMPLE, "program": "app"}, "it")
    document = copy.deepcopy(SAMPLE)
    del document["functions"][1]["module"]
    with pytest.raises(InputError, match=r"functions\[1\] has no module"):
        check_shape(document, "it")


@pytest.mark.parametrize(
    "content",
    [b"\xff\xfe", b"[" * 5000, b'{"schema": "specmine.specification/1", "functions": 1}', b"[]", b""],
    ids=["no UTF-8", "deep", "no list", "a list", "empty"],
)
def test_what_is_no_specification_is_an_input_error(tmp_path: Path, content: bytes) -> None:
    """Whatever a file holds."""
    (tmp_path / "s.json").write_bytes(content)
    with pytest.raises(InputError, match=r"s\.json is no"):
        json_specification(tmp_path / "s.json")
