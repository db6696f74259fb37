"""What other tools really print (data/, cut short), and damage to it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from specmine.model.errors import InputError
from tests.support.recordings import analyzed, calls, csv_text, one, read_calls

DATA = Path(__file__).parent / "data"


def _cut_short(text: str) -> str:
    return text[: len(text) // 2]


@pytest.mark.parametrize("name", ["uftrace.json", "uftrace.replay", "perf.txt", "bpftrace.txt"])
@pytest.mark.parametrize(
    "damage", [_cut_short, lambda text: text.replace(":", "", 9), lambda text: text.replace("\n", " ", 5)]
)
def test_damage_is_one_error_or_less_data(name: str, damage: Callable[[str], str], tmp_path: Path) -> None:
    """Files that end early or are mangled never end in anything but InputError."""
    file = tmp_path / "damaged"
    file.write_text(damage((DATA / name).read_text()))
    form = "perf" if name.endswith(".txt") else "uftrace"
    try:
        read_calls(file, form)
    except InputError as error:
        assert "line" in str(error) or "holds no" in str(error)
    whole = sum(map(len, read_calls(DATA / name)[1].values()))
    try:
        assert sum(map(len, read_calls(file, form, skip=True)[1].values())) <= whole
    except InputError as error:
        assert "holds no" in str(error)  # nothing is left of the form


def test_a_format_that_cannot_be_told_is_asked_for(tmp_path: Path) -> None:
    """Nothing is guessed; UTF-16 and folders are refused in one line."""
    file = tmp_path / "x"
    for data, why in ((b"hello world\n", "--from"), (b"\xff\xfeh\x00", "UTF-16"), (b"\x1f\x8bxx", "cannot read")):
        file.write_bytes(data)
        with pytest.raises(InputError, match=why):
            read_calls(file)
    with pytest.raises(InputError, match="cannot read"):
        read_calls(tmp_path)


@pytest.mark.parametrize("form", ["csv", "ndjson"])
def test_lines_may_end_with_carriage_returns(tmp_path: Path, form: str) -> None:
    """As on old Macintoshes, and as some spreadsheets still write them; several blocks long."""
    some = calls(60_000)
    text = csv_text(some)
    if form == "ndjson":
        text = "".join(f'{{"function": "z", "path": "{path}", "duration_ns": {ns}}}\n' for path, ns in some)
    file = tmp_path / "recording"
    file.write_bytes(text.encode())
    expected = read_calls(file)[1]
    file.write_bytes(text.replace("\n", "\r").encode())
    assert read_calls(file)[:2] == (form, expected)


def test_calls_of_several_functions_keep_apart(tmp_path: Path) -> None:
    """Every function of a file is mined by itself; a call path that is not known explains nothing."""
    some = calls(6000)
    lines = ["function,path,duration_ns"]
    for path, duration in some:
        lines += [f"z,{path},{duration}", f"y,,{duration}"]
    document = analyzed(tmp_path, "\n".join(lines))
    assert one(document)["state"] == "explained"
    other = one(document, "y")
    assert (other["state"], other["reason"]["code"]) == ("unexplained", "no-paths")
    assert len(other["classes"]) == 2
    assert [each["function"] for each in document["functions"]] == ["y", "z"]
