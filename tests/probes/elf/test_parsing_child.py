"""The process that parses binaries is started, found stopped, and ended."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from specmine.probes.elf.parsing_child import LOOK_NS, STOPPED_LOOKS, ParsingChild, why_ended
from tests.support.product import wait_until


@pytest.fixture
def child() -> Iterator[ParsingChild]:
    """One that runs."""
    found = ParsingChild(niceness=5)
    found.start()
    yield found
    found.close()


def test_a_stopped_child_is_killed_after_some_looks(child: ParsingChild) -> None:
    """A look now and then costs little; one that runs is left alone."""
    assert child.pid is not None
    for look in range(1, STOPPED_LOOKS + 1):
        child.kill_stopped(look * LOOK_NS)
    assert child.exit_code() is None
    os.kill(child.pid, signal.SIGSTOP)
    wait_until(lambda: Path(f"/proc/{child.pid}/stat").read_text().split()[2] == "T", "the stop")
    begin = 10 * LOOK_NS
    for look in range(STOPPED_LOOKS):
        child.kill_stopped(begin + look * LOOK_NS)
        child.kill_stopped(begin + look * LOOK_NS + 1)  # too soon to count
    wait_until(lambda: child.exit_code() == -signal.SIGKILL, "the end")


def test_it_ends_with_its_socket(child: ParsingChild) -> None:
    """Ended in order, it is gone; another may be started on the same descriptor."""
    descriptor, first = child.fileno(), child.pid
    child.end()
    assert (child.pid, child.channel, child.exit_code()) == (None, None, None)
    child.start()
    assert child.pid not in (None, first)
    assert child.fileno() == descriptor


@pytest.mark.parametrize(("code", "text"), [(None, ""), (3, " with status 3"), (-9, " by signal 9")])
def test_how_it_ended_is_said(code: int | None, text: str) -> None:
    """A sentence about an unknown end says nothing of it."""
    assert why_ended(code) == text
