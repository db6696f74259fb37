"""What happened inside calls comes back from the store as it was, and damage is refused."""

from __future__ import annotations

import zlib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from specmine.model.call_path import Frame
from specmine.model.inside.parts import Inside
from specmine.model.json_codec import decode, encode
from specmine.model.observation import Observation
from specmine.model.pooling import pooled
from specmine.model.split import unbroken
from specmine.store import open_store
from specmine.store.histogram_reader import DamagedBytes
from specmine.store.inside_codec import decode_inside, encode_inside
from tests.support.insides import inside_of_calls
from tests.support.stored import fill, observation


def part() -> Inside:
    """Return what happened inside some calls."""
    chance, frame = np.random.default_rng(5), Frame("read", "libc")
    read = np.where(chance.random(500) < 0.5, chance.lognormal(12, 0.5, 500), 0.0)
    blocked = {frame: np.where(chance.random(500) < 0.3, 0.6 * read, 0.0)}
    own = chance.lognormal(11, 0.5, 500)
    made = inside_of_calls({frame: read}, own, blocked=blocked, own_blocked=np.full(500, 9.0))
    assert any(frame in each.blocked for each in made.sets)
    return replace(made, partly=(Frame("naïve \N{SNOWMAN}", "app"),))


def test_it_comes_back_as_it_was() -> None:
    """Through the store's bytes and through JSON."""
    for parts in ((part(),), (part(), replace(part(), timed=(), sets=(), split=False))):
        assert encode(decode_inside(encode_inside(parts))) == encode(parts)
        assert encode(decode(tuple[Inside, ...], encode(parts))) == encode(parts)


def test_observations_keep_it_and_pool_it(tmp_path: Path) -> None:
    """A store holds it in a column; merged observations hold the sum."""
    windows = [replace(observation(number), inside=(part(),)) for number in (1, 2)]
    with open_store(tmp_path / "s.db") as store:
        fill(store, windows)
        kept: tuple[Observation, ...] = store.load().observations
    assert [encode(each.inside) for each in kept] == [encode(each.inside) for each in windows]
    (both,) = pooled(windows).inside
    assert [each.blocked for each in both.sets] == [each.blocked for each in part().sets]
    assert both.sets[-1].blocked_ns.total == 2 * part().sets[-1].blocked_ns.total
    assert both.calls.pairs == [[bucket, 2 * calls] for bucket, calls in part().calls.pairs]
    assert both.sets[0].callees[0].time_ns.total == 2 * part().sets[0].callees[0].time_ns.total


def test_windows_in_which_no_call_was_blocked_count_among_others() -> None:
    """Else most of the calls merged would seem to be blocked."""
    bare = replace(observation(1), inside=())
    quiet = replace(bare, split=unbroken(bare.histogram))
    blocked = Inside(calls=quiet.histogram, timed=(), sets=(), split=True)
    both = pooled([replace(quiet, inside=(blocked,)), quiet])
    assert sum(each.calls.total for each in both.inside) == both.histogram.total
    assert pooled([quiet, quiet]).inside == ()


@pytest.mark.parametrize(
    "damage",
    [
        lambda blob: blob[:-4],
        lambda _: b"",
        lambda _: zlib.compress(b"\x05\x00\x00\x00[1,2]"),
        lambda blob: zlib.compress(zlib.decompress(blob).replace(b'"frames":[["', b'"frames":[3,["')),
        lambda blob: zlib.compress(zlib.decompress(blob)[:-3]),
    ],
)
def test_damaged_bytes_are_refused(damage) -> None:  # type: ignore[no-untyped-def]
    """Nothing but DamagedBytes comes of bytes that are none."""
    with pytest.raises(DamagedBytes):
        decode_inside(damage(encode_inside((part(),))))
