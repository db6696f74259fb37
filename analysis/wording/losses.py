"""What could not be used, in plain words."""

from __future__ import annotations

from specmine.model.text import escaped

_WORDS = {
    "unlearnt_calls": "calls that returned where no probe was yet",
    "abandoned_calls": "calls that an exception or longjmp left",
    "perturbed_calls": "calls that nested probes disturbed",
    "calls": "calls for which there was no room",
    "unsplit_calls": "calls whose time was not split",
    "modules": "files for which there was no room",
    "modules_evicted": "files that gave way to others",
    "unsent_events": "events that came late",
    "unsent_paths": "call paths that came late",
    "unsent_alarms": "alarms of the budget that came late",
}


def words_of(name: str, number: float = 2) -> str:
    """Return what a key of ``lost`` counts, for so many of it."""
    words = _WORDS.get(name, escaped(name).replace("_", " "))
    if number != 1:
        return words
    first, space, rest = words.replace("call paths", "call path").replace(" were ", " was ").partition(" ")
    return f"{first.removesuffix('s')}{space}{rest}"
