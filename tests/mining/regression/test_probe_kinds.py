"""Which calls are comparable whichever kind of probe timed them."""

from __future__ import annotations

import pytest

from specmine.mining.regression.probe_kinds import are_comparable


@pytest.mark.parametrize(("median_ns", "comparable"), [(40_000, True), (20_000, True), (19_000, False), (0, False)])
def test_the_probes_own_cost_must_be_small(median_ns: float, comparable: bool) -> None:
    """A cost of 1 us is small beside 20 us, and not beside less."""
    assert are_comparable(median_ns, 1_000) is comparable
