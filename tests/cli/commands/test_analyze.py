"""``specmine analyze`` from the outside: codes, streams, files."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from specmine.cli.commands.analyze import ReadProgress
from tests.support.recordings import calls, csv_text

Outcome = Callable[..., tuple[int, str, str]]


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    """Durations with a border that call paths explain."""
    file = tmp_path / "calls.csv"
    file.write_text(csv_text(calls(6000)))
    return file


def test_text_and_json_say_the_same(recording: Path, outcome: Outcome) -> None:
    """Data on standard output, nothing else anywhere; the expression is the contract's."""
    code, out, err = outcome("analyze", recording)
    assert (code, err) == (0, "")
    assert "if b->c" in out
    assert "".join(out.split()).startswith(f"Read6,000callsfrom{recording}(csv).")  # a long path is broken
    code, out, err = outcome("analyze", recording, "--format", "json")
    document = json.loads(out)
    assert (code, err, document["schema"]) == (0, "", "specmine.specification/1")
    (found,) = document["functions"]
    assert sorted(each["expression"] for each in found["behaviours"]) == ["b->c", "not b->c"]
    assert abs(sum(each["share"] for each in found["classes"]) - 1) < 1e-6


def test_a_file_gets_the_same_json(recording: Path, tmp_path: Path, outcome: Outcome) -> None:
    """Equal input, equal bytes; nothing is left if reading fails."""
    target = tmp_path / "out.json"
    code, out, err = outcome("analyze", recording, "--output", target)
    assert (code, out) == (0, "")
    assert "1 known" in err
    assert target.read_text() == outcome("analyze", recording, "--format", "json")[1]
    recording.write_text("function,path,duration_ns\nz,main,oops\n")
    code, out, err = outcome("analyze", recording, "--output", tmp_path / "other.json")
    assert (code, out) == (2, "")
    assert not (tmp_path / "other.json").exists()
    assert "line 2" in err


def test_nothing_is_said_of_probes_that_there_were_not(recording: Path, tmp_path: Path, outcome: Outcome) -> None:
    """Of recorded durations show and functions tell neither a budget nor a site, a utility or a share of time."""
    target = tmp_path / "calls.json"
    outcome("analyze", recording, "--output", target)
    told = outcome("show", "z", "--store", target)[1]
    assert "recorded, in 10 observations" in told
    assert not any(word in told for word in ("watched", "utility", "wall-clock", "probe", "build"))
    row = outcome("functions", "--store", target)[1].splitlines()[1].split()
    assert (row[:3], row[-1]) == (["z", "known", "-"], "-")


def test_standard_input_is_read(recording: Path, monkeypatch: pytest.MonkeyPatch, outcome: Outcome) -> None:
    """``-`` reads to the end of the pipe."""

    class Piped:
        buffer = io.BytesIO(recording.read_bytes())

    monkeypatch.setattr("sys.stdin", Piped())
    code, out, _ = outcome("analyze", "-")
    assert code == 0
    assert "from standard input (csv)" in out


@pytest.mark.parametrize("text", ["", "function,path,duration_ns\n", csv_text(calls(900))])
def test_too_little_is_no_data(text: str, tmp_path: Path, outcome: Outcome) -> None:
    """No call, or too few to agree on anything: exit code 3, and what would help."""
    file = tmp_path / "few"
    file.write_text(text)
    code, out, err = outcome("analyze", file)
    assert (code, err) == (3, "")
    assert "Nothing is stable" in out
    assert ("record more calls" in out) == (len(text) > 100)


def test_what_is_odd_is_a_warning(tmp_path: Path, outcome: Outcome) -> None:
    """On standard error, one line; the result is printed all the same."""
    file = tmp_path / "seconds.csv"
    file.write_text("duration_ns\n" + "0.00002\n" * 3000)
    code, out, err = outcome("analyze", file)
    assert code == 0 and "3,000 calls" in out
    assert err.startswith("specmine: warning: 3,000 of 3,000 calls took less than 1 ns") and err.count("\n") == 1


def test_bad_lines_are_told_in_one_line(recording: Path, outcome: Outcome) -> None:
    """With --skip-bad they are counted, in the document too."""
    recording.write_text(recording.read_text() + "z,main,-1\nz,main,\n")
    code, out, err = outcome("analyze", recording)
    assert (code, out) == (2, "")
    assert err.count("\n") == 1
    assert "line 6002" in err
    assert "--skip-bad" in err
    code, out, err = outcome("analyze", recording, "--skip-bad", "--format", "json")
    assert code == 0
    assert json.loads(out)["collection"]["source"]["skipped"] == 2
    assert "skipped 2 bad lines" in err


def test_wrong_use_is_code_2(recording: Path, tmp_path: Path, outcome: Outcome) -> None:
    """No file, another format than said, no function of that name."""
    for arguments in (
        [tmp_path / "missing"],
        [os.devnull, "--from", "nothing"],
        [recording, "--from", "otlp", "--function", "nobody"],
        [recording, "--function", "nobody"],
        [recording, "--from", "uftrace"],
    ):
        code, out, err = outcome("analyze", *arguments)
        assert (code, out) in ((2, ""), (3, out)), arguments
        if "nobody" not in map(str, arguments) or code == 2:
            assert err.startswith("specmine: ")


def test_progress_comes_now_and_then(capfd: pytest.CaptureFixture[str]) -> None:
    """Nothing for two seconds, then a line every five."""
    now = [0.0]
    tell = ReadProgress(lambda: now[0])
    for at in range(100):
        now[0] = at / 10
        tell(at * 1000, at / 100)
    assert capfd.readouterr().err.splitlines() == [
        "specmine: read 20,000 calls (20 %)",
        "specmine: read 70,000 calls (70 %)",
    ]
