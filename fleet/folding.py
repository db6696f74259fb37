"""Windows folded into rows of five minutes or an hour: what a host sends, and what the centre holds for longer.

Folding is ``pooled``: counts and times add up. So a row says the same as all its windows together.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from specmine.model.batch import boot_of
from specmine.model.observation import Observation
from specmine.model.pooling import pooled

FIVE_MINUTES_NS = 300 * 10**9
HOUR_NS = 3_600 * 10**9


@dataclass(frozen=True, slots=True, kw_only=True)
class FoldedRow:
    """Windows of one function and lifetime as one."""

    observation: Observation
    windows: int
    """How many they are."""


def folded(rows: Iterable[FoldedRow], offsets: Mapping[str, int], slot_ns: int) -> list[FoldedRow]:
    """Return one row for each function, lifetime, kind and slot of time.

    Parameters
    ----------
    rows : iterable
    offsets : mapping
        Boot id to what must be added to its monotonic clock to get UTC, ns.
    slot_ns : int
        Length of a slot; a window belongs to the slot in which it ends.

    Returns
    -------
    list of FoldedRow
        In the order of function, kind, and time.
    """
    groups: dict[tuple[str, str, str, int], list[FoldedRow]] = {}
    for each in rows:
        seen = each.observation
        slot = (seen.end_ns + offsets.get(boot_of(seen.lifetime), 0)) // slot_ns
        groups.setdefault((seen.function, seen.kind.value, seen.lifetime, slot), []).append(each)
    return [
        FoldedRow(
            observation=group[0].observation if len(group) == 1 else pooled([each.observation for each in group]),
            windows=sum(each.windows for each in group),
        )
        for _, group in sorted(groups.items(), key=lambda item: (item[0][0], item[0][1], item[0][3], item[0][2]))
    ]
