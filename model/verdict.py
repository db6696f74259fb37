"""The answer to a check."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum


class Verdict(StrEnum):
    """Whether something is as asserted."""

    HOLDS = "holds"
    VIOLATED = "violated"
    UNKNOWN = "unknown"

    @staticmethod
    def of_all(verdicts: Iterable[str]) -> Verdict:
        """Return the verdict on a whole: violated if any part is, else holds if any part does, else unknown."""
        every = set(verdicts)
        return next((one for one in (Verdict.VIOLATED, Verdict.HOLDS) if one in every), Verdict.UNKNOWN)
