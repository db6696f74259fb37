"""Which alarms a user means, and how an acknowledgement is shown in the list of changes."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from specmine.mining.regression.acknowledgement import Acknowledgement
from specmine.mining.regression.comparison import Change
from specmine.model.errors import InputError
from specmine.model.globs import fits
from specmine.model.text import listed

Entry = Mapping[str, Any]
"""One comparison of a ``specmine.changes/1``."""
_MOST_NAMED = 5
OPEN_ALARMS = ("raised", "acknowledged")


def key_of(entry: Entry) -> str:
    """Return the text that identifies a comparison."""
    return "\0".join(str(entry[name]) for name in ("function", "module", "base", "new"))


def acknowledgement_of(entry: Entry) -> tuple[str, Acknowledgement | None]:
    """Return the key of a comparison, and what was acknowledged of it."""
    stored = entry.get("acknowledged")
    if stored is None:
        return key_of(entry), None
    direction = Change(entry["direction"])
    known = Acknowledgement(direction=direction, ratio=stored["ratio"], utc_ns=stored["utc_ns"], note=stored["note"])
    return key_of(entry), known


def acknowledgement_now(entry: Entry, utc_ns: int, note: str) -> Acknowledgement:
    """Return the acknowledgement of an alarm with its ratio of now."""
    return Acknowledgement(direction=Change(entry["direction"]), ratio=entry["ratio"], utc_ns=utc_ns, note=note)


def open_alarms(entries: Sequence[Entry]) -> list[Entry]:
    """Return the comparisons with an alarm, acknowledged or not."""
    return [each for each in entries if each["alarm"] in OPEN_ALARMS]


def matching_alarms(
    entries: Sequence[Entry], glob: str, build: str, *, undo: bool, violated: Iterable[str] = ()
) -> list[Entry]:
    """Return the comparisons whose alarm a user means.

    Parameters
    ----------
    entries : sequence
    glob : str
        Name, or glob, of functions; with or without module and parameters.
    build : str
        Beginning of the build-id of the new side; '' for all.
    undo : bool
        Those that are acknowledged, not those that are raised.
    violated : iterable of str
        Functions of which a violation is open: they are named too where nothing is of ``glob``.

    Raises
    ------
    InputError
        If there is none.
    """
    wanted = OPEN_ALARMS[1] if undo else OPEN_ALARMS[0]
    found = [
        each for each in entries if each["alarm"] == wanted and str(each["new"]).startswith(build) and _fits(each, glob)
    ]
    if not found:
        names = {str(each["function"]) for each in entries if each["alarm"] == wanted}
        if undo:
            raise InputError(f"no alarm that is acknowledged is of {glob}", remedy=_known(wanted, names))
        raise InputError(f"no open violation or alarm is of {glob}", remedy=_known("open", names | {*violated}))
    return found


def _known(what: str, names: Collection[str]) -> str:
    more = len(names) - _MOST_NAMED
    named = [*sorted(names)[:_MOST_NAMED], *([f"{more} more"] if more > 0 else [])]
    return f"{what} are: {listed(named)}" if named else f"nothing is {what}"


def shown_with(entry: Entry, known: Acknowledgement | None) -> dict[str, Any]:
    """Return a comparison as it is shown with, or without, an acknowledgement."""
    shown = None if known is None else {"ratio": known.ratio, "utc_ns": known.utc_ns, "note": known.note}
    return {**entry, "alarm": OPEN_ALARMS[known is not None], "acknowledged": shown}


def _fits(entry: Entry, glob: str) -> bool:
    return fits(str(entry["function"]), str(entry["module"]), glob)
