"""One factor for how long our processes wait for each other: more than 1 where the CPU is emulated. Standard library.

It lengthens time limits only, nothing that is measured or decided. The factor is read once, from the environment,
because the holder and the reader of binaries need it before they are told anything.
"""

from __future__ import annotations

import math
import os

VARIABLE = "SPECMINE_TIME_SCALE"
LARGEST = 100.0


def time_scale(text: str) -> float:
    """Return the factor that a text names, from 1 to 100; 1 for what is no number, as limits are never shortened."""
    try:
        factor = float(text)
    except ValueError:
        return 1.0
    return min(LARGEST, max(1.0, factor)) if math.isfinite(factor) else 1.0


TIME_SCALE = time_scale(os.environ.get(VARIABLE, ""))
