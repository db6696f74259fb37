"""The phase of a function: its state, the reason for it, and what the safety gate refused."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from enum import StrEnum

from specmine.model.function import Reason
from specmine.model.observation import Kind


class State(StrEnum):
    """Steps from finding a function to explaining it (first paper, figure of section 3), and what may stop it."""

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


LEARNING = frozenset({State.WAITING, State.TIMING, State.EXPLAINING})
FINISHED = frozenset({State.SINGLE, State.EXPLAINED, State.UNEXPLAINED})


@dataclass(frozen=True, slots=True, kw_only=True)
class Phase:
    """Where one function stands."""

    state: State = State.CANDIDATE
    reason: Reason | None = None
    since_ns: int = 0
    """When the function entered this state."""
    refused: tuple[tuple[Kind, Reason], ...] = ()
    """What must not be collected of the function, by kind."""
    times_refused: int = 0
    """How often timing was refused for a reason that may be gone later."""
    again_ns: int = 0
    """When it is tried again, 0: not."""

    def moved(self, state: State, reason: Reason | None, now_ns: int) -> Phase:
        """Return the phase with this state; the time of entry stays if the state does."""
        if state is self.state and reason == self.reason:
            return self
        since_ns = self.since_ns if state is self.state else now_ns
        return replace(self, state=state, reason=reason, since_ns=since_ns, again_ns=0)

    def refusing(self, kind: Kind, reason: Reason) -> Phase:
        """Return the phase with one more refusal."""
        others = tuple(refusal for refusal in self.refused if refusal[0] is not kind)
        return replace(self, refused=tuple(sorted((*others, (kind, reason)), key=lambda refusal: refusal[0])))

    def trying_again(self, codes: Collection[str]) -> Phase:
        """Return the phase without the refusals of these codes."""
        return replace(self, refused=tuple(refusal for refusal in self.refused if refusal[1].code not in codes))

    def refusal(self, kind: Kind) -> Reason | None:
        """Return why this kind must not be collected, None if it may; a refused kind excludes more expensive ones."""
        order = list(Kind)
        for refused, reason in self.refused:
            if order.index(refused) <= order.index(kind):
                return reason
        return None
