"""Which violations of a step are news for the store, and which of them must be there before anybody is told."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from specmine.daemon.config.settings import SECOND
from specmine.daemon.controller.state import ControllerState
from specmine.model.violation import Violation
from specmine.store import StoredViolation, stored

REFRESHED_EVERY_NS = 10 * SECOND
"""An open violation is written again this often at most: its observed level changes with each window."""
MOST_KNOWN = 500
"""Violations that are known to be in the store, beyond which those are forgotten that no function has any more."""
LISTED_NS = 7 * 86_400 * SECOND
"""Violations that closed longer ago stay in the store, but the daemon does not list them."""


def listed(held: Iterable[StoredViolation], utc_ns: int) -> tuple[Violation, ...]:
    """Return the violations of a store that are open or closed lately, oldest first, times in UTC."""
    return tuple(
        each.violation for each in held if each.closed_utc_ns is None or each.closed_utc_ns >= utc_ns - LISTED_NS
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class News:
    """What is to be written of one step."""

    records: tuple[StoredViolation, ...] = ()
    functions: tuple[str, ...] = ()
    """Keys of the functions of which one opened or closed."""


@dataclass(slots=True)
class ViolationRecord:
    """The violations as the store has them."""

    _known: dict[str, Violation] = field(default_factory=dict)
    _written_ns: dict[str, int] = field(default_factory=dict)

    def restore(self, violations: Iterable[Violation]) -> None:
        """Take what the store has, times on the clock of this boot."""
        self._known |= {each.id: each for each in violations}

    def news(self, state: ControllerState) -> News:
        """Return what the store does not have yet; it counts as written from now on."""
        records: list[StoredViolation] = []
        turned: list[str] = []
        for key, function in state.functions.items():
            if not function.violations.standing and not function.violations.closed:
                continue
            for each in function.violations.all:
                before = self._known.get(each.id)
                if before is each or before == each:
                    continue
                turn = before is None or before.state is not each.state
                if not turn and state.now_ns - self._written_ns.get(each.id, 0) < REFRESHED_EVERY_NS:
                    continue
                self._known[each.id] = each
                self._written_ns[each.id] = state.now_ns
                records.append(stored(each, state.utc_offset_ns))
                if turn:
                    turned.append(key)
        if len(self._known) > MOST_KNOWN:
            held = {each.id for function in state.functions.values() for each in function.violations.all}
            self._known = {id: each for id, each in self._known.items() if id in held}
            self._written_ns = {id: ns for id, ns in self._written_ns.items() if id in held}
        return News(records=tuple(records), functions=tuple(dict.fromkeys(turned)))
