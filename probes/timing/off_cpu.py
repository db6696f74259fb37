"""Calls that left their CPU while they lasted: from the kernel's sparse counts to running, waiting and blocked."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from specmine.model.histogram import Histogram
from specmine.model.split import Split
from specmine.probes.kernel.maps import HashMap
from specmine.probes.kernel.structs import OFF_CPU, OFF_CPU_VALUE

_ROWS = np.dtype([("key", OFF_CPU), ("value", OFF_CPU_VALUE)])


class OffCpuCounts:
    """The absences of the open windows, by slot."""

    def __init__(self, kernel: HashMap) -> None:
        """Hold none yet."""
        self._kernel = kernel
        self._held: dict[int, list[NDArray[np.void]]] = {}

    def drain(self, slots: Mapping[int, int], mask: int) -> None:
        """Take them out of the kernel.

        Parameters
        ----------
        slots : mapping
            From what the cookies of one attachment have in common to the slot; others' absences are dropped.
        mask : int
            The bits of a cookie that they have in common.
        """
        keys, values = self._kernel.drain()
        if not len(keys):
            return
        rows = np.empty(len(keys), _ROWS)
        rows["key"], rows["value"] = keys, values
        of = rows["key"]["cookie"] & np.uint32(mask)
        for identity, slot in slots.items():
            own = rows[of == np.uint32(identity)]
            if len(own):
                self._held.setdefault(slot, []).append(own)

    def take(self, slot: int) -> NDArray[np.void]:
        """Return and forget what is held of a slot: rows of ``key`` and ``value``."""
        found = self._held.pop(slot, ())
        return np.concatenate(found) if found else np.empty(0, _ROWS)


def split_of(histogram: Histogram, rows: NDArray[np.void]) -> Split:
    """Return what timed calls did of their time.

    Parameters
    ----------
    histogram : Histogram
        All timed calls by duration.
    rows : ndarray
        Of those that left their CPU: ``key`` and ``value``.
    """
    key, value = rows["key"], rows["value"]
    left = Histogram.from_pairs(key["bucket"], value["calls"])
    # a call that ended while the counts were read may be in one of them only
    return Split(
        waiting_ns=Histogram.from_pairs(key["bucket"], value["waiting"]),
        blocked_ns=Histogram.from_pairs(key["bucket"], value["blocked"]),
        on_cpu=histogram.without(left) + Histogram.from_pairs(key["running"], value["calls"]),
    )


def by_path(rows: NDArray[np.void]) -> dict[int, NDArray[np.void]]:
    """Return the rows of each path id."""
    paths = rows["key"]["path"]
    return {int(path): rows[paths == path] for path in np.unique(paths)}
