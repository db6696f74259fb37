"""The environment vector and the causes it names."""

from __future__ import annotations

from dataclasses import replace

import pytest

from specmine.experiments.host.environment import Environment, cause_of, environment_of
from specmine.experiments.library import EXPERIMENTS
from specmine.experiments.results.document import document
from specmine.experiments.results.journal import Journal
from specmine.experiments.types import SECOND, Finding
from tests.support.simulated_host import HOST

KNOWN = Environment(
    slice_seconds=0.00402,
    quota_seconds=0.02,
    period_seconds=0.1,
    tick_cost_seconds=20e-6,
    hypervisor_slice_seconds=0.0305,
)


@pytest.mark.parametrize(
    ("excess", "code", "times"),
    [
        (0.0041, "slices", 1),
        (0.00804, "slices", 2),
        (0.0121, "slices", 3),
        (0.0800, "quota", 1),
        (0.0305, "steal", 1),
        (21e-6, "ticks", 1),
        (40e-6, "ticks", 2),
        (0.0060, None, 0),
        (0.0005, None, 0),
    ],
)
def test_an_excess_has_the_cause_that_it_equals(excess: float, code: str | None, times: int) -> None:
    """Whole slices, the quota's pause, the hypervisor's turn and ticks are named; anything else is not."""
    cause = cause_of(excess, KNOWN)
    assert (cause.code if cause else None) == code
    if cause is not None:
        assert cause.times == times


def test_nothing_is_named_where_nothing_is_known() -> None:
    """Without derived properties no cause is made up."""
    assert cause_of(0.004, Environment()) is None


def test_the_vector_leaves_out_what_no_longer_holds() -> None:
    """Values of this boot are in it, those of another are unknown, never stale."""
    journal = Journal()
    for name, value in (("timeslice", 0.004), ("cores", 2.0)):
        host = HOST if name == "timeslice" else replace(HOST, boot_id="other")
        finding = Finding(value=value)
        journal.add(document(EXPERIMENTS[name], finding, host, utc_ns=0, window_ns=(0, SECOND), cpu_ns=1))
    found = environment_of(journal.entries, HOST)
    assert (found.slice_seconds, found.cores) == (0.004, None)
    assert found.document()["schema"] == "specmine.environment/1"
    assert (found.kernel, found.cpus, found.hertz) == ("6.18", 2, 250)
