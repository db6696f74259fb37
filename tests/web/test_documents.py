"""One reading serves all that ask, and a page does not wait for a newer one."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path

import pytest

from specmine.model.errors import InputError
from specmine.store import Document, Writes, open_store
from specmine.web.documents import FRESH_S, READING_SHARE, STALE_S, Documents, Latest, StoreSource
from tests.support.web_documents import SampleSource, sample


class Clock:
    """A clock that is set."""

    now = 100.0

    def __call__(self) -> float:
        return self.now


class TimedSource(SampleSource):
    """Reads take until they are let go."""

    def __init__(self, clock: Clock) -> None:
        super().__init__(sample())
        self.clock = clock
        self.go = threading.Event()
        self.fails = False

    def read(self) -> Documents:
        documents = super().read()
        assert self.go.wait(10)
        if self.fails:
            raise InputError("gone")
        return replace(documents, read_at=self.clock.now)


@pytest.fixture
def timed() -> tuple[Clock, TimedSource, Latest]:
    """A clock, a source and what is read of it."""
    clock = Clock()
    source = TimedSource(clock)
    return clock, source, Latest(source, now_s=clock)


def test_many_that_ask_at_once_are_one_reading(timed: tuple[Clock, TimedSource, Latest]) -> None:
    _, source, latest = timed
    found: list[Documents] = []
    asking = [threading.Thread(target=lambda: found.append(latest.documents())) for _ in range(8)]
    for each in asking:
        each.start()
    source.go.set()
    for each in asking:
        each.join()
    assert source.reads == 1
    assert all(each is found[0] for each in found)


def test_old_documents_are_shown_while_newer_ones_are_read(timed: tuple[Clock, TimedSource, Latest]) -> None:
    clock, source, latest = timed
    source.go.set()
    first = latest.documents()
    assert latest.documents() is first
    assert source.reads == 1
    source.go.clear()
    clock.now += FRESH_S
    assert latest.documents() is first, "nobody waits"
    source.go.set()
    clock.now += STALE_S + 1
    assert latest.documents() is not first


def test_a_reading_that_failed_is_tried_again(timed: tuple[Clock, TimedSource, Latest]) -> None:
    _, source, latest = timed
    source.go.set()
    source.fails = True
    with pytest.raises(InputError, match="gone"):
        latest.documents()
    source.fails = False
    assert latest.documents().host == "shop-03"


def test_what_takes_long_to_read_is_read_less_often() -> None:
    """Reading takes a twentieth of the time at most, as long as nobody waits for it."""
    clock = Clock()

    class Slow(SampleSource):
        """A second of work each."""

        def read(self) -> Documents:
            clock.now += 1.0
            return replace(super().read(), read_at=clock.now)

    source = Slow(sample())
    latest = Latest(source, now_s=clock)
    first = latest.documents()
    clock.now += 1.0 / READING_SHARE - 6
    assert latest.documents() is first
    assert source.reads == 1
    clock.now += STALE_S
    latest.documents()
    assert source.reads == 2


def test_a_store_is_read_anew_only_when_it_was_written(tmp_path: Path) -> None:
    """The same documents are newer than before; a write makes others."""
    path = tmp_path / "s.db"
    with open_store(path) as store:
        store.write(Writes((Document(name="specification", document={"functions": []}),)), 10**18)
    source = StoreSource(path)
    first, again = source.read(), source.read()
    assert again.specification is first.specification
    assert again.read_at >= first.read_at
    with open_store(path) as store:
        entry = {"function": "f", "module": "m", "state": "timing"}
        store.write(Writes((Document(name="specification", document={"functions": [entry]}),)), 2 * 10**18)
    assert [each["function"] for each in source.read().functions] == ["f"]
