"""Durations in NDJSON."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from specmine.model.errors import InputError
from tests.support.recordings import analyzed, behaviours, calls, read_calls


def test_ndjson_takes_what_csv_takes(tmp_path: Path) -> None:
    """Paths as texts or lists, numbers as numbers or texts, blank lines; the same model as from CSV."""
    some = calls(6000)
    lines = [
        json.dumps({"function": "z", "duration_ns": duration if at % 2 else str(duration), "note": [1, {}],
                    "path": path if at % 3 else path.split(";")})
        for at, (path, duration) in enumerate(some)
    ]  # fmt: skip
    document = analyzed(tmp_path, "\n\n".join(lines))
    assert document["collection"]["source"]["format"] == "ndjson"
    by_path = Counter(path for path, _ in some)
    assert behaviours(document)["b->c"] == by_path["main;a;b;c;z"]


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ('{"duration_ns": 5', "not JSON"),
        ('{"duration_ns": 5}, {"duration_ns": 5}', "not JSON"),
        ("[5]", "not a JSON object"),
        ('{"duration_ns": -1}', "not a decimal"),
        ('{"duration_ns": NaN}', "not a decimal"),
        ('{"duration_ns": true}', "not a decimal"),
        ('{"function": "z"}', "no duration_ns"),
        ('{"duration_ns": 5, "path": {"a": 1}}', "texts"),
        ('{"duration_ns": 5, "time_ns": 1}', "in some lines"),
        ('{"duration_ns": "\\ud800"}', "not a decimal"),
    ],
)
def test_bad_ndjson_is_told_by_line(tmp_path: Path, line: str, why: str) -> None:
    """Whatever is wrong with a line, only that line is lost, and its number is right."""
    file = tmp_path / "lines"
    file.write_text(f'{{"duration_ns": 5}}\n\n{line}\n{{"duration_ns": 6}}\n')
    with pytest.raises(InputError, match=f"line 3: .*{why}"):
        read_calls(file)
    _, found, _, faults = read_calls(file, skip=True)
    assert (found, faults.skipped) == ({("all", "?"): [5.0, 6.0]}, 1)


@pytest.mark.parametrize("time", [2**63, -(2**63), 10**30])
def test_a_time_beyond_all_clocks_is_told_by_line(tmp_path: Path, time: int) -> None:
    """A whole number may be longer than any clock's."""
    file = tmp_path / "lines"
    file.write_text(f'{{"duration_ns": 5, "time_ns": 7}}\n{{"duration_ns": 6, "time_ns": {time}}}\n')
    with pytest.raises(InputError, match=r"line 2: time_ns is .*not a whole number of ns"):
        read_calls(file)
    _, found, _, faults = read_calls(file, skip=True)
    assert (found, faults.skipped) == ({("all", "?"): [5.0]}, 1)
