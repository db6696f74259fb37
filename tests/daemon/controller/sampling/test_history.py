"""What samples usually find of each function, and what they find since a moment."""

from __future__ import annotations

import math

import pytest
from scipy import stats

from specmine.daemon.config.settings import SECOND
from specmine.daemon.controller.sampling.burst import Burst
from specmine.daemon.controller.sampling.history import KEPT_NS, MOST_KEPT, SampleHistory, with_burst

HERTZ, EVERY_S, LENGTH_S = 49, 10, 2.0


def burst(at_s: float, cpus: dict[str, float]) -> Burst:
    """Return a burst that ended at a moment."""
    cpus_s = {key: LENGTH_S * each for key, each in cpus.items()}
    return Burst(cpus_s=cpus_s, seconds=LENGTH_S, ended_ns=round(at_s * SECOND), hertz=HERTZ)


def gone_on(history: SampleHistory, first: int, last: int, cpus: dict[str, float], **how: bool) -> SampleHistory:
    """Return a history with bursts each ten seconds that find the same."""
    for at_s in range(first, last, EVERY_S):
        history = with_burst(history, burst(at_s, cpus), disturbed=how.get("disturbed", False))
    return history


def test_what_is_usual_is_older_than_what_may_be_a_change() -> None:
    """The newest bursts are kept apart: nothing of them is usual yet."""
    history = gone_on(SampleHistory(), 0, 600, {"f": 0.2, "g": 0.1})
    assert history.usual == pytest.approx({"f": 0.2, "g": 0.1})
    history = gone_on(history, 600, 600 + KEPT_NS // SECOND, {"f": 0.8, "g": 0.1})
    assert history.usual["f"] == pytest.approx(0.2)
    grown = history.growth_since(590 * SECOND)
    assert (grown["f"].cpus, grown["f"].usual_cpus) == pytest.approx((0.8, 0.2))
    assert grown["f"].factor == pytest.approx(4.0)
    assert grown["f"].evidence > 50
    assert grown["g"].evidence == pytest.approx(0.0, abs=1e-9)
    later = gone_on(history, 750, 1_500, {"f": 0.8, "g": 0.1})
    assert later.usual["f"] > 0.5


def test_while_a_violation_is_open_nothing_becomes_usual_and_what_was_found_is_forgotten_after_it() -> None:
    """However long it lasts."""
    history = gone_on(SampleHistory(), 0, 600, {"f": 0.2})
    history = gone_on(history, 600, 5_000, {"f": 0.8}, disturbed=True)
    assert history.usual["f"] == pytest.approx(0.2)
    assert len(history.newest) <= MOST_KEPT
    history = gone_on(history, 5_000, 5_020, {"f": 0.2})
    assert [each.ended_ns // SECOND for each in history.newest] == [5_000, 5_010]


def test_functions_that_are_known_no_more_are_forgotten() -> None:
    """As a build that ran once; those that are known stay, however small."""
    history = gone_on(SampleHistory(), 0, 600, {"f": 0.2, "old": 0.1})
    history = with_burst(history, burst(600, {"f": 0.2}), {"f", "other"}, disturbed=False)
    assert set(history.usual) == {"f"}


def test_nothing_is_said_before_anything_is_usual_nor_of_moments_without_bursts() -> None:
    """A function that was never found has grown all the more."""
    history = gone_on(SampleHistory(), 0, 100, {"f": 0.2})
    assert history.growth_since(0) == {}
    history = gone_on(history, 100, 600, {"f": 0.2})
    assert history.growth_since(599 * SECOND) == {}
    grown = with_burst(history, burst(600, {"new": 0.5}), disturbed=True).growth_since(595 * SECOND)
    assert grown["new"].usual_cpus == 0.0
    assert grown["new"].evidence > 10


@pytest.mark.parametrize(("before", "after"), [(0.05, 0.2), (0.3, 0.4), (0.5, 0.55)])
def test_evidence_is_the_ratio_of_binomial_likelihoods(before: float, after: float) -> None:
    """By scipy: given the sum of the counts, the one after the change is binomial."""
    history = gone_on(SampleHistory(), 0, 600, {"f": before})
    history = gone_on(history, 600, 700, {"f": after}, disturbed=True)
    seconds, count, usual = 10 * LENGTH_S, 10 * LENGTH_S * HERTZ * after, history.seconds * HERTZ * before
    total, part = count + usual, seconds / (seconds + history.seconds)

    def log_likelihood(share: float) -> float:
        # of counts that need not be whole numbers: the beta law has the same terms in the share
        return float(stats.beta.logpdf(share, count + 1, usual + 1))

    wanted = log_likelihood(count / total) - log_likelihood(part)
    assert history.growth_since(598 * SECOND - SECOND)["f"].evidence == pytest.approx(wanted, rel=1e-9)
    assert math.isfinite(wanted)
