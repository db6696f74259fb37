"""What a user may have meant who misspelt a name."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

_ALIKE = 0.6
_MOST = 3


def nearest(word: str, known: Iterable[str]) -> list[str]:
    """Return at most three known names that look like a word, the most similar first; case does not matter."""
    names = {each.lower(): each for each in known}
    return [names[each] for each in difflib.get_close_matches(word.lower(), list(names), _MOST, _ALIKE)]


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return ``; did you mean x or y?`` without the mark, '' if nothing is like the word."""
    found = nearest(word, known)
    return f"; did you mean {' or '.join(found)}" if found else ""
