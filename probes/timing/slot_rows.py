"""Rows that the kernel counts in a hash by cookie, taken out and held by slot until a window is cut."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from specmine.probes.kernel.maps import HashMap


class SlotRows:
    """The rows of the open windows, by slot: records of ``key``, which has a field ``cookie``, and ``value``."""

    def __init__(self, kernel: HashMap) -> None:
        """Hold none yet."""
        self._kernel = kernel
        self._dtype = np.dtype([("key", kernel.key), ("value", kernel.value)])
        self._held: dict[int, list[NDArray[np.void]]] = {}

    def drain(self, slots: Mapping[int, int], mask: int) -> None:
        """Take them out of the kernel.

        Parameters
        ----------
        slots : mapping
            From what the cookies of one attachment have in common to the slot; rows of others are dropped.
        mask : int
            The bits of a cookie that they have in common.
        """
        keys, values = self._kernel.drain()
        if not len(keys):
            return
        rows = np.empty(len(keys), self._dtype)
        rows["key"], rows["value"] = keys, values
        of = keys["cookie"] & np.uint32(mask)
        for identity in sorted(slots.keys() & set(of.tolist())):
            self._held.setdefault(slots[identity], []).append(rows[of == np.uint32(identity)])

    def take(self, slot: int) -> NDArray[np.void]:
        """Return and forget what is held of a slot."""
        found = self._held.pop(slot, ())
        if len(found) == 1:
            return found[0]
        return np.concatenate(found) if found else np.empty(0, self._dtype)
