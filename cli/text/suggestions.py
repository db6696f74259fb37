"""What a user may have meant who misspelt a name."""

from __future__ import annotations

from collections.abc import Iterable

from specmine.model.similar_names import nearest


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return ``; did you mean x or y?`` without the mark, '' if nothing is like the word."""
    return suggestion(nearest(word, known))


def suggestion(names: Iterable[str]) -> str:
    """Return the same for names that were found already."""
    found = list(names)
    return f"; did you mean {' or '.join(found)}" if found else ""
