"""Texts that are given again for a while, the longer the more CPU time it took to make them."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable

MOST_SHARE = 0.05
"""CPU seconds a second that making one text again and again may take, however many ask for it."""
LONGEST_S = 5.0
"""A text is not given again for longer: scrapes are 15 s apart, and some want them each 5 s."""
MOST = 4
"""Texts that are kept at a time."""


class KeptTexts:
    """The last texts; for one thread at a time."""

    def __init__(self) -> None:
        """Begin without any."""
        self._kept: dict[Hashable, tuple[float, bytes]] = {}

    def text(self, key: Hashable, make: Callable[[], bytes]) -> bytes:
        """Return the text of a key, made anew unless the last one may be given again."""
        until_s, text = self._kept.get(key, (0.0, b""))
        if time.monotonic() < until_s:
            return text
        began_s = time.thread_time()
        text = make()
        took_s, now_s = time.thread_time() - began_s, time.monotonic()
        self._kept = {each: kept for each, kept in self._kept.items() if kept[0] > now_s}
        if len(self._kept) < MOST:
            self._kept[key] = now_s + min(took_s / MOST_SHARE, LONGEST_S), text
        return text
