"""On-phases that a function shares with its callees: they are on in its very calls, and in no others."""

from __future__ import annotations

from typing import Any

import pytest

from specmine.model.batch import Watch
from specmine.model.observation import Observation
from specmine.probes.timing.function.timed_function import TimedFunction
from specmine.probes.timing.phases.shared import GATHER_NS
from specmine.probes.timing.return_probes import IDENTITY
from tests.support.timed_program import MS, SECOND, TimedProgram

HOW: dict[str, Any] = {"on_ns": 100 * MS, "period_ns": 2 * SECOND, "burst_hits": 462, "hits_per_second": 231.0}
CONTAMINATING_NS = 20_000
"""So much of 50 us is subtracted for the probes within a call: far too much to be corrected."""


def looked_into(program: TimedProgram, *callees: str) -> tuple[TimedFunction, ...]:
    """Return a function whose calls are looked into, and these callees, which follow it."""
    top = program.watch("top", **HOW)
    key = top.function.key
    top.request(Watch(**{**_fields(top.watch), "inside_of": key}))
    return (top, *(program.watch(name, **{**HOW, "burst_hits": 2000, "inside_of": key}) for name in callees))


def _fields(watch: Watch) -> dict[str, Any]:
    return {name: getattr(watch, name) for name in watch.__dataclass_fields__}


def on_phase(
    program: TimedProgram, top: TimedFunction, *callees: TimedFunction, calls: int = 231, nested_ns: int = 0
) -> list[Observation]:
    """Let the next on-phase begin; report what was made only after its calls, as a loop that rests does."""
    found = [*program.poll(4 * SECOND)]
    assert top.attachment.links
    program.call(top, calls, *callees, nested_ns=nested_ns)
    program.now_ns += 300 * MS
    program.make(*(each for each in (*callees, top) if each.attachment.links))
    program.empty(top)
    return [*found, *program.poll()]


def told(observations: list[Observation], w: TimedFunction) -> list[tuple[list[str], list[str], int]]:
    """Return the callees that were timed and those that were not, with the number of calls."""
    return [
        ([frame.name for frame in part.timed], [frame.name for frame in part.partly], part.calls.total)
        for one in observations
        if one.function == w.function.key
        for part in one.inside
    ]


def test_callees_are_on_in_all_calls_though_reports_come_later() -> None:
    """Their probes are asked for before those of the function, and end with them; what they took is told."""
    program = TimedProgram()
    top, parse, miss = looked_into(program, "parse", "miss")
    found = on_phase(program, top, parse, miss)
    order = [cookie & IDENTITY for cookie in program.holder.asked]
    asked = [order.index(each.attachment.cookies[0]) for each in (parse, miss, top)]
    assert asked == sorted(asked)
    assert program.holder.companions[asked[2] + 1] == [asked[0] + 1, asked[1] + 1], "the holder ends them with it"
    assert told(found, top) == [(["miss", "parse"], [], 231)]
    assert not parse.attachment.links and not miss.attachment.links
    assert [one.timed for one in found if one.function == parse.function.key] == [231], "they have windows as always"


def test_callees_have_no_on_phases_of_their_own() -> None:
    """However late it is: only while the function is on are they, also if it ends by the clock or is given up."""
    program = TimedProgram()
    top, parse = looked_into(program, "parse")
    top.schedule.attach_at(program.now_ns + 100 * SECOND)
    for _ in range(3):
        program.poll(20 * SECOND)
        assert not parse.attachment.links
    program.poll(50 * SECOND)
    program.make(parse, top)
    assert parse.attachment.on_ns and top.attachment.on_ns
    program.poll(400 * MS)
    assert not top.attachment.links and not parse.attachment.links
    program.poll(5 * SECOND)
    program.make(parse, top)
    program.links.detach(top, program.now_ns)
    del program.duty.functions[top.function.key]
    program.poll(10 * MS)
    assert not parse.attachment.links


def test_a_callee_that_did_not_come_is_not_told() -> None:
    """Its link failed, so nothing is said of it; the others are told."""
    program = TimedProgram()
    top, parse, miss = looked_into(program, "parse", "miss")
    program.poll()
    program.call(top, 231, parse)
    program.links.detach(miss, program.now_ns)
    program.make(parse, top)
    program.empty(top)
    assert told(program.poll(), top) == [(["parse"], ["miss"], 231)]


def test_a_callee_whose_bucket_ran_empty_is_not_told() -> None:
    """Nobody knows since when its calls were not timed; the next on-phase is told again."""
    program = TimedProgram()
    top, parse = looked_into(program, "parse")
    assert told(on_phase(program, top, parse), top) == [(["parse"], [], 231)]
    program.poll(4 * SECOND)
    program.call(top, 231, parse)
    program.make(parse, top)
    program.empty(parse)
    program.empty(top)
    assert told(program.poll(), top) == [([], ["parse"], 231)]
    parse.bucket.take_alarm()
    assert told(on_phase(program, top, parse), top) == [(["parse"], [], 231)]


def test_what_contaminates_is_looked_into_in_turns() -> None:
    """Durations come from on-phases alone, what is known of callees from those between; neither is lost."""
    program = TimedProgram()
    top, parse = looked_into(program, "parse")
    found = on_phase(program, top, parse, nested_ns=CONTAMINATING_NS)
    assert {one.function for one in found} == {parse.function.key}
    assert top.isolated
    for _ in range(3):
        alone = on_phase(program, top)
        assert not parse.attachment.links
        assert [one.timed for one in alone if one.function == top.function.key] == [231]
        assert (["parse"], [], 231) in told(alone, top), "the on-phase before said so"
        shared = on_phase(program, top, parse, nested_ns=CONTAMINATING_NS)
        assert [one for one in shared if one.function == top.function.key] == []
    assert top.contaminated == 1, "what is discarded on purpose is no reason to give up"


def test_calls_of_both_kinds_of_on_phases_do_not_mix() -> None:
    """A window that was begun before the calls were looked into ends then, and one that is open afterwards, too."""
    program = TimedProgram()
    top = program.watch("top", **HOW)
    program.poll()
    program.make(top)
    program.call(top, 100)
    program.now_ns += 10 * MS
    looks = Watch(**{**_fields(top.watch), "inside_of": top.function.key})
    program.duty.leave(top, looks, program.now_ns)
    top.request(looks)
    assert [one.timed for one in program.windows.finished(program.now_ns)] == [100]
    assert not top.attachment.links and top.schedule.next_on_ns <= program.now_ns
    program.poll()
    program.make(top)
    program.call(top, 100)
    program.now_ns += 10 * MS
    before = Watch(**{**_fields(top.watch), "inside_of": ""})
    program.duty.leave(top, before, program.now_ns)
    top.request(before)
    assert [one.timed for one in program.windows.finished(program.now_ns)] == [100]
    assert top.schedule.next_on_ns > program.now_ns


def test_callees_whose_sites_are_not_known_yet_are_waited_for() -> None:
    """For half a second; then the function begins without them."""
    program = TimedProgram()
    top, parse, miss = looked_into(program, "parse", "miss")
    parse.ready = False
    program.poll()
    assert not top.attachment.links and not miss.attachment.links
    program.poll(GATHER_NS + MS)
    assert top.attachment.links and miss.attachment.links and not parse.attachment.links


def test_reports_that_come_together_need_one_look_at_the_kernel() -> None:
    """Each of the functions has its window with what was inside its calls; the next reports are looked at anew."""
    program = TimedProgram()
    reads, drain = [], program.inside.drain

    def counted() -> tuple[Any, Any]:
        reads.append(program.now_ns)
        return drain()

    program.inside.drain = counted  # type: ignore[method-assign]
    tops = [program.watch(name, **{**HOW, "burst_hits": 2000}) for name in ("one", "two")]
    for _ in range(2):
        program.poll(20 * SECOND)
        program.make(*tops)
        for top in tops:
            program.call(top, 231)
        reads.clear()
        for top in tops:
            program.empty(top)
        assert reads == [program.now_ns]
        assert [(one.function, one.timed) for one in program.poll()] == [(top.function.key, 231) for top in tops]


def test_a_callee_is_noticed_whenever_it_is_met() -> None:
    """Callees are looked for only where the kernel met others than at the last look, by whichever function."""
    program = TimedProgram()
    top, other, callee = (program.watch(name, **{**HOW, "on_ns": 0}) for name in ("top", "other", "callee"))
    program.poll(4 * SECOND)
    program.make(callee, other, top)
    eras = program.limits["era"]
    program.poll()
    program.poll()
    assert not eras[top.slot.number] and not eras[other.slot.number]
    program.call(top, 1, callee)
    program.poll()
    first = int(eras[top.slot.number])
    assert first and not eras[other.slot.number]
    program.call(other, 1, callee)
    program.poll()
    assert eras[other.slot.number] and eras[top.slot.number] == first, "nothing new inside the calls of the first"
    program.duty.leave(callee, callee.watch, program.now_ns)
    program.poll()
    assert eras[top.slot.number] != first, "its probes are off: another era, though nothing else was met"


@pytest.mark.parametrize(("calls", "lasts_ms"), [(12, 500), (231, 100)])
def test_an_on_phase_that_brings_fewer_calls_than_planned_lasts_longer(calls: int, lasts_ms: int) -> None:
    """Slow calls come rarely: what came by its end is looked at, though the window is not full."""
    program = TimedProgram()
    w = program.watch("slow", **HOW | {"period_ns": 30 * SECOND}, minimum_calls=30)
    program.poll(50 * SECOND)
    program.now_ns += 200 * MS
    program.make(w)
    began_ns, found = program.now_ns - 100 * MS, list[Observation]()
    program.call(w, calls)
    while w.attachment.links:
        found += program.poll(20 * MS)
        assert program.now_ns - began_ns < SECOND
        if lasts_ms > 100 and 300 * MS < program.now_ns - began_ns <= 320 * MS:
            program.call(w, 24)
    assert lasts_ms * MS <= program.now_ns - began_ns < (lasts_ms + 150) * MS
    assert [one.timed for one in found] == [36 if calls == 12 else calls]


@pytest.mark.parametrize("by_bucket", [True, False])
def test_a_window_that_probes_inside_its_calls_spoiled_is_collected_again_at_once(by_bucket: bool) -> None:
    """Its on-phase brought nothing; the next one may be a minute away."""
    program = TimedProgram()
    how = {**HOW, "period_ns": 60 * SECOND, "hits_per_second": 7.7}
    top, parse = program.watch("top", **how), program.watch("parse", **how)
    program.poll()
    program.call(top, 231, parse, nested_ns=CONTAMINATING_NS)
    program.now_ns += 300 * MS
    program.make(parse, top)
    if by_bucket:
        program.empty(top)
    found = program.poll(500 * MS)
    assert [one.function for one in found if one.function == top.function.key] == []
    assert top.isolated and not top.attachment.links
    for _ in range(4):
        program.poll(100 * MS)
    assert top.attachment.links and not parse.attachment.links
    program.call(top, 231)
    program.now_ns += 300 * MS
    program.make(top)
    program.empty(top)
    assert [one.timed for one in program.poll() if one.function == top.function.key] == [231]
    for _ in range(4):
        program.poll(100 * MS)
    assert not top.attachment.links, "the next on-phase comes in its time"
