"""How many parts the calls of a lifetime are cut into, and which windows are joined to a part."""

from __future__ import annotations

import numpy as np

from .sums import Numbers


def shared(parts: int, calls: list[int]) -> list[int]:
    """Divide a number of parts by the sizes of series: at least one each, the largest remainders rounded up."""
    if not calls:
        return []
    exact = [parts * each / sum(calls) for each in calls]
    whole = [max(1, int(each)) for each in exact]
    for place in sorted(range(len(calls)), key=lambda at: int(exact[at]) - exact[at]):
        if sum(whole) < parts:
            whole[place] += 1
    return [min(number, each) for number, each in zip(whole, calls, strict=True)]


def joined_windows(windows: int, counts: tuple[Numbers, Numbers], least: int, minimum_calls: int) -> Numbers:
    """Return the part of each window.

    Windows are joined until each part has ``minimum_calls``, unless fewer than ``least`` parts are left: then
    these are of equal length.
    """
    calls = np.zeros(windows, dtype=np.int64)
    calls[counts[0]] = counts[1]
    if windows <= least or calls.min() >= minimum_calls:
        return np.arange(windows)
    parts = np.zeros(windows, dtype=np.int64)
    number = held = 0
    for window, more in enumerate(calls.tolist()):
        parts[window] = number
        held += more
        if held >= minimum_calls:
            number, held = number + 1, 0
    if held < minimum_calls and number > 0:
        parts[parts == number] = number - 1
    if int(parts[-1]) + 1 < least:
        return np.arange(windows) * least // windows
    return parts
