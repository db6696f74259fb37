"""From the store to what waits: each window once, also where the store merged or began anew meanwhile."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from specmine.fleet.forwarding.taking import take
from specmine.fleet.received import ReceivedPush, decode_push
from specmine.model.batch import Lifetime
from specmine.model.observation import Observation
from specmine.store import Build, Document, Retention, Writes, open_store
from specmine.store.outbox import Outbox
from tests.support.fleets import digest
from tests.support.stored import FUNCTION, HOST, LIFETIME, SECOND, UTC, fill, observation


def _pushes(outbox: Outbox) -> Iterator[ReceivedPush]:
    while (waiting := outbox.first()) is not None:
        yield decode_push(waiting.payload)
        outbox.acknowledge(waiting.number)


def _rows(pushes: list[ReceivedPush]) -> list[Observation]:
    return [row.observation for each in pushes for row in each.rows]


def test_each_window_is_taken_once(tmp_path: Path) -> None:
    """Folded to five minutes, whenever the forwarder runs; records only when they changed."""
    windows = [observation(second, names=("b", "?")) for second in range(0, 1200, 7)]
    sent: list[ReceivedPush] = []
    with open_store(tmp_path / "s.db") as store, Outbox(tmp_path / "o.db") as outbox:
        for at in range(0, len(windows), 50):
            fill(store, windows[at : at + 50])
            take(store, outbox)
            assert take(store, outbox).windows == 0
            sent += _pushes(outbox)
    assert digest(_rows(sent)) == digest(windows)
    assert len(_rows(sent)) < len(windows) / 10
    hosts = [record for each in sent for record in each.records if type(record).__name__ == "Host"]
    assert len(hosts) == 1


def test_a_changed_document_is_sent_again(tmp_path: Path) -> None:
    """The specification, when it is another one."""
    with open_store(tmp_path / "s.db") as store, Outbox(tmp_path / "o.db") as outbox:
        contents: tuple[dict[str, object], ...] = ({"functions": []}, {"functions": []}, {"functions": [], "more": 1})
        for content in contents:
            store.write(Writes((Document(name="specification", document=content),)), UTC)
            take(store, outbox)
        documents = [record.document for each in _pushes(outbox) for record in each.records]
        assert documents == [{"functions": []}, {"functions": [], "more": 1}]


def test_merged_windows_are_not_taken_twice(tmp_path: Path) -> None:
    """What the store merged after it was sent is not sent; what was never sent is, merged as it is."""
    windows = [observation(second, names=("b",)) for second in range(40)]
    with open_store(tmp_path / "s.db") as store, Outbox(tmp_path / "o.db") as outbox:
        fill(store, windows[:20])
        take(store, outbox)
        fill(store, windows[20:])
        store.thin(Retention(), UTC + 7200 * SECOND)  # the forwarder did not run for long
        taken = take(store, outbox)
        assert taken.windows == 2
        rows = _rows(list(_pushes(outbox)))
        assert digest(rows) == digest(windows)


def test_a_store_begun_anew_is_read_from_its_start(tmp_path: Path) -> None:
    """Windows that were sent before, as after a restored backup, are not sent again."""
    windows = [observation(second, names=("b",)) for second in range(30)]
    with Outbox(tmp_path / "o.db") as outbox:
        with open_store(tmp_path / "s.db") as store:
            fill(store, windows[:20])
            take(store, outbox)
        (tmp_path / "s.db").rename(tmp_path / "old.db")
        with open_store(tmp_path / "s.db") as store:
            fill(store, windows[10:])
            taken = take(store, outbox)
            assert (taken.windows, taken.skipped) == (10, 10)
        assert digest(_rows(list(_pushes(outbox)))) == digest(windows)


def test_nothing_is_taken_twice_after_a_damaged_outbox(tmp_path: Path) -> None:
    """What was sent is not known any more: windows of before are not sent, later ones are, records are."""
    windows = [observation(second, names=("b", "?")) for second in range(0, 1200, 7)]
    with open_store(tmp_path / "s.db") as store:
        fill(store, windows[:100])
        with Outbox(tmp_path / "o.db") as outbox:
            take(store, outbox)
        outbox, _ = Outbox.begun_anew(tmp_path / "o.db")
        with outbox:
            assert take(store, outbox, skip=outbox.replaces).windows == 100
            outbox.forget_replaced()
            before = list(_pushes(outbox))
            assert not _rows(before) and any(each.records for each in before)
            fill(store, windows[100:])
            take(store, outbox, skip=outbox.replaces)
            assert digest(_rows(list(_pushes(outbox)))) == digest(windows[100:])


def test_a_program_whose_build_is_not_known_is_sent(tmp_path: Path) -> None:
    """It ended before its file was read: its lifetime goes, the build without a name does not, and all can be read."""
    nameless = Lifetime(id="boot:8:99", pid=8, executable="/bin/brief", build_id="", start_ns=5, processes=1)
    with open_store(tmp_path / "s.db") as store, Outbox(tmp_path / "o.db") as outbox:
        store.write(Writes((HOST, LIFETIME, FUNCTION, nameless, observation(3))), UTC)
        assert store.read(Build, build_id="")
        take(store, outbox)
        (push,) = _pushes(outbox)
    assert nameless in push.records
    assert [each.build_id for each in push.records if isinstance(each, Build)] == ["ab"]
    assert len(push.rows) == 1
