"""The detector of a function opens what changed, says when and by how much, and keeps quiet otherwise."""

from __future__ import annotations

import json

import numpy as np
import pytest

from specmine.mining.detection.alarm import Stream
from specmine.mining.detection.detector import DetectorState, adopted, advance, is_suspicious, settled
from specmine.mining.detection.values import Value
from specmine.model.json_codec import decode, encode
from specmine.model.violation import Direction, What
from tests.support.watched_stream import ALL, EVERY, Watched

SHARE = Stream(what=What.SHARE, part="share 1")
SLOWER = Direction.SLOWER


@pytest.mark.parametrize(
    ("factor", "direction"), [(2.0, SLOWER), (3.0, SLOWER), (30.0, SLOWER), (1_000.0, SLOWER), (0.4, Direction.FASTER)]
)
def test_a_change_is_opened_with_its_moment_and_factor(factor: float, direction: Direction) -> None:
    """Within 15 windows in 19 of 20 cases, the moment within two windows, the factor within 20 %."""
    good = 0
    for seed in range(20):
        watched = Watched(seed)
        changed = watched.now_ns
        (alarm, *_) = watched.run(15, factor) or (None,)
        if alarm is None or not alarm.opened:
            continue
        assert alarm.direction is direction
        assert alarm.factor_low < alarm.factor < alarm.factor_high
        good += abs(alarm.factor / factor - 1) < 0.2 and abs(alarm.since_ns - changed) <= 2 * EVERY
    assert good >= 19


def test_an_unchanged_stream_stays_quiet() -> None:
    """Ten streams of 1,500 windows each, one in a hundred of them three times slower, open nothing."""
    for seed in range(10):
        watched = Watched(seed, correlation=0.8)
        for _ in range(150):
            assert not any(alarm.opened for alarm in watched.run(9))
            assert not any(alarm.opened for alarm in watched.run(1, 3.0))


def test_one_slow_window_is_suspicious_at_most() -> None:
    """However slow it is, a single window opens nothing, and it is forgotten."""
    watched = Watched(3)
    assert not any(alarm.opened for alarm in watched.run(1, 1_000.0))
    assert is_suspicious(watched.state)
    watched.run(20)
    assert not is_suspicious(watched.state)


def test_a_change_of_some_windows_is_opened() -> None:
    """Every third window is thirty times slower: open within thirty windows in 19 of 20 cases."""
    opened = 0
    for seed in range(20):
        watched, found = Watched(seed), False
        for _ in range(10):
            found |= any(alarm.opened for alarm in watched.run(2) + watched.run(1, 30.0))
        opened += found
    assert opened >= 19


def test_a_stream_whose_windows_were_always_paused_now_and_then_stays_quiet() -> None:
    """One window in twenty is thirty times slower from the beginning on: in ten streams nothing is opened."""
    for seed in range(10):
        rng = np.random.default_rng(seed)
        watched = Watched(seed, learned=1)
        for _ in range(600):
            alarms = watched.run(1, 30.0 if rng.random() < 0.05 else 1.0)
            assert not any(alarm.opened for alarm in alarms)


def test_fast_windows_do_not_outweigh_what_was_learned() -> None:
    """Learned from 17 windows, a change is found though its windows come each two seconds, and none is learned from."""
    found = 0
    for seed in range(20):
        watched = Watched(seed, sd=0.02, learned=17)
        before = watched.state.find(ALL)
        assert before is not None
        for number in range(20):
            watched.now_ns -= EVERY - 2 * 10**9
            if any(alarm.opened for alarm in watched.run(1, 2.0)):
                found += 1
                break
            after = watched.state.find(ALL)
            assert after is not None
            assert after.seen - before.seen < 2 + 0.3 * number
            assert after.baseline - before.baseline < 0.15
    assert found >= 19


def test_a_change_that_went_before_it_was_certain_is_forgotten() -> None:
    """After three windows that are slower the old level ends the suspicion: nothing is wanted at once any more."""
    suspected = 0
    for seed in range(20):
        watched = Watched(seed, sd=0.1, correlation=0.8)
        watched.run(3, 1.8)
        suspected += is_suspicious(watched.state)
        watched.run(20)
        assert not is_suspicious(watched.state)
    assert suspected >= 15


def test_an_open_change_stays_open_and_its_baseline_stays() -> None:
    """A day after a change it is still open at its factor; settled, the old level is the normal one again."""
    watched = Watched(4)
    watched.run(15, 2.0)
    before = watched.state.find(ALL)
    assert before is not None
    assert before.opened
    for _ in range(300):
        (alarm,) = watched.run(1, 2.0)
        assert alarm.opened
    assert alarm.factor == pytest.approx(2.0, rel=0.15)
    after = watched.state.find(ALL)
    assert after is not None
    assert after.baseline == before.baseline
    watched.state = settled(watched.state, ALL)
    assert not any(alarm.opened for alarm in watched.run(200))
    assert any(alarm.opened for alarm in watched.run(15, 2.0))


def test_an_accepted_change_is_the_new_baseline() -> None:
    """After it was adopted the new level is quiet, and the old one is a change."""
    watched = Watched(5)
    watched.run(15, 2.0)
    for _ in range(20):
        watched.run(1, 2.0)
    watched.state = adopted(watched.state, ALL)
    assert not any(alarm.opened for alarm in watched.run(200, 2.0))
    (alarm, *_) = watched.run(15)
    assert alarm.opened
    assert alarm.direction is Direction.FASTER


def test_lifetimes_may_differ_a_little() -> None:
    """Thirty restarts that shift the level by up to 3 % open nothing."""
    watched = Watched(6)
    for lifetime in range(30):
        shift = float(watched.rng.normal(0, 0.03))
        assert not any(alarm.opened for alarm in watched.run(20, np.exp(shift), lifetime=str(lifetime)))


def test_a_share_that_moves_is_told_as_a_factor_of_the_share() -> None:
    """From 20 % to 60 % of the calls: factor 3."""
    watched = Watched(7, stream=SHARE, sd=0.1)
    place = float(np.log(0.2 / 0.8))
    watched.state = DetectorState()
    watched.run(100, base=place)
    (alarm, *_) = watched.run(20, 6.0, base=place)
    assert alarm.opened
    assert alarm.stream == SHARE
    assert alarm.factor == pytest.approx(3.0, rel=0.2)


def test_the_state_survives_json() -> None:
    """A detector that was stored and read again says the same."""
    watched = Watched(8)
    watched.run(3, 2.0)
    read = decode(DetectorState, json.loads(json.dumps(encode(watched.state))))
    assert read == watched.state
    value = [Value(stream=ALL, place=11.7, variance=0.001)]
    now = watched.now_ns + EVERY
    assert advance(read, value, now, began_ns=now - EVERY) == advance(watched.state, value, now, began_ns=now - EVERY)
