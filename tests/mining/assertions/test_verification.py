"""Checking assertions: what agrees holds, what differs is violated, what cannot be seen is unknown."""

from __future__ import annotations

from specmine.mining.assertions.expression import parse
from specmine.mining.assertions.verification import Expected, check
from specmine.mining.settings import MiningSettings
from specmine.mining.statistics.class_shares import Dispersion
from specmine.model.call_path import CallPath, Frame
from specmine.model.histogram import Histogram
from specmine.model.observation import Kind, Observation, PathHistogram
from specmine.model.verdict import Verdict

S = MiningSettings()
EDGES = [400]
QUICK = CallPath((Frame("main", "app"), Frame("b", "app"), Frame("z", "app")))
MIXED = CallPath((Frame("main", "app"), Frame("c", "app"), Frame("z", "app")))
CLAIMS = [
    Expected(formula=((),), class_calls=(8_000, 2_000)),
    Expected(formula=parse("b->z"), class_calls=(5_000, 0)),
    Expected(formula=parse("not b->z"), class_calls=(3_000, 2_000)),
]


def histogram(lower: int, upper: int) -> Histogram:
    """Return a histogram with so many calls in each class."""
    return Histogram.from_pairs([300, 400], [lower, upper])


def observation(quick: tuple[int, int], mixed: tuple[int, int], *, paths: bool = True) -> Observation:
    """Return an observation with these calls per class over the two paths."""
    own = (
        PathHistogram(path=QUICK, histogram=histogram(*quick)),
        PathHistogram(path=MIXED, histogram=histogram(*mixed)),
    )
    both = own[0].histogram + own[1].histogram
    return Observation(
        function="z",
        lifetime="l",
        kind=Kind.PATH if paths else Kind.TIME,
        start_ns=0,
        end_ns=1,
        histogram=both,
        calls=both.total,
        watched_ns=1,
        paths=own if paths else (),
    )


def verdicts(seen: Observation, noise: Dispersion | None = None) -> list[Verdict]:
    """Return the verdict of each claim."""
    return [c.verdict for c in check(seen, CLAIMS, EDGES, noise=noise or Dispersion(), settings=S)]


def test_equal_shares_hold() -> None:
    """Overall and for each behaviour, with the shares as evidence."""
    checks = check(observation((500, 0), (300, 200)), CLAIMS, EDGES, noise=Dispersion(), settings=S)
    assert [c.verdict for c in checks] == [Verdict.HOLDS] * 3
    assert checks[2].shares == checks[2].expected == (0.6, 0.4)
    assert Verdict.of_all(one.verdict for one in checks) is Verdict.HOLDS


def test_a_behaviour_may_be_violated_behind_equal_totals() -> None:
    """Two changes that cancel in the sum are seen on the paths."""
    checks = check(observation((400, 100), (400, 100)), CLAIMS, EDGES, noise=Dispersion(), settings=S)
    assert [c.verdict for c in checks] == [Verdict.HOLDS, Verdict.VIOLATED, Verdict.VIOLATED]
    assert Verdict.of_all(one.verdict for one in checks) is Verdict.VIOLATED
    assert checks[1].p_value < 1e-6
    assert checks[1].difference == 0.2


def test_without_paths_behaviours_are_unknown() -> None:
    """A timing observation speaks for the whole only."""
    seen = verdicts(observation((500, 0), (300, 200), paths=False))
    assert seen == [Verdict.HOLDS, Verdict.UNKNOWN, Verdict.UNKNOWN]


def test_few_calls_are_unknown() -> None:
    """Fewer than ``minimum_calls`` calls decide nothing."""
    seen = verdicts(observation((60, 0), (0, 60)))
    assert seen == [Verdict.UNKNOWN] * 3
    assert set(verdicts(observation((6, 0), (0, 6)))) == {Verdict.UNKNOWN}


def test_what_varies_anyway_is_no_violation_and_does_not_hold() -> None:
    """The same difference counts for less where windows are known to vary; whether it is a change is not known."""
    seen = observation((500, 0), (250, 250))
    assert verdicts(seen)[2] is Verdict.VIOLATED
    assert verdicts(seen, Dispersion(factor=15.0, freedom=30.0))[2] is Verdict.UNKNOWN


def test_a_significant_but_small_difference_holds() -> None:
    """0.40 and 0.43 differ beyond doubt in many calls, but by less than is worth stating."""
    seen = observation((50_000, 0), (28_500, 21_500))
    (_, _, mixed) = check(seen, CLAIMS, EDGES, noise=Dispersion(), settings=S)
    assert mixed.p_value < S.level / 3
    assert mixed.verdict is Verdict.HOLDS
