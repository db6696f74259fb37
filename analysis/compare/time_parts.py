"""Which kind of time calls take more of on one side: running, waiting for a CPU, blocked."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from specmine.analysis.lifetimes.lifetime import FunctionLifetime
from specmine.mining.regression.sample import mean

PARTS = ("running", "waiting", "blocked")
MOSTLY = 0.8
"""A part with such a share of the difference explains it."""


def time_document(base: Sequence[FunctionLifetime], new: Sequence[FunctionLifetime]) -> dict[str, Any] | None:
    """Return what calls do of their time on both sides, and what of the difference of the means each part has.

    Parameters
    ----------
    base, new : sequence of FunctionLifetime
        Windows of the two sides.

    Returns
    -------
    dict or None
        ``base`` and ``new`` have the mean time of a call in each part, in s, each lifetime once. ``of_difference`` has
        the share of each part. None where a side has no window of which it is known.
    """
    sides = [_mean_parts(side) for side in (base, new)]
    if sides[0] is None or sides[1] is None:
        return None
    more = sides[1] - sides[0]
    same_way = np.maximum(0.0, np.sign(more.sum()) * more)
    shares = same_way / same_way.sum() if same_way.sum() > 0 else np.zeros(len(PARTS))
    return {
        **{
            name: {f"{part}_seconds": each * 1e-9 for part, each in zip(PARTS, side.tolist(), strict=True)}
            for name, side in zip(("base", "new"), sides, strict=True)
            if side is not None
        },
        "of_difference": dict(zip(PARTS, shares.tolist(), strict=True)),
    }


def _mean_parts(windows: Sequence[FunctionLifetime]) -> NDArray[np.float64] | None:
    """Return the mean time of a call in each part, ns, shape (3,); None where it is not known."""
    sums: dict[tuple[str, str, str], NDArray[np.float64]] = defaultdict(lambda: np.zeros(4))
    for each in windows:
        if each.off_cpu_ns is not None and each.sample.calls:
            waiting, blocked = each.off_cpu_ns
            whole = mean(each.sample) * each.sample.calls
            run = each.build, each.host, each.lifetime
            sums[run] += (max(0.0, whole - waiting - blocked), waiting, blocked, each.sample.calls)
    if not sums:
        return None
    return np.asarray(np.mean([each[:3] / each[3] for each in sums.values()], axis=0), dtype=np.float64)
