"""Durations in words: what is not known is left out, what says nothing is not said."""

from __future__ import annotations

from specmine.analysis.wording.levels import normal, normal_range, present, seconds, sentence


def test_a_sentence_needs_a_median() -> None:
    """With too few calls for p99 the 90 % quantile stands in; without anything there is no sentence."""
    median, tail = {"seconds": 1e-5}, {"seconds": 3e-5}
    assert sentence({"p50": median, "p90": tail}) == "half of the calls within 10 us, 90 % within 30 us"
    assert sentence({"p50": median}) == "half of the calls within 10 us"
    assert sentence({}) == ""


def test_durations_below_the_uncertainty_are_told_as_under_a_bound() -> None:
    """What the probes add is known to some 100 ns only: no call takes 0 s, and none is told more exactly than that."""
    short = {"p50": {"seconds": 0.0}, "p99": {"seconds": 5e-6}}
    assert sentence(short, 1.2e-7) == "half of the calls under 120 ns, 99 % within 5 us"
    assert seconds(short, "p50", 1.2e-7) == "<120 ns"
    assert seconds({"p50": {"seconds": 5e-8}}, "p50", 1.2e-7) == "<170 ns"
    assert seconds(short, "p50") == "0 s"


def test_a_median_is_never_shown_above_a_quantile() -> None:
    """What a median is at most is above the p90 that was measured: then that is a bound, too."""
    told = sentence({"p50": {"seconds": 3.9e-6}, "p90": {"seconds": 5.5e-6}}, 3.95e-6)
    assert told == "half of the calls under 7.85 us, 90 % under 9.45 us"
    assert seconds({"p50": {"seconds": 3.9e-6}, "p99": {"seconds": 9e-6}}, "p99", 3.95e-6) == "9 us"


def test_a_range_that_excludes_nothing_is_not_shown() -> None:
    """Few windows may leave anything possible; then nothing is normal yet."""
    assert normal_range({"p50": {"seconds": 9e-6, "low": 0.0, "high": 0.02}}, "p50") == ""
    assert normal_range({"p50": {"seconds": 9e-6, "low": None, "high": None}}, "p50") == ""
    assert normal({"p50": {"seconds": 9e-6, "low": 8e-6, "high": 1e-5}, "p99": None}) == "median 8.0-10.0 us"


def test_the_newest_windows_win() -> None:
    """Observed durations are shown where there are some, else what was learned."""
    assert present({"quantiles": {"p50": 1}, "observed": {"p50": 2}}) == {"p50": 2}
    assert present({"quantiles": {"p50": 1}, "observed": None}) == {"p50": 1}
