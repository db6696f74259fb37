"""What the store holds is dated, and comes back on the clock of the boot that reads it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from specmine.daemon.config.settings import Settings
from specmine.daemon.config.tree import StoreSettings
from specmine.daemon.controller.decide import decide
from specmine.daemon.controller.events import Arrived, Begun, Event, Publish, Restored
from specmine.daemon.controller.function import FunctionState, Identity
from specmine.daemon.controller.phase import Phase, State
from specmine.daemon.controller.sampling.profile import Profile
from specmine.daemon.controller.state import ControllerState
from specmine.daemon.loop import Step
from specmine.daemon.persistence.recorder import StoreRecorder
from specmine.model.batch import Batch, Started
from specmine.store import FunctionRecord, Host, open_store
from tests.support.simulated import PRICES
from tests.support.stored import FUNCTION, LIFETIME, SECOND, UTC, observation

HOUR = 3600 * SECOND


def lived(path: Path, boot: str, utc_offset_ns: int, *batches: Batch) -> Restored:
    """Return what a daemon found in the store at its start, 1,000 s after the boot; then batches came."""
    stored = StoreRecorder(path, StoreSettings(), pytest.fail)
    host = {"boot_id": boot, "utc_offset_ns": str(utc_offset_ns)}
    began = Begun(started=Started(now_ns=1000 * SECOND, host=host, prices=PRICES), settings=Settings())
    state = ControllerState()
    events: list[Event] = [began, *(Arrived(batch=batch) for batch in batches)]
    found: Restored | None = None
    for number, event in enumerate(events):
        state, actions = decide(state, event)
        stored.listen(Step(number=number, event=event, state=state, actions=actions))
        if number == 0:
            found = stored.restored(1000 * SECOND)
    assert stored.close()
    assert found is not None
    return found


def windows(*seconds: int) -> Batch:
    """Return a batch with windows of one second, timed on the clock of the boot."""
    seen = tuple(observation(second, lifetime="boot:7:99") for second in seconds)
    return Batch(now_ns=1100 * SECOND, functions=(FUNCTION,), lifetimes=(LIFETIME,), observations=seen)


def test_a_clock_that_is_set_dates_what_comes(tmp_path: Path) -> None:
    """The host sleeps for an hour: windows after that are dated an hour later, on the same monotonic clock."""
    slept = Batch(now_ns=1050 * SECOND, utc_offset_ns=UTC + HOUR)
    lived(tmp_path / "s.db", "boot", UTC, windows(1001), slept, windows(1060))
    with open_store(tmp_path / "s.db", read_only=True) as store:
        (host,) = store.read(Host)
        assert host.utc_offset_ns == UTC + HOUR
    again = lived(tmp_path / "s.db", "boot", UTC + 2 * HOUR)
    assert [each.start_ns // SECOND for each in again.observations] == [1001, 1060]
    assert again.utc_offset_ns == UTC + HOUR


def test_after_a_reboot_times_are_moved_by_the_dates(tmp_path: Path) -> None:
    """The last windows of the boot before lie before this one by as long as the clocks say."""
    lived(tmp_path / "s.db", "boot", UTC, windows(1001, 1002))
    again = lived(tmp_path / "s.db", "next", UTC + HOUR)
    assert [each.start_ns for each in again.observations] == [n * SECOND - HOUR for n in (1001, 1002)]


def test_a_clock_that_was_set_back_puts_nothing_into_the_future(tmp_path: Path) -> None:
    """After a boot with a clock a year behind, the newest window ends now: utility and recovery wait for no date."""
    lived(tmp_path / "s.db", "boot", UTC, windows(1001, 1002))
    again = lived(tmp_path / "s.db", "next", UTC - 365 * 24 * HOUR)
    assert [each.end_ns for each in again.observations] == [999 * SECOND, 1000 * SECOND]


@pytest.mark.parametrize(
    ("pressure", "stretch", "every_s"), [(0.0, 1.0, 30), (0.5, 1.0, 90), (1.0, 1.0, 150), (1.0, 2.0, 300)]
)
def test_records_are_written_less_often_to_save_our_own_time(
    tmp_path: Path, pressure: float, stretch: float, every_s: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a function is like is written each 30 s, or up to ten times less often; a change of its state at once."""
    stored = StoreRecorder(tmp_path / "s.db", StoreSettings(), pytest.fail)
    put, written = stored._writer.put, list[int]()

    def counted(*records: object) -> None:
        written.extend(now_s for each in records if isinstance(each, FunctionRecord))
        put(*records)  # type: ignore[arg-type]

    monkeypatch.setattr(stored._writer, "put", counted)
    began = Begun(started=Started(now_ns=0, host={"boot_id": "boot"}, prices=PRICES), settings=Settings())
    state, _ = decide(ControllerState(), began)
    state = replace(state, agent_cost=replace(state.agent_cost, pressure=pressure, stretch=stretch))
    identity = Identity(function=FUNCTION)
    for now_s in range(0, 700, 10):
        phase = Phase(state=State.TIMING if now_s < 610 else State.SINGLE)
        function = FunctionState(identity=identity, profile=Profile(samples=now_s), phase=phase)
        state = replace(state, now_ns=now_s * SECOND, functions={FUNCTION.key: function})
        stored.listen(Step(number=now_s, event=Arrived(batch=Batch(now_ns=0)), state=state, actions=(Publish(why=""),)))
    assert stored.close()
    assert written == sorted({0, *range(every_s, 700, every_s), 610})
