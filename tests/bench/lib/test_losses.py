"""Losses over pairs of phases: the interval covers what was planted, and knowing the host's speed makes it short."""

from __future__ import annotations

import numpy as np
import pytest

from bench.lib.losses import Pair, adjusted_loss_of, loss_of, reference_of

KINDS = 5


def pairs_of(random: np.random.Generator, count: int, loss: float, told: float) -> list[Pair]:
    """Return pairs on a host whose speed changes, of which the reference work tells a part."""
    host = random.standard_t(4, (count, KINDS)) * 0.05
    own = random.standard_t(4, count) * 0.02
    unknown = random.standard_t(4, count) * 0.05
    logs = np.log1p(loss) + told * host @ [0.5, 0.0, 0.2, 0.6, 0.3] + (1 - told) * unknown + own
    return [
        Pair(on=2e-5 * float(np.exp(y)), off=2e-5, reference=tuple(np.exp(x).tolist()))
        for y, x in zip(logs, host, strict=True)
    ]


@pytest.mark.parametrize("told", [0.0, 1.0])
def test_intervals_cover_the_planted_loss(told: float) -> None:
    """In 95 of 100 cases, less what so few cases can be off, whether the reference work tells anything or not."""
    random = np.random.default_rng(1)
    inside = wide = 0
    widths = []
    for _ in range(100):
        pairs = pairs_of(random, 60, 0.01, told)
        measured, adjusted = loss_of(pairs), adjusted_loss_of(pairs)
        assert adjusted is not None
        wide += measured.low <= 0.01 <= measured.high
        inside += adjusted.low <= 0.01 <= adjusted.high
        widths.append(adjusted.half_width / measured.half_width)
    assert wide >= 89  # the 0.5 % point of a binomial of 100 at 95 %
    assert inside >= 89
    assert (np.median(widths) < 0.5) == bool(told)
    assert np.median(widths) < 1.1


def test_few_pairs_are_not_adjusted() -> None:
    """Slopes of five kinds of work over ten pairs would explain anything."""
    assert adjusted_loss_of(pairs_of(np.random.default_rng(2), 10, 0.0, 1.0)) is None
    assert adjusted_loss_of([Pair(on=1.0, off=1.0)] * 100) is None


def test_what_probes_do_to_the_reference_work_is_told() -> None:
    """A kind that is slower with probes is no control."""
    found = reference_of([Pair(on=1.0, off=1.0, reference=(1.1, r)) for r in np.linspace(0.9, 1.11, 50)])
    assert found[0].low == pytest.approx(0.1)
    assert found[1].low < 0 < found[1].high
