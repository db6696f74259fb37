"""Where a function stands."""

from __future__ import annotations

from enum import StrEnum


class State(StrEnum):
    """Where a function stands in the flow of the first paper (figure of section 3), with what may stop it."""

    CANDIDATE = "candidate"
    WAITING = "waiting"
    TIMING = "timing"
    SINGLE = "single"
    EXPLAINING = "explaining"
    EXPLAINED = "explained"
    UNEXPLAINED = "unexplained"
    UNSTABLE = "unstable"
    REFUSED = "refused"
    EXCLUDED = "excluded"


FINISHED = frozenset({State.SINGLE, State.EXPLAINED, State.UNEXPLAINED})
