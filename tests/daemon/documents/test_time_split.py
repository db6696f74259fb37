"""A function beside others that take its CPU: its durations change, its time on CPU does not, and it is told why."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from specmine.cli.commands.show import portrait
from specmine.daemon.config.settings import SECOND, Settings
from specmine.daemon.controller import reasons, transitions
from specmine.daemon.controller.checkpoint import function_record, restored
from specmine.daemon.controller.function import FunctionState, Identity
from specmine.daemon.controller.phase import Phase, State
from specmine.daemon.controller.state import ControllerState
from specmine.daemon.documents.json_text import json_text
from specmine.daemon.documents.specification import specification
from specmine.daemon.documents.time_split import path_facts
from specmine.daemon.metrics.snapshot import snapshots
from specmine.experiments.host.environment import environment_of
from specmine.experiments.results.document import HOST_KEYS, json_value
from specmine.experiments.types import Host
from specmine.mining.off_cpu import on_cpu as oncpu
from specmine.mining.off_cpu.host_causes import HostTimes, host_times
from specmine.model.buckets import BUCKETS, bucket_of
from specmine.model.call_path import CallPath, Frame
from specmine.model.function import Function, Reason
from specmine.model.histogram import EMPTY, Histogram
from specmine.model.host.environment import Environment, Known
from specmine.model.json_codec import encode
from specmine.model.observation import Kind, Observation, PathHistogram
from specmine.model.pooling import pooled
from specmine.model.split import Split
from specmine.store import Writes, open_store
from specmine.store.codec import decode_split, encode_split

SLICE_NS = 4_020_000.0
HOST = Environment(
    slice_seconds=SLICE_NS * 1e-9, properties={"slice_seconds": Known(valid=True, interval=(4.018e-3, 4.024e-3))}
)
WORK = Function(build_id="b", offset=16, name="work", module="app")


def window(number: int, rivals: int, demand_ns: float = 1e6, calls: int = 600) -> Observation:
    """Return a second of a function that needs 1 ms of CPU, a quarter of whose calls wait for k turns."""
    chance = np.random.default_rng([number, rivals])
    running = demand_ns * chance.normal(1, 0.01, calls)
    waiting = np.where(chance.random(calls) < demand_ns / SLICE_NS, rivals * SLICE_NS, 0.0)
    durations = (running + waiting).round()
    waited = np.bincount(bucket_of(durations), weights=waiting, minlength=BUCKETS)
    return Observation(
        function=WORK.key,
        lifetime="l",
        kind=Kind.TIME,
        start_ns=number * SECOND,
        end_ns=(number + 1) * SECOND,
        histogram=Histogram.from_durations(durations),
        calls=calls,
        watched_ns=SECOND,
        split=Split(
            waiting_ns=Histogram.from_dense(waited),
            blocked_ns=EMPTY,
            on_cpu=Histogram.from_durations(running.round()),
        ),
    )


def learned(windows: list[Observation]) -> FunctionState:
    """Return what is known of the function after these windows, where call paths cannot be taken."""
    no_paths = ((Kind.PATH, Reason(code="no-paths", text="none")),)
    function = FunctionState(identity=Identity(function=WORK), phase=Phase(state=State.TIMING, refused=no_paths))
    for each in windows:
        function = transitions.observed(function, each, Settings())
    return function


def stated(function: FunctionState, host: Environment = HOST) -> dict[str, Any]:
    """Return the function's entry in the specification."""
    state = ControllerState(environment=host.document(), functions={WORK.key: function}, now_ns=100 * SECOND)
    document = specification(state, detail=True)
    assert json_text(document)
    entry: dict[str, Any] = document["functions"][0]
    return entry


@pytest.mark.parametrize("rivals", [1, 2])
def test_preempted_calls_are_told_as_timeslices(rivals: int) -> None:
    """The class of preempted calls is named by the slice derived on the host, and is the reason given."""
    entry = stated(learned([window(number, rivals) for number in range(12)]))
    low, high = entry["classes"]
    assert (low["label"], high["slices"], high["cause"]) == (None, rivals, "slices")
    assert high["label"] == f"+{rivals} timeslice{'s' * (rivals > 1)}: preempted"
    assert high["share"] == pytest.approx(1e6 / SLICE_NS, abs=0.02)
    assert high["running"] + high["waiting"] + high["blocked"] == pytest.approx(1)
    assert high["excess_seconds"] == pytest.approx(rivals * SLICE_NS * 1e-9, rel=0.03)
    assert entry["state"] == "unexplained"
    assert entry["reason"]["code"] == "waiting"
    on_cpu = entry["on_cpu"]
    assert isinstance(on_cpu, dict)
    assert len(on_cpu["classes"]) == 1
    assert on_cpu["median_seconds"] == pytest.approx(1e-3, rel=0.02)
    assert on_cpu["mean_seconds"] == pytest.approx(1e-3, rel=0.02)
    text = "\n".join(portrait(entry, 100, ascii_only=True))
    assert f"+{rivals} timeslice" in text
    assert "assertion on time on CPU, one class" in text


def test_without_a_derived_slice_no_number_is_claimed() -> None:
    """Preempted is said, how many slices is not."""
    entry = stated(learned([window(number, 1) for number in range(12)]), Environment())
    high = entry["classes"][1]
    assert (high["label"], high["slices"]) == ("preempted", None)


def test_time_on_cpu_holds_while_rivals_come_and_is_violated_when_the_work_grows() -> None:
    """Its assertion outlives the neighbours' load, which the one on durations does not, and sees more work."""
    settings, known, said = Settings().mining, None, []
    windows = [window(number, 0 if number < 12 else 1 if number < 24 else 2) for number in range(36)]
    for number in range(36):
        held = windows[max(0, number - settings.recent + 1) : number + 1]
        known = oncpu.observed(known, held, settings)
        said.append(known.check.verdict if known and known.check else "")
    assert known is not None
    assert "violated" not in said
    assert said[-1] == "holds"
    assert learned(windows[:24]).inference.learned is not None
    more = [window(number, 2, demand_ns=2.5e6) if number > 38 else window(number, 2) for number in range(30, 42)]
    for number in range(10, 12):
        held = more[max(0, number - settings.recent + 1) : number + 1]
        known = oncpu.observed(known, held, settings)
    assert known is not None
    assert known.check is not None
    assert known.check.verdict == "violated"


def test_a_violation_by_waiting_is_told_as_such() -> None:
    """Where durations are no longer as asserted but time on CPU is, the reason sends the user to the host."""
    function = learned([window(number, 1) for number in range(16)])
    assert function.inference.on_cpu is not None
    assert function.inference.on_cpu.check is not None
    violated = reasons.violated(1)
    with_reason = replace(function, phase=replace(function.phase, reason=violated))
    entry = stated(with_reason)
    assert entry["reason"]["code"] == "violated"
    assert "its time on CPU is as asserted" in entry["reason"]["text"]
    grown = replace(function.inference.on_cpu, check=replace(function.inference.on_cpu.check, verdict="violated"))
    assert (
        stated(replace(with_reason, inference=replace(function.inference, on_cpu=grown)))["reason"]["text"]
        == violated.text
    )


def test_the_assertion_on_time_on_cpu_outlives_the_daemon() -> None:
    """What was learned is in the record, and is checked on."""
    function = learned([window(number, 1) for number in range(12)])
    assert function.inference.on_cpu is not None
    record = function_record(function, 12 * SECOND)
    again = restored([WORK], {WORK.key: record}, [], 0, Settings().mining)[WORK.key]
    assert again.inference.on_cpu == replace(function.inference.on_cpu, found=())
    later = again
    for number in range(12, 15):
        later = transitions.observed(later, window(number, 2), Settings())
    assert later.inference.on_cpu is not None
    assert later.inference.on_cpu.check is not None
    assert later.inference.on_cpu.check.verdict == "holds"


def test_splits_go_through_the_store(tmp_path: Path) -> None:
    """What calls did of their time is there again, and adds up where observations are merged."""
    windows = [window(number, 1) for number in range(3)]
    with open_store(tmp_path / "s.db") as store:
        last = replace(windows[0], split=None, start_ns=9 * SECOND, end_ns=10 * SECOND)
        store.write(Writes((*windows, last)), 0)
        found = store.load().observations
    assert [encode(each.split) for each in found] == [*(encode(each.split) for each in windows), None]
    whole = pooled(windows)
    assert whole.split is not None
    assert whole.split.waiting_ns.total == sum(w.split.waiting_ns.total for w in windows if w.split)
    assert pooled([windows[0], replace(windows[1], split=None)]).split is None
    with pytest.raises(ValueError, match="cut short"):
        decode_split(encode_split(whole.split)[:-3])


def test_what_paths_did_of_their_time_is_the_same_after_a_restart(tmp_path: Path) -> None:
    """A path whose calls waited does not read as never interrupted once it comes from the store."""
    windows = []
    for number in range(3):
        one = window(number, 1)
        ran = Histogram.from_durations(np.full(400, 1e5))
        paths = (
            PathHistogram(path=CallPath((Frame("waits", "app"),), True), histogram=one.histogram, split=one.split),
            PathHistogram(path=CallPath((Frame("runs", "app"),), True), histogram=ran),
        )
        assert one.split is not None
        whole = replace(one.split, on_cpu=one.split.on_cpu + ran)
        both = one.histogram + ran
        windows.append(replace(one, kind=Kind.PATH, histogram=both, calls=1000, paths=paths, split=whole))
    with open_store(tmp_path / "s.db") as store:
        store.write(Writes(tuple(windows)), 0)
        found = store.load().observations
    before, after = (path_facts(every, 0.0) for every in (windows, found))
    assert before == after
    assert [facts["waiting"] > 0.3 for _, facts in sorted(after.items())] == [False, True]


def test_where_no_call_leaves_its_cpu_time_on_cpu_is_duration() -> None:
    """Nothing is mined twice, and the entry says so by null."""
    function = learned([window(number, 0) for number in range(12)])
    assert function.inference.on_cpu is None
    entry = stated(function)
    assert (entry["state"], entry["on_cpu"]) == ("single", None)
    assert entry["time"]["running"] == pytest.approx(1)


def test_unsplit_observations_say_nothing() -> None:
    """Of observations from elsewhere neither shares nor labels are made up."""
    function = learned([replace(window(number, 1), split=None) for number in range(12)])
    entry = stated(function)
    assert (entry["time"], entry["on_cpu"]) == (None, None)
    assert not {"running", "label", "cause"} & set(entry["classes"][0])


def test_time_in_calls_is_exported_by_part() -> None:
    """Running and waiting add up to the calls' time, and the verdict on time on CPU is there."""
    function = learned([window(number, 1) for number in range(12)])
    (one,) = snapshots(ControllerState(functions={WORK.key: function}, now_ns=100 * SECOND))
    parts = one.parts_seconds
    assert parts["running"] == pytest.approx(12 * 600 * 1e-3, rel=0.02)
    assert parts["waiting"] == pytest.approx(12 * 600 * 1e-3, rel=0.1)
    assert parts["blocked"] == 0
    assert one.on_cpu in ("holds", "")


def test_only_what_was_derived_on_this_host_is_used() -> None:
    """Slice, limit and ticks come from valid results of this boot; others give zeros."""
    host = Host(cpus=(0, 1), kernel="k", boot_id="boot", cpu_model="m", hertz=250)

    def entry(value: float, **more: object) -> dict[str, object]:
        told = json_value({name: getattr(host, name) for name in HOST_KEYS})
        result = {"value": value, "interval": None, "evidence": {}, "host": told, "time": "then", "reason": None}
        return {"valid": result | more, "last": result | more}

    entries = {
        "timeslice": entry(4.02e-3, interval=[4.0e-3, 4.1e-3]),
        "quota": entry(0.2, evidence={"quota_seconds": 0.02, "period_seconds": 0.1}),
    }
    found = host_times(environment_of(entries, host))
    assert (found.slice_ns, found.slice_low_ns, found.slice_high_ns) == pytest.approx((4.02e6, 4.0e6, 4.1e6))
    assert found.pause_ns == pytest.approx(80e6)
    assert host_times(environment_of(entries, replace(host, boot_id="another"))) == HostTimes()
    assert host_times(environment_of({}, host)) == HostTimes()
