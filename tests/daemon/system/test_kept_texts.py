"""Texts that are given again."""

from __future__ import annotations

import pytest

from specmine.daemon.system.kept_texts import MOST, KeptTexts


class Clocks:
    """A clock, CPU time, and texts that take CPU time."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Stand in for the real clocks."""
        self.now_s, self.used_s, self.made = 1000.0, 0.0, 0
        self.takes_s = 0.03
        monkeypatch.setattr("time.monotonic", lambda: self.now_s)
        monkeypatch.setattr("time.thread_time", lambda: self.used_s)

    def make(self) -> bytes:
        """Make another text."""
        self.made += 1
        self.used_s += self.takes_s
        return b"%d" % self.made


def test_a_text_that_took_long_is_given_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many ask, a text takes a twentieth of a CPU, and is at most five seconds old."""
    clocks, kept = Clocks(monkeypatch), KeptTexts()
    assert kept.text("a", clocks.make) == b"1"
    clocks.now_s += 0.59
    assert kept.text("a", clocks.make) == b"1"
    assert kept.text("b", clocks.make) == b"2"
    clocks.now_s += 0.02
    clocks.takes_s = 100
    assert kept.text("a", clocks.make) == b"3"
    clocks.now_s += 4.99
    assert kept.text("a", clocks.make) == b"3"
    clocks.now_s += 0.02
    assert kept.text("a", clocks.make) == b"4"


def test_few_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who asks for ever other texts takes no memory, and an error is not kept."""
    clocks, kept = Clocks(monkeypatch), KeptTexts()
    for number in range(100):
        kept.text(number, clocks.make)
    assert len(kept._kept) == MOST
    clocks.now_s += 1
    with pytest.raises(ZeroDivisionError):
        kept.text("a", lambda: b"%d" % (1 // 0))
    assert kept.text("a", clocks.make) == b"101"
    assert len(kept._kept) == 1
