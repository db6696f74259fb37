"""Panels: hosts drawn by lot, before anybody knows who is fast.

Hosts that answer first are those with the most load. A panel of them states levels that are wrong by a sixth. So hosts
are ordered by a hash, and a panel is the first of them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable


def drawn(names: Iterable[str], most: int, *, epoch: str = "") -> list[str]:
    """Return at most so many names, by lot: the same ones wherever and whenever this is asked.

    Parameters
    ----------
    names : iterable of str
    most : int
    epoch : str
        Another epoch draws anew.

    Notes
    -----
    If a name goes, the next in the order takes its place, and the others stay.
    """

    def lot(name: str) -> bytes:
        return hashlib.blake2b(f"{epoch}\0{name}".encode(), digest_size=16).digest()

    return sorted(sorted(set(names), key=lot)[:most])
