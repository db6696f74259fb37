"""The detectable factor is true: of changes by that factor about half are found within a minute."""

from __future__ import annotations

import copy
import math

import pytest

from specmine.mining.detection.detector import DetectorState
from specmine.mining.detection.power import detectable
from tests.support.watched_stream import Watched


def test_steady_functions_have_more_power() -> None:
    """The factor grows with the spread of windows, and is not known before some ninety of them."""
    factors = [detectable(Watched(1, sd=sd).state) for sd in (0.05, 0.15, 0.3)]
    assert 1.25 <= factors[0] < factors[1] < factors[2]
    assert math.isnan(detectable(DetectorState()))
    assert math.isnan(detectable(Watched(1, sd=0.05, learned=80).state))
    assert detectable(Watched(1, sd=0.05, learned=110).state) >= 1.25
    assert detectable(Watched(1, sd=0.15).state, within=300) < factors[1]


@pytest.mark.parametrize("sd", [0.07, 0.15])
def test_half_of_such_changes_are_found_in_a_minute(sd: float) -> None:
    """Of 60 changes by the stated factor 25 to 75 % are open after 60 s; of those by its square nearly all."""
    found = larger = 0
    for seed in range(60):
        watched = Watched(seed, sd=sd)
        factor, again = detectable(watched.state), copy.deepcopy(watched)
        found += watched.is_found(factor, 60)
        larger += again.is_found(factor * factor, 60)
    assert 15 <= found <= 45
    assert larger >= 54
