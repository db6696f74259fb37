"""What the controller knows arrives in a scrape: levels, violations, programs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from specmine.daemon.config.settings import Settings
from specmine.daemon.controller.state import ControllerState
from specmine.daemon.controller.violations.function_violations import FunctionViolations, OpenViolation
from specmine.daemon.controller.violations.yardstick import Yardstick
from specmine.daemon.documents.detectable import detectable_factor
from specmine.daemon.documents.status import DaemonFacts, status_of
from specmine.daemon.loop import run
from specmine.daemon.metrics.collector import SnapshotCollector
from specmine.daemon.metrics.observed_level import observed_levels
from specmine.daemon.metrics.snapshot import snapshots
from specmine.daemon.metrics.violation_snapshot import CLOSED_NS
from specmine.daemon.worker.process import InlineWorker
from specmine.mining.detection.detector import THRESHOLD, DetectorState
from specmine.mining.detection.power import detectable
from specmine.model.buckets import BUCKET_EDGES
from specmine.model.violation import Violation, ViolationState
from tests.daemon.documents.test_violation_text import SLOWER
from tests.daemon.metrics.test_collector import scrape, total
from tests.support.planted import paper_program, unimodal
from tests.support.simulated import SECOND, FakeClock, SimulatedSource

SHORT = Settings(window_ns=SECOND, limit_ns=10 * SECOND)


@pytest.fixture(scope="module")
def learned() -> ControllerState:
    """Return what is known after some minutes of a program."""
    clock = FakeClock()
    source = SimulatedSource((*paper_program(), unimodal()), clock)
    return run(source, SHORT, clock, InlineWorker(), deadline_ns=120 * SECOND)


def with_violation(state: ControllerState, name: str, violation: Violation) -> ControllerState:
    """Return the state with a violation of a function, and its yardstick."""
    function = next(each for each in state.functions.values() if each.function.name == name)
    standing = OpenViolation(violation=violation)
    known = FunctionViolations(yardstick=Yardstick(build_id="b1d", since_ns=1, levels={"true": SLOWER.expected}))
    if violation.state is ViolationState.OPEN:
        known = replace(known, standing=(standing,))
    else:
        known = replace(known, closed=(violation,))
    return replace(state, functions={**state.functions, function.key: replace(function, violations=known)})


def seen(state: ControllerState) -> SnapshotCollector:
    """Return a collector over a state."""
    return SnapshotCollector(lambda: (snapshots(state), status_of(state, DaemonFacts())), series=2000)


def test_a_violation_of_the_controller_arrives(learned: ControllerState) -> None:
    """With the program's name, the yardstick's range and the explaining function's name."""
    inner = next(key for key, each in learned.functions.items() if each.function.name == "z")
    one = next(each for each in learned.functions.values() if each.state.value == "single")
    violation = replace(SLOWER, function=one.key, since_ns=learned.now_ns - 60 * SECOND, found_ns=learned.now_ns)
    name = one.function.name
    found = scrape(seen(with_violation(learned, name, violation)))
    labels = {"program": "app", "function": name, "module": "app"}
    assert total(found, "specmine_violation", **labels, what="level", direction="slower") == 1
    wanted = {("function", name), ("quantile", "p50")}
    ranges = [(dict(each), value) for (kind, each), value in found.items() if kind == "specmine_expected_seconds"]
    ends = {each["bound"]: value for each, value in ranges if wanted <= each.items()}
    assert ends == {"low": pytest.approx(72e-6), "high": pytest.approx(80e-6)}
    explained = with_violation(learned, name, replace(violation, because=inner))
    assert total(scrape(seen(explained)), "specmine_violation_info", because="z") == 1
    for age_ns, shown in ((SECOND, True), (CLOSED_NS + SECOND, False)):
        over = replace(violation, state=ViolationState.RECOVERED, closed_ns=learned.now_ns - age_ns)
        series = scrape(seen(with_violation(learned, name, over)))
        assert any(kind == "specmine_violation" for kind, _ in series) is shown


def test_observed_quantiles_are_those_of_the_newest_windows(learned: ControllerState) -> None:
    """As numpy has them of the same durations, for all calls and for each behaviour."""
    function = next(each for each in learned.functions.values() if each.function.name == "z")
    levels = observed_levels(function, learned.now_ns)
    result = function.explanation.result
    assert result is not None and levels.keys() == {"true", *(each.expression for each in result.behaviours)}
    windows = (*function.history.timing, *function.history.paths)
    buckets = np.concatenate([one.histogram.buckets for one in windows]).astype(int)
    counts = np.concatenate([one.histogram.counts for one in windows]).astype(int)
    middles = np.repeat((BUCKET_EDGES[buckets] + BUCKET_EDGES[buckets + 1]) / 2, counts)
    bias = sum(one.bias_ns * one.timed for one in windows) / sum(one.timed for one in windows)
    for name, share in (("p50", 0.5), ("p90", 0.9)):
        expected = float(np.quantile(middles, share)) - bias
        observed = levels["true"].quantile(name)
        assert observed is not None and observed.ns == pytest.approx(expected, rel=0.04)
    fast = levels["b->c"].quantile("p99")
    slow = levels["not b->c"].quantile("p90")
    assert fast is not None and slow is not None and fast.ns < 50_000 < slow.ns


def test_old_windows_count_only_if_there_is_no_newer_one(learned: ControllerState) -> None:
    """What was observed long ago is not the present; but the newest window is better than nothing."""
    function = next(each for each in learned.functions.values() if each.function.name == "z")
    later = observed_levels(function, learned.now_ns + 3600 * SECOND)
    assert later["true"].windows == 1 < observed_levels(function, learned.now_ns)["true"].windows


def test_the_detectable_factor_is_that_of_the_detector(learned: ControllerState) -> None:
    """None where the detector knows nothing; it is computed again only after minutes."""
    known = [
        each for each in learned.functions.values() if detectable_factor(each, learned.now_ns, THRESHOLD) is not None
    ]
    assert known
    for function in known:
        factor = detectable(function.violations.detector)
        assert detectable_factor(function, learned.now_ns, THRESHOLD) == factor >= 1.25
        forgotten = replace(function, violations=replace(function.violations, detector=DetectorState()))
        assert detectable_factor(forgotten, learned.now_ns, THRESHOLD) is None
    found = scrape(seen(learned))
    assert sum(kind == "specmine_detectable_ratio" for kind, _ in found) == len(known)
