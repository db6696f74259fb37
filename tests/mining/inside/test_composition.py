"""The time of each class divides over callees and own code, on made-up calls whose every part is known."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from specmine.mining.inside.composition import best_known, composition
from specmine.model.buckets import bucket_of
from specmine.model.call_path import Frame
from specmine.model.histogram import EMPTY, Histogram
from specmine.model.inside.parts import OTHERS, CalleeSet, CalleeTime, Inside
from tests.support.insides import inside_of_calls

FLUSH, PARSE = Frame("flush", "libc"), Frame("parse", "app")


def test_shares_are_those_of_the_very_calls() -> None:
    """Two classes: in the slow one a callee takes 1 ms and is blocked, which the fast one does not call."""
    chance = np.random.default_rng(1)
    slow = chance.random(20_000) < 0.25
    parse = chance.lognormal(np.log(20_000), 0.05, 20_000)
    flush = np.where(slow, chance.lognormal(np.log(1_000_000), 0.05, 20_000), 0.0)
    own = chance.lognormal(np.log(30_000), 0.05, 20_000)
    known = inside_of_calls({PARSE: parse, FLUSH: flush}, own, blocked={FLUSH: 0.9 * flush})
    edge = int(bucket_of(np.array([300_000]))[0])
    found = composition(known, (edge,))
    whole = parse + flush + own
    for place, these in enumerate((~slow, slow)):
        one = found.classes[place]
        assert one.calls == these.sum()
        shares = {part.callee: part for part in one.callees}
        for callee, time in ((PARSE, parse), (FLUSH, flush)):
            if time[these].any():
                assert shares[callee].share == pytest.approx(time[these].sum() / whole[these].sum(), abs=0.01)
                assert shares[callee].calls == pytest.approx(1.0)
            else:
                assert callee not in shares
        assert one.own == pytest.approx(own[these].sum() / whole[these].sum(), abs=0.015)
        assert one.own + sum(part.share for part in one.callees) == pytest.approx(1.0, abs=1e-9)
    assert found.classes[1].callees[0].callee == FLUSH
    assert found.classes[1].callees[0].blocked == pytest.approx(0.9, abs=0.001)
    assert found.classes[1].own_blocked == 0.0


def test_what_callees_took_never_exceeds_the_whole() -> None:
    """The middle of a bucket may be less than the callee took, and the bias is taken off: still all adds up to 1."""
    calls = Histogram.from_durations(np.full(100, 1000))
    most = CalleeTime(callee=PARSE, calls=calls, time_ns=Histogram.from_pairs(calls.buckets, [110_000]))
    known = Inside(calls=calls, timed=(PARSE,), sets=(CalleeSet(calls=calls, callees=(most,)),))
    (only,) = composition(known, (), bias_ns=200.0).classes
    assert (only.callees[0].share, only.own) == (1.0, 0.0)


def test_calls_with_more_callees_timed_are_preferred_once_they_are_enough() -> None:
    """What a callee took while it was not timed would pass for own code."""
    many, few = Histogram.from_pairs([50], [1000]), Histogram.from_pairs([50], [99])
    less = Inside(calls=many, timed=(PARSE,), partly=(FLUSH,))
    assert best_known([less, Inside(calls=few, timed=(FLUSH, PARSE))]) is less
    more = Inside(calls=Histogram.from_pairs([50], [100]), timed=(FLUSH, PARSE))
    assert best_known([less, more]) is more
    assert best_known([Inside(calls=EMPTY, timed=(PARSE,))]) is None
    assert best_known([]) is None


def test_callees_that_are_not_told_apart_come_last() -> None:
    calls = Histogram.from_pairs([300], [10])
    times = [
        CalleeTime(callee=frame, calls=calls, time_ns=Histogram.from_pairs([300], [number]))
        for frame, number in ((OTHERS, 9000), (PARSE, 1000))
    ]
    known = Inside(calls=calls, timed=(PARSE,), sets=(CalleeSet(calls=calls, callees=tuple(times)),))
    assert [part.callee for part in composition(known, ()).classes[0].callees] == [PARSE, OTHERS]


def test_nothing_is_said_of_a_callee_that_was_timed_in_part() -> None:
    """What of its time was counted is own code, and so are its waits."""
    chance = np.random.default_rng(7)
    flush, own = chance.lognormal(13, 0.1, 1000), chance.lognormal(11, 0.1, 1000)
    whole = inside_of_calls({FLUSH: flush, PARSE: own}, own, blocked={FLUSH: flush})
    known = best_known([replace(whole, timed=(PARSE,), partly=(FLUSH,))])
    assert known is not None
    (only,) = composition(known, ()).classes
    (told,) = composition(whole, ()).classes
    shares = {part.callee: part.share for part in told.callees}
    assert [part.callee for part in only.callees] == [PARSE]
    assert only.own == pytest.approx(told.own + shares[FLUSH])
    assert only.own_blocked == pytest.approx(shares[FLUSH])
    assert told.own_blocked == 0.0
