"""The status begins with what is wrong, in few lines, with numbers."""

from __future__ import annotations

from specmine.analysis.wording.standing import Standing, standing_of
from specmine.cli.text.status import headline
from specmine.daemon.documents.violations import Context, Named, explained_by, listed
from specmine.model.level import Level, Quantile
from specmine.model.violation import Cause, CauseKind, Direction, Evidence, Violation, ViolationState, What
from tests.support.violations import SECOND, violation

NAMES = {
    "ab+0x10": Named(function="checksum", program="shop", module="shop"),
    "ab+0x20": Named(function="load", program="shop", module="shop"),
    "ab+0x30": Named(function="render", program="shop", module="shop"),
}


HOLDING = {"key": "cd+0x0", "state": "single", "verdict": "holds"}
AT = "1970-01-01T00:26:40.000Z"


def lines(*violations: Violation, holding: int = 40) -> list[str]:
    """Return the headline over some violations."""
    entries = listed(violations, Context(names=NAMES, explained=explained_by(violations)))
    return headline(standing_of([HOLDING] * holding, entries), "shop-03", AT, 80)


def test_what_is_wrong_comes_first() -> None:
    """How many problems, which functions, how much, since when, why, and what else is slower with it."""
    cause = violation("ab+0x10")
    through = violation("ab+0x20", because="ab+0x10", factor=1.5)
    faster = violation("ab+0x30", direction=Direction.FASTER, factor=0.8)
    said = lines(faster, through, cause)
    assert said[0].startswith("1 problem on shop-03") and said[0].endswith("1 Jan 1970, 00:26:40 UTC")
    assert len(said[0]) == 80
    assert said[2].startswith("checksum (shop)    2.1x slower") and said[2].endswith("median 160 us, normal 72-80 us")
    assert said[3] == "  since  00:01:40 (25 min)"
    assert said[4] == "  cause  load, likely"
    assert said[5].startswith("  also   load 1.5x slower")
    assert said[7].startswith("render (shop)    1.2x faster")
    assert "40 of 43 functions as asserted, 3 functions changed (above)." in said
    assert "Next: specmine violations checksum" in said


def test_new_call_paths_and_a_range_of_everything_tell_no_normal_range() -> None:
    """What changed of paths is where calls come from; a range a thousand times as wide as its quantile says nothing."""
    paths = violation("ab+0x10", what=What.PATH, direction=Direction.OTHER)
    assert lines(paths)[2] == "checksum (shop)    has new call paths"
    vague = Level(p50=Quantile(ns=76e3, low_ns=0.0, high_ns=4e9), calls=500, windows=5, lifetimes=1)
    assert lines(violation("ab+0x10", expected=vague))[2].endswith("median 160 us, normal 76 us")


def test_all_well_is_two_lines() -> None:
    """Nothing to read where nothing is wrong."""
    assert lines()[0].startswith("All well on shop-03")
    assert lines()[2] == "40 of 40 functions as asserted."


def test_what_is_not_decided_is_not_counted_as_asserted() -> None:
    """Too few calls say nothing, and what is not decided is not called well."""
    some = headline(Standing(holding=40, undecided=3), "shop-03", AT, 80)
    assert some[0].startswith("No problem seen on shop-03")
    assert some[2] == "40 of 43 functions as asserted, 3 not decided now."


def test_notices_stand_below_the_title_within_the_width() -> None:
    """The title is the first line of every status."""
    notice = "Short of CPU time: pg: other processes keep 1.9 of 2 CPUs busy, usually 0.2, and so on to a long line."
    said = headline(Standing(holding=1), "shop-03", AT, 80, [notice])
    assert said[0].startswith("All well on shop-03")
    assert said[1] == "" and said[2].startswith("Short of CPU time: pg") and said[3].startswith("      ")
    assert max(map(len, said)) <= 80


def test_what_outlives_its_cause_is_a_problem_of_its_own() -> None:
    """A violation is a line of another one only while that one is open."""
    cause = violation("ab+0x10", state=ViolationState.ACKNOWLEDGED, closed_ns=200 * SECOND, closed_by="ann")
    said = lines(cause, violation("ab+0x20", because="ab+0x10", factor=1.5))
    assert said[0].startswith("1 problem on shop-03")
    assert said[2].startswith("load (shop)    1.5x slower")


def test_nothing_asserted_is_not_well() -> None:
    """Where nothing is known yet nothing is called well."""
    assert lines(holding=0)[0].startswith("Nothing asserted yet on shop-03")


def test_an_improvement_is_no_problem() -> None:
    """It is told as a change."""
    assert lines(violation("ab+0x30", direction=Direction.FASTER, factor=0.8))[0].startswith("1 change on shop-03")


def test_more_work_by_as_many_calls_is_told_as_data_or_configuration() -> None:
    """A load that did not change is no answer; where it did change, that is told."""
    evidence = (Evidence(kind=CauseKind.LOAD, changed=False, text="351 calls/s, as usual"),)
    same = violation("ab+0x10", cause=Cause(kind=CauseKind.LOAD, text="It works longer.", evidence=evidence))
    assert lines(same)[4] == "  cause  load, likely: other data or another configuration"
    assert lines(violation("ab+0x10"))[4] == "  cause  load, likely"
