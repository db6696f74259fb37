"""If most functions of a host are slower at once, the host is disturbed; if a few are, it is not."""

from __future__ import annotations

from specmine.mining.detection.common_mode import CommonMode, with_surprise

SECOND = 10**9


def _run(slow: int, seconds: int, functions: int = 10) -> CommonMode:
    mode = CommonMode()
    for second in range(seconds):
        for number in range(functions):
            mode = with_surprise(mode, str(number), 5.0 if number < slow else 0.2, second * SECOND + number)
    return mode


def test_a_host_is_disturbed_if_most_of_its_functions_are() -> None:
    """Two looks ten seconds apart; one is not enough."""
    assert _run(10, 25).disturbed
    assert not _run(10, 12).disturbed


def test_four_of_ten_functions_are_not_the_host() -> None:
    """They may share a callee."""
    assert not _run(4, 60).disturbed


def test_few_functions_say_nothing_about_a_host() -> None:
    """Seven are too few."""
    assert not _run(7, 60, functions=7).disturbed


def test_a_host_recovers() -> None:
    """One look at which it is as usual ends it."""
    mode = _run(10, 25)
    for number in range(10):
        mode = with_surprise(mode, str(number), 0.1, 45 * SECOND + number)
    mode = with_surprise(mode, "0", 0.1, 56 * SECOND)
    assert not mode.disturbed
