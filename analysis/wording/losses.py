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


def words_of(name: str) -> str:
    """Return what a key of ``lost`` counts."""
    return _WORDS.get(name, escaped(name).replace("_", " "))
