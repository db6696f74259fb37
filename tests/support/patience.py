"""How long tests wait for what must happen: long, since a test that passes does not wait for it."""

from __future__ import annotations

import os

FACTOR = float(os.environ.get("SPECMINE_TEST_PATIENCE", "1"))
"""Set ``SPECMINE_TEST_PATIENCE`` to wait longer on a slow machine."""


def patient(limit_s: float) -> float:
    """Return a time limit, longer by what the environment asks for."""
    return limit_s * FACTOR
