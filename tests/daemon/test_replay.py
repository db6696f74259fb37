"""Recordings: replay comes to the same document byte for byte, and notices every other decision."""

from __future__ import annotations

import gzip
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from specmine.daemon.config.settings import Settings
from specmine.daemon.documents.json_text import json_text
from specmine.daemon.documents.specification import last_specification, specification
from specmine.daemon.loop import Step, run
from specmine.daemon.recording import RecordedSource, read_recording
from specmine.daemon.replay import ReplayError, recorder, replay
from specmine.daemon.worker.process import InlineWorker
from specmine.model.errors import InputError
from tests.support.planted import paper_program, unimodal
from tests.support.simulated import SECOND, FakeClock, SimulatedSource

SHORT = Settings(window_ns=SECOND, limit_ns=10 * SECOND)


def record(path: Path, seconds: float = 12.0) -> str:
    """Mine a simulated program into a recording; return the document's text."""
    clock = FakeClock()
    source = SimulatedSource([*paper_program(), unimodal()], clock)
    recording, listener = recorder(path, "0")

    def shown(step: Step) -> None:
        """Render what is known so far, as a screen does now and then."""
        if step.number % 7 == 0:
            specification(step.state)

    with recording:
        state = run(
            source, SHORT, clock, InlineWorker(), listeners=[listener, shown], deadline_ns=int(seconds * SECOND)
        )
    return json_text(last_specification(state))


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """Return a recording and the document that was printed with it."""
    path = tmp_path_factory.mktemp("recording") / "run.jsonl"
    return path, record(path)


def test_replay_prints_the_same(recorded: tuple[Path, str]) -> None:
    """The document of a replay is that of the recorded run, byte for byte, and z is in it."""
    path, text = recorded
    assert json_text(replay(path)) == text
    assert "b->c" in text


def test_replay_is_the_same_everywhere(recorded: tuple[Path, str], tmp_path: Path) -> None:
    """Hash seed, threads, time zone and folder change nothing."""
    path, text = recorded
    program = (
        "import sys; from specmine.daemon.replay import replay;"
        " from specmine.daemon.documents.json_text import json_text;"
        f"sys.stdout.write(json_text(replay({str(path)!r})))"
    )
    for seed, threads, zone in (("1", "1", "Asia/Tokyo"), ("4242", "4", "America/Lima")):
        changed = {"PYTHONHASHSEED": seed, "OMP_NUM_THREADS": threads, "TZ": zone}
        done = subprocess.run(
            [sys.executable, "-P", "-c", program],
            env={**os.environ, **changed}, cwd=tmp_path, capture_output=True, text=True, check=True,
        )  # fmt: skip
        assert done.stdout == text


def test_recording_twice_gives_equal_files(tmp_path: Path) -> None:
    """The same events give the same bytes; compressed files too hold no time of writing."""
    for name in ("a.jsonl", "b.jsonl", "a.jsonl.gz", "b.jsonl.gz"):
        record(tmp_path / name, 3.0)
    assert (tmp_path / "a.jsonl").read_bytes() == (tmp_path / "b.jsonl").read_bytes()
    assert (tmp_path / "a.jsonl.gz").read_bytes() == (tmp_path / "b.jsonl.gz").read_bytes()
    assert gzip.decompress((tmp_path / "a.jsonl.gz").read_bytes()) == (tmp_path / "a.jsonl").read_bytes()
    assert json_text(replay(tmp_path / "a.jsonl")) == json_text(replay(tmp_path / "a.jsonl.gz"))


def changed_line(path: Path, to: Path, kind: str, change: Callable[[dict[str, Any]], bool]) -> int:
    """Copy a recording with one action or result changed; return the event's number."""
    number = -1
    lines = []
    for text in path.read_text().splitlines():
        line = json.loads(text)
        if number < 0 and line.get("event", {}).get("kind") == kind and change(line):
            number = line["number"]
        lines.append(json.dumps(line))
    to.write_text("\n".join(lines) + "\n")
    return number


def test_another_decision_is_noticed(recorded: tuple[Path, str], tmp_path: Path) -> None:
    """Replay stops at the first decision that differs and names its event."""

    def cheaper(line: dict[str, Any]) -> bool:
        timed = [action for action in line["actions"] if action.get("action") == "watch" and action.get("period_ns")]
        for action in timed[:1]:
            action["period_ns"] += 1
        return bool(timed)

    number = changed_line(recorded[0], tmp_path / "changed.jsonl", "arrived", cheaper)
    with pytest.raises(ReplayError, match=f"event {number}: action") as caught:
        replay(tmp_path / "changed.jsonl")
    assert caught.value.exit_code == 2


def test_a_wrong_result_of_mining_is_noticed(recorded: tuple[Path, str], tmp_path: Path) -> None:
    """Mining is done again: a result that the worker cannot have given stops the replay."""

    def wrong(line: dict[str, Any]) -> bool:
        line["event"]["result"]["class_calls"][0] += 1
        return True

    number = changed_line(recorded[0], tmp_path / "changed.jsonl", "mined", wrong)
    with pytest.raises(ReplayError, match=f"event {number}: mining job"):
        replay(tmp_path / "changed.jsonl")


def scaled(value: Any, by: float) -> Any:
    """Return a value of JSON with all its fractions scaled."""
    if isinstance(value, dict):
        return {key: scaled(each, by) for key, each in value.items()}
    if isinstance(value, list):
        return [scaled(each, by) for each in value]
    return value * by if isinstance(value, float) else value


@pytest.mark.parametrize(("by", "noticed"), [(1 + 1e-13, False), (1 + 1e-6, True)])
def test_the_last_digits_of_another_cpu_are_no_other_result(
    by: float, noticed: bool, recorded: tuple[Path, str], tmp_path: Path
) -> None:
    """Kinds of CPU add up in another order: what differs by less than nine digits show is the same."""

    def elsewhere(line: dict[str, Any]) -> bool:
        before = line["event"]["result"]
        line["event"]["result"] = scaled(before, by)
        return bool(line["event"]["result"] != before)

    changed_line(recorded[0], tmp_path / "changed.jsonl", "mined", elsewhere)
    if noticed:
        with pytest.raises(ReplayError, match="gives another result"):
            replay(tmp_path / "changed.jsonl")
    else:
        replay(tmp_path / "changed.jsonl")


def test_other_settings_decide_over_the_same_data(recorded: tuple[Path, str]) -> None:
    """With other settings decisions are not compared: if windows must hold more calls, nothing becomes stable."""
    mining = Settings().mining.__class__(minimum_calls=1_000_000)
    document = replay(recorded[0], settings=Settings(mining=mining, window_ns=SECOND))
    states = {each["function"]: each["borders_seconds"] for each in document["functions"]}
    assert states["z"] == []
    assert next(e for e in replay(recorded[0])["functions"] if e["function"] == "z")["borders_seconds"] != []


def test_a_recording_cut_short_replays_to_its_end(recorded: tuple[Path, str], tmp_path: Path) -> None:
    """A crash in the middle of a line loses that line only."""
    data = recorded[0].read_bytes()
    (tmp_path / "cut.jsonl").write_bytes(data[: len(data) // 2])
    said: list[str] = []
    document = replay(tmp_path / "cut.jsonl", report=said.append)
    assert 0 < document["collection"]["seconds"] < 12
    assert len(said) == 1 and "is cut after event" in said[0]
    replay(recorded[0], report=said.append)
    assert len(said) == 1


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is not a recording"),
        (b'{"schema": "specmine.specification/1"}\n', "is not a recording"),
        (b"\x7fELF\x02\x01\x01\n\n", "line 1 is not JSON"),
        (b'{"schema": "specmine.recording/1"}\n', "holds no event"),
        (b'{"schema": "specmine.recording/1"}\n{"number": 0, "event": {"kind": "moved"}, "actions": []}\n', "event 0"),
        (b'{"schema": "specmine.recording/1"}\n[1]\n', "line 2 is not a JSON object"),
        (b"\x1f\x8b\x08\x00broken", "recording"),
    ],
)
def test_files_that_are_no_recordings(content: bytes, message: str, tmp_path: Path) -> None:
    """Each kind of wrong file gives one line that says what is wrong."""
    path = tmp_path / "file"
    path.write_bytes(content)
    with pytest.raises(InputError, match=message):
        replay(path)


@pytest.mark.parametrize(
    ("pattern", "put"),
    [
        (r'(?<="histogram":\[\[)\d+', "1e999"),
        (r'(?<="histogram":\[\[)(\d+),\d+', r"\1,-5"),
        (r'(?<="count_ns":)[0-9.]+', "1e300"),
        (r'(?<="count_ns":)[0-9.]+', "1e999"),
        (r'(?<="number":)8(?!\d)', "1e999"),
        (r'(?<="actions":)\[', "[["),
    ],
)
def test_impossible_numbers_are_one_line(pattern: str, put: str, recorded: tuple[Path, str], tmp_path: Path) -> None:
    """A recording that holds what no recorder wrote is an error of the file, not of the program."""
    text, count = re.subn(pattern, put, recorded[0].read_text())
    assert count
    (tmp_path / "changed.jsonl").write_text(text)
    refused, differs = r"changed\.jsonl: (event|line) .* (read|replayed|JSON)", r"event \d+: action .* recorded was"
    with pytest.raises(InputError, match=f"{refused}|{differs}") as caught:
        replay(tmp_path / "changed.jsonl")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("number", ["Infinity", "-Infinity", "NaN"])
def test_no_recording_holds_what_is_no_number(number: str, tmp_path: Path) -> None:
    """JSON has no such numbers, though Python would read them."""
    path = tmp_path / "file"
    path.write_text(f'{{"schema": "specmine.recording/1"}}\n{{"number": {number}}}\n')
    with pytest.raises(InputError, match="line 2 is not JSON"):
        replay(path)


def test_a_recording_stands_in_for_the_kernel_side(recorded: tuple[Path, str]) -> None:
    """The batches of a recording can be played to a loop as if they came from the kernel."""
    source = RecordedSource(recorded[0])
    clock = FakeClock()
    state = run(source, SHORT, clock, InlineWorker())
    assert state.stopped == "ended"
    assert len(source.times_ns) == sum(line["event"]["kind"] == "arrived" for line in read_recording(recorded[0])[1])
    assert {each.state.value for each in state.functions.values()} >= {"single", "explained"}


def test_an_unwritable_recording_is_an_error_at_once(tmp_path: Path) -> None:
    """The file is tried before anything is probed."""
    with pytest.raises(InputError, match="cannot write the recording"):
        recorder(tmp_path / "missing" / "run.jsonl", "0")
