"""How much the objects of the product hold, by class and attribute: what grows for ever shows by its name."""

from __future__ import annotations

import gc
from collections import Counter, deque
from collections.abc import Collection, Mapping

_HOLDERS = (dict, list, set, frozenset, tuple, deque)


def held() -> Counter[str]:
    """Return the number of entries in containers of all living objects of ours, by class and attribute.

    A mapping whose values are containers too counts a second time, with the entries of these.
    """
    gc.collect()
    found: Counter[str] = Counter()
    for each in gc.get_objects():
        kind = type(each)
        if not str(kind.__module__).startswith("specmine."):
            continue
        for name in _attributes(each):
            value = getattr(each, name, None)
            if not isinstance(value, _HOLDERS):
                continue
            found[f"{kind.__qualname__}.{name}"] += len(value)
            inner = value.values() if isinstance(value, Mapping) else ()
            found[f"{kind.__qualname__}.{name}[]"] += sum(len(one) for one in inner if isinstance(one, _HOLDERS))
    return found


def _attributes(one: object) -> Collection[str]:
    """Return the names of an object's attributes."""
    names = set(getattr(one, "__dict__", ()))
    for kind in type(one).__mro__:
        slots = kind.__dict__.get("__slots__", ())
        names.update([slots] if isinstance(slots, str) else slots)
    return names


def grown(before: Mapping[str, int], after: Mapping[str, int], *, most: int) -> dict[str, tuple[int, int]]:
    """Return what holds more entries than before by over so many."""
    return {name: (before.get(name, 0), now) for name, now in sorted(after.items()) if now - before.get(name, 0) > most}
