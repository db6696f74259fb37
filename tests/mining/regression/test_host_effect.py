"""Changes that are the host's are told from those of the code, on durations made with known causes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from specmine.mining.regression.host_effect import host_evidence
from specmine.model.histogram import Histogram
from specmine.model.host.environment import Environment, Known, differences, environment_from

HOST = Environment(
    kernel="6.18", cpu_model="A", cpus=2, slice_seconds=0.00402, quota_seconds=0.02, period_seconds=0.1,
    hypervisor_slice_seconds=0.03, virtualization_overhead=1.0, steal_ratio=0.0,
)  # fmt: skip


def calls(*parts: tuple[int, float], spread: float = 0.01, seed: int = 1) -> Histogram:
    """Return a histogram of normal parts: number and mean in ms."""
    random = np.random.default_rng(seed)
    values = np.concatenate([random.normal(mean * 1e6, spread * 1e6, number) for number, mean in parts])
    return Histogram.from_durations(np.round(values))


@pytest.mark.parametrize(
    ("excess", "code", "times"), [(4.02, "slices", 1), (8.04, "slices", 2), (80.0, "quota", 1), (30.0, "steal", 1)]
)
def test_a_class_at_what_the_host_adds_is_the_hosts(excess: float, code: str, times: int) -> None:
    """A new class above the main one by whole slices, the quota's pause, or the hypervisor's turn."""
    found = host_evidence(calls((4000, 1.0)), calls((3000, 1.0), (1000, 1.0 + excess)), (HOST, HOST))
    assert found.explained
    (shift,) = found.shifts
    assert shift.cause is not None
    assert (shift.cause.code, shift.cause.times) == (code, times)
    assert shift.gain == pytest.approx(0.25, abs=0.02)


def test_a_class_elsewhere_is_not() -> None:
    """A class at 1.5 slices is nobody's: the host does not explain the change, and says no word."""
    found = host_evidence(calls((4000, 1.0)), calls((3000, 1.0), (1000, 7.0)), (HOST, HOST))
    assert [each.cause for each in found.shifts] == [None]
    assert not found.explained
    assert found.reason == ""


def test_half_an_explanation_is_none() -> None:
    """One class at a slice, another at nothing known: what is explained is told, the whole is not the host's."""
    found = host_evidence(calls((4000, 1.0)), calls((2000, 1.0), (1000, 5.02), (1000, 7.2)), (HOST, HOST))
    assert not found.explained
    assert "timeslice" in found.reason


def test_slower_code_is_not_the_hosts() -> None:
    """A main class that moved on hosts of one speed has no cause there."""
    found = host_evidence(calls((4000, 1.0)), calls((4000, 1.3)), (HOST, HOST))
    assert not found.explained


def test_a_slower_cpu_is() -> None:
    """The same factor in all durations as in fixed work is the CPU's."""
    slow = replace(HOST, virtualization_overhead=1.3, cpu_model="B")
    found = host_evidence(calls((4000, 1.0)), calls((4000, 1.3)), (HOST, slow))
    assert found.explained
    assert found.shifts[0].cause is not None
    assert found.shifts[0].cause.code == "speed"
    assert [each.name for each in found.differences] == ["cpu_model", "virtualization_overhead"]


def test_nothing_is_explained_where_nothing_is_known() -> None:
    """Without vectors no cause is made up."""
    found = host_evidence(calls((4000, 1.0)), calls((3000, 1.0), (1000, 5.02)), (None, None))
    assert not found.explained
    assert found.differences == ()


def test_nothing_changed_needs_no_cause() -> None:
    """The same durations on other hosts: hosts differ, and explain nothing since there is nothing to explain."""
    other = replace(HOST, slice_seconds=0.003)
    found = host_evidence(calls((4000, 1.0)), calls((4000, 1.0), seed=2), (HOST, other))
    assert found.shifts == ()
    assert not found.explained
    assert [each.name for each in found.differences] == ["slice_seconds"]


def test_what_differs_by_noise_is_no_difference() -> None:
    """Values repeat within some percent on one host: less than that is no difference, one side unknown is told last."""
    near = replace(HOST, slice_seconds=0.00405, steal_ratio=0.005, cores=2.0, kernel="6.12")
    found = differences(HOST, near)
    assert [(each.name, each.known) for each in found] == [("kernel", True), ("cores", False)]


def test_a_vector_goes_through_json() -> None:
    """What was written is read back, with validity and age; unknown fields are ignored."""
    vector = replace(HOST, properties={"cores": Known(valid=False, time="2026-01-01T00:00:00Z", reason="busy-host")})
    document = vector.document() | {"later": 1}
    assert environment_from(document) == vector
