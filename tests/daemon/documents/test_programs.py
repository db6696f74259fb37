"""Functions have the names of the programs that people watch."""

from __future__ import annotations

import json
from dataclasses import replace

from specmine.daemon.config.settings import Settings
from specmine.daemon.controller.checkpoint import function_record, restored
from specmine.daemon.controller.decide import decide
from specmine.daemon.controller.events import Arrived, Begun
from specmine.daemon.controller.state import ControllerState
from specmine.daemon.documents.programs import program_of, programs_of
from specmine.daemon.documents.specification import specification
from specmine.daemon.documents.status import DaemonFacts, status_of
from specmine.model.batch import Activity, Batch, HotSample, Lifetime, Spent, Started, Watch
from specmine.model.function import Function
from specmine.model.histogram import Histogram
from specmine.model.observation import Kind, Observation
from tests.support.simulated import PRICES

SECOND = 1_000_000_000
REDIS = Lifetime(
    id="boot:1:1", pid=1, executable="/usr/bin/redis-check-rdb", build_id="ab", start_ns=0, processes=1, program="redis"
)
SHOP = Lifetime(id="boot:2:2", pid=2, executable="/opt/shop (deleted)", build_id="cd", start_ns=0, processes=1)
OWN = Function(build_id="ab", offset=16, name="call", module="redis-check-rdb", in_program=True)
WRITE = Function(build_id="ef", offset=32, name="write", module="libc.so.6")


def window(lifetime: Lifetime, second: int) -> Observation:
    """Return a window of write in a lifetime."""
    return Observation(
        function=WRITE.key, lifetime=lifetime.id, kind=Kind.TIME, start_ns=second * SECOND,
        end_ns=(second + 1) * SECOND, histogram=Histogram.from_durations([1000] * 300), calls=300, watched_ns=SECOND,
    )  # fmt: skip


def watched(*lifetimes: Lifetime, windows: tuple[Observation, ...] = ()) -> ControllerState:
    """Return what the controller knows after it found both functions, and some windows."""
    host = {"utc_offset_ns": "0"}
    started = Started(now_ns=1, host=host, prices=PRICES, lifetimes=lifetimes)
    state, _ = decide(ControllerState(), Begun(started=started, settings=Settings()))
    found = tuple(
        HotSample(function=each.key, samples=90, on_cpu_ns=4e8, off_cpu_ns=0.0, inclusive_ns=4e8)
        for each in (OWN, WRITE)
    )
    state, _ = decide(state, Arrived(batch=Batch(now_ns=2 * SECOND, functions=(OWN, WRITE), hot_samples=found)))
    for each in windows:
        state, _ = decide(state, Arrived(batch=Batch(now_ns=each.end_ns, observations=(each,))))
    return state


def test_the_only_program_has_all_functions() -> None:
    """A library's function too, before its first window; the file is no name once there is a better one."""
    state = watched(REDIS)
    assert [program_of(state.functions[each.key], state) for each in (OWN, WRITE)] == ["redis", "redis"]
    document = specification(state)
    assert document["program"]["name"] == "redis"
    assert {each["program"] for each in document["functions"]} == {"redis"}
    assert status_of(state, DaemonFacts())["lifetimes"][0]["program"] == "redis"


def test_of_two_programs_a_library_belongs_to_those_observed() -> None:
    """Unknown until a window shows in whose calls; then one, then both, in the same order whoever came first."""
    state = watched(REDIS, SHOP)
    assert programs_of(state.functions[OWN.key], state) == ("redis",)
    assert programs_of(state.functions[WRITE.key], state) == ()
    entry = next(each for each in specification(state)["functions"] if each["function"] == "write")
    assert entry["program"] is None
    state = watched(REDIS, SHOP, windows=(window(SHOP, 3),))
    assert program_of(state.functions[WRITE.key], state) == "shop"
    state = watched(REDIS, SHOP, windows=(window(SHOP, 3), window(REDIS, 5)))
    assert program_of(state.functions[WRITE.key], state) == "redis,shop"


def test_a_restarted_daemon_knows_the_programs() -> None:
    """Whose calls they were outlives the daemon; the lifetimes that showed it may be gone."""
    state = watched(REDIS, SHOP, windows=(window(REDIS, 3),))
    record = json.loads(json.dumps(function_record(state.functions[WRITE.key], state.now_ns)))
    again = restored([WRITE], {WRITE.key: record}, [], 7, Settings().mining)
    assert program_of(again[WRITE.key], replace(state, lifetimes={})) == "redis"


def test_the_windows_of_a_library_function_keep_to_one_program() -> None:
    """The first that was observed, while it runs; own functions, and those of an only program, need no choice."""
    state = watched(REDIS, SHOP, windows=(window(SHOP, 3),))
    write, own = state.functions[WRITE.key], state.functions[OWN.key]
    assert write.home((REDIS, SHOP)) == "shop"
    assert write.home((REDIS,)) == write.home((SHOP,)) == own.home((REDIS, SHOP)) == ""
    assert own.observed_in(REDIS).home((REDIS, SHOP)) == ""
    later = write.observed_in(REDIS)
    assert later.home((REDIS, SHOP)) == "shop"
    assert later.home((REDIS, replace(SHOP, program="third"))) == "redis"


def test_a_plan_asks_for_the_calls_of_that_program() -> None:
    """As soon as a window shows whose they are; before, any will do."""
    asked: dict[str, str] = {}
    state = watched(REDIS, SHOP)
    for second in range(3, 40):
        counted = Activity(function=WRITE.key, kind=Kind.TIME, watched_ns=SECOND, hits=600, calls=300, cost_ns=4e5)
        batch = Batch(
            now_ns=second * SECOND,
            observations=(window(SHOP, second - 1),) if second > 20 else (),
            activity=(counted,),
            spent=Spent(program_cpu_ns=second * SECOND),
        )
        state, actions = decide(state, Arrived(batch=batch))
        for each in actions:
            if isinstance(each, Watch) and each.function == WRITE.key and each.kind is Kind.TIME:
                asked["before" if second <= 20 else "after"] = each.program
    assert asked == {"before": "", "after": "shop"}
