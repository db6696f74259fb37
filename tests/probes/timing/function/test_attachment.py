"""An attachment knows how long it was on, and whether calls may have gone uncounted."""

from __future__ import annotations

from specmine.probes.timing.function.attachment import Attachment

SECOND = 1_000_000_000


def test_time_on_is_added_up() -> None:
    """Phases count, pauses do not."""
    attachment = Attachment()
    for start in (10, 20):
        attachment.switch_on(start * SECOND, 0)
        attachment.clear((start + 3) * SECOND)
    attachment.switch_on(30 * SECOND, 0)
    assert attachment.watched_until(31 * SECOND) == 7 * SECOND


def test_coming_back_misses_calls() -> None:
    """The first time does not, nor does one that never came on; what is missed is told once."""
    attachment = Attachment()
    attachment.begin(1)
    attachment.clear(5 * SECOND)
    attachment.begin(2)
    attachment.switch_on(10 * SECOND, 0)
    assert not attachment.take_missed()
    attachment.clear(12 * SECOND)
    assert not attachment.take_missed()
    attachment.begin(3)
    assert attachment.take_missed()
    assert not attachment.take_missed()
