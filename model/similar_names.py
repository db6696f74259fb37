"""Names that look like a word: what a user may have meant who misspelt one."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

_ALIKE = 0.6
_MOST = 3


def nearest(word: str, known: Iterable[str]) -> list[str]:
    """Return at most three known names that look like a word, the most similar first; case does not matter."""
    names = {each.lower(): each for each in known}
    return [names[each] for each in difflib.get_close_matches(word.lower(), list(names), _MOST, _ALIKE)]
