"""Progress: plain lines now and then in a pipe, a picture on a terminal; nothing in vain."""

from __future__ import annotations

import io
import signal
import sys
from typing import Any

import pytest

from specmine.cli.runners.progress import LINE_EVERY_S, Progress, told_of, wants_live


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        """Say so."""
        return True


def test_plain_lines_come_every_few_seconds(document: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    """The first durations are said as soon as there are some; after that the document is asked for with each line."""
    times = iter([0.0, 0.0, 0.0, 1.0, 1.5, 2.0, 3.0, 2.0 + LINE_EVERY_S])
    empty = {**document, "functions": document["functions"][4:]}
    asked = []

    def read() -> dict[str, Any]:
        asked.append(True)
        known = empty if len(asked) == 1 else document
        return {**known, "collection": {"seconds": 5.0 * len(asked), "overhead_ratio": 0.006}}

    with Progress(duration_s=30, live=False, now=lambda: next(times)) as progress:
        assert all(progress(read) for _ in range(6))
    lines = capsys.readouterr().err.splitlines()
    assert len(asked) == 3
    told = "4 functions timed, 3 known; a (app): half of the calls within 4.21 ms, 99 % within 8.6 ms; overhead 0.6 %"
    assert lines == ["specmine: watching", f"specmine: 10 s of 30 s: {told}", f"specmine: 15 s of 30 s: {told}"]


def test_nothing_is_known_at_first(document: dict[str, Any]) -> None:
    """Before a function is timed no duration is stated."""
    document["functions"] = document["functions"][4:]
    assert told_of({**document, "collection": {}}) == "0 functions timed, none known yet"


def test_a_terminal_sees_a_picture(document: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """On a terminal the busiest functions are drawn with how long they take, and wiped away at the end."""
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("NO_COLOR", "1")
    times = iter(range(100))
    with Progress(duration_s=None, live=True, now=lambda: float(next(times))) as progress:
        assert progress(lambda: document)
    drawn = terminal.getvalue()
    assert "MEDIAN" in drawn
    assert "910 ns" in drawn
    assert "\N{FULL BLOCK}" * 3 + "\N{LIGHT SHADE}" * 2 in drawn or "###.." in drawn
    assert "\x1b[31m" not in drawn


def test_a_signal_asks_to_stop_and_handlers_come_back(document: dict[str, Any]) -> None:
    """A first SIGINT makes the answer no; afterwards the old handlers are in force."""
    before = signal.getsignal(signal.SIGINT)
    with Progress(duration_s=None, live=False) as progress:
        assert progress(lambda: document)
        signal.raise_signal(signal.SIGINT)
        assert not progress(lambda: document)
        signal.raise_signal(signal.SIGTERM)
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is before


def test_an_ignored_hangup_stays_ignored() -> None:
    """Under nohup SIGHUP does not stop the mining."""
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with Progress(duration_s=None, live=False) as progress:
            signal.raise_signal(signal.SIGHUP)
            assert not progress.stopping
    finally:
        signal.signal(signal.SIGHUP, before)


def test_pictures_only_on_a_terminal_of_our_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """In a pipe, and where CMD writes to the same terminal, there are plain lines."""
    monkeypatch.setattr(sys, "stderr", Terminal())
    assert wants_live(())
    assert not wants_live(("sh",))
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    assert not wants_live(())


def test_the_limit_of_an_idle_program_is_beside_what_was_spent() -> None:
    """A share above the promised one is no breach where the floor allows it: the figures that count are there."""
    little = {"overhead_ratio": 0.034, "overhead_budget_ratio": 0.01, "program_cpu_seconds": 1.0,
              "overhead_seconds": 0.034, "allowed_seconds": 0.06}  # fmt: skip
    told = told_of({"functions": [], "collection": little})
    assert told.endswith("overhead 3.4 % (34 ms), limit 60 ms")
    told = told_of({"functions": [], "collection": {**little, "program_cpu_seconds": 100.0}})
    assert told.endswith("overhead 3.4 %")
