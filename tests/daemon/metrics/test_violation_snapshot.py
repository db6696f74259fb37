"""Violations in a scrape: one series each, with numbers beside the words."""

from __future__ import annotations

from dataclasses import replace

import pytest

from specmine.daemon.metrics.collector import SnapshotCollector
from specmine.daemon.metrics.snapshot import FunctionSnapshot, behaviour_id
from specmine.daemon.metrics.violation_snapshot import ShownViolation
from specmine.model.level import Level, Quantile
from specmine.model.violation import Cause, CauseKind, ViolationState, What
from tests.daemon.documents.test_violation_text import SHOP, SLOWER
from tests.daemon.metrics.test_collector import collector, reading, scrape, status, total

ALL = behaviour_id("checksum (shop)", "ab", "true")
SHOWN = ShownViolation(violation=SLOWER, subject=SHOP, behaviour=ALL)


def violated(*violations: ShownViolation, **more: object) -> FunctionSnapshot:
    """Return a function with violations."""
    return replace(
        reading("checksum", module="shop", programs=("shop",)),
        violations=violations or (SHOWN,),
        **more,  # type: ignore[arg-type]
    )


def test_a_violation_says_everything_that_a_page_needs() -> None:
    """Program, function, behaviour, what and direction are labels; figures are values; words are on _info."""
    found = scrape(collector([violated()]))
    labels = {"program": "shop", "function": "checksum", "module": "shop", "behaviour": ALL, "what": "level"}
    assert total(found, "specmine_violation", **labels, direction="slower") == 1
    assert total(found, "specmine_violation_factor_ratio", **labels) == 2.11
    assert total(found, "specmine_violation_start_timestamp_seconds", **labels) == SHOWN.started
    assert total(found, "specmine_violation_expected_seconds", quantile="p50") == pytest.approx(76e-6)
    assert total(found, "specmine_violation_observed_seconds", quantile="p90") == pytest.approx(252e-6)
    assert total(found, "specmine_violation_acknowledged", **labels) == 0
    assert total(found, "specmine_violation_explained", **labels) == 0
    (info,) = (dict(each) for name, each in found if name == "specmine_violation_info")
    assert (info["cause"], info["because"], info["where"]) == ("code", "", "all calls")
    assert info["title"] == "shop: checksum 2.1x slower since 02:47, new code"
    assert "median 160 us, normal 72-80 us; cause: code" in info["text"]
    assert total(found, "specmine_violations_open") == 1
    assert total(found, "specmine_host_disturbed") == 0


def test_closed_acknowledged_and_explained_violations_are_told_apart() -> None:
    """A closed one is 0, so that alerts end at once; with the same labels the open one stands."""
    known = replace(SLOWER, state=ViolationState.ACKNOWLEDGED, closed_ns=SLOWER.found_ns + 1)
    found = scrape(collector([violated(replace(SHOWN, violation=known))]))
    assert total(found, "specmine_violation") == 0 and total(found, "specmine_violation_acknowledged") == 1
    found = scrape(collector([violated(SHOWN, replace(SHOWN, violation=known))]))
    assert total(found, "specmine_violation") == 1 and total(found, "specmine_violation_acknowledged") == 0
    caller = replace(SHOWN, violation=replace(SLOWER, because="key"), subject=replace(SHOP, because="inner"))
    found = scrape(collector([violated(caller)]))
    assert total(found, "specmine_violation_explained") == 1
    assert total(found, "specmine_violation_info", because="inner") == 1
    host = replace(SHOWN, violation=replace(SLOWER, cause=Cause(kind=CauseKind.HOST)))
    assert total(scrape(collector([violated(host)])), "specmine_host_disturbed") == 1


def test_words_change_when_the_finding_does_not_with_every_figure() -> None:
    """Each other text is another series: a factor that wanders by a few per cent keeps the first one."""
    factors = [2.11, 2.2, 2.0, 2.5, 2.5]
    causes = [CauseKind.CODE] * 4 + [CauseKind.LOAD]
    view = [
        [violated(replace(SHOWN, violation=replace(SLOWER, factor=factor, cause=Cause(kind=cause, proven=True))))]
        for factor, cause in zip(factors, causes, strict=True)
    ]
    seen = SnapshotCollector(lambda: (view.pop(0), status()), series=2000)
    titles, series = [], []
    for _ in factors:
        found = scrape(seen)
        (info,) = (dict(each) for name, each in found if name == "specmine_violation_info")
        titles.append(info["title"].split(" since ")[0] + info["title"].split(",")[1])
        series.append({each for name, each in found if name == "specmine_violation"})
        assert total(found, "specmine_violation_factor_ratio") == factors[len(titles) - 1]
    assert titles == ["shop: checksum 2.1x slower new code"] * 3 + [
        "shop: checksum 2.5x slower new code",
        "shop: checksum 2.5x slower load",
    ]
    assert series == [series[0]] * 5


def test_violated_functions_are_never_folded_for_others() -> None:
    """Where the limit cuts, what is wrong is shown."""
    others = [reading(f"f{number:03}", calls=10_000) for number in range(200)]
    view = [others, [*others, violated(calls=3)]]
    seen = SnapshotCollector(lambda: (view.pop(0), status()), series=300)
    scrape(seen)
    found = scrape(seen)
    assert len(found) <= 300
    assert total(found, "specmine_violation") == 1


def with_levels() -> FunctionSnapshot:
    """Return a function with an asserted and an observed level."""
    level = Level(p50=Quantile(ns=76e3, low_ns=72e3, high_ns=80e3), p90=Quantile(ns=121e3))
    function = reading()
    stated = tuple(replace(each, expected=level, observed=level) for each in function.behaviours[:1])
    return replace(function, behaviours=stated, suspected=True, detectable=1.4)


def test_levels_are_ranges_beside_what_is_observed() -> None:
    """A range that is not known yet is absent; so is a quantile of too few calls."""
    found = scrape(collector([with_levels()]))
    bounds = {
        dict(each)["bound"]: value for (name, each), value in found.items() if name == "specmine_expected_seconds"
    }
    assert bounds == {"low": pytest.approx(72e-6), "high": pytest.approx(80e-6)}
    assert total(found, "specmine_observed_seconds", quantile="p90") == pytest.approx(121e-6)
    assert total(found, "specmine_suspected") == 1
    assert total(found, "specmine_detectable_ratio") == 1.4


def test_shares_and_paths_have_no_seconds() -> None:
    """What has no level shows none."""
    moved = replace(SLOWER, what=What.PATH, expected=Level(), observed=Level())
    found = scrape(collector([violated(replace(SHOWN, violation=moved))]))
    assert not any(name.startswith("specmine_violation_expected") for name, _ in found)
    assert total(found, "specmine_violation", what="path") == 1
