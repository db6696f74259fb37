"""A panel is drawn by lot, and stays."""

from __future__ import annotations

from collections import Counter

from specmine.mining.fleet.panel import drawn

_HOSTS = [f"h{number}" for number in range(100)]


def test_the_same_hosts_are_drawn_everywhere() -> None:
    """In whatever order they are named."""
    assert drawn(_HOSTS, 30) == drawn(_HOSTS[::-1], 30)
    assert drawn(_HOSTS[:5], 30) == sorted(_HOSTS[:5])


def test_a_host_that_goes_is_replaced_and_the_others_stay() -> None:
    """One out, one in."""
    panel = drawn(_HOSTS, 30)
    left = [each for each in _HOSTS if each != panel[3]]
    assert len(set(drawn(left, 30)) & set(panel)) == 29


def test_every_host_is_as_likely() -> None:
    """Over many epochs, a binomial's spread."""
    times = Counter(host for epoch in range(400) for host in drawn(_HOSTS, 30, epoch=str(epoch)))
    assert max(abs(times[host] - 120) for host in _HOSTS) < 4.5 * (400 * 0.3 * 0.7) ** 0.5
