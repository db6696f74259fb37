"""All that the controller knows of one function, as parts; each part has one room that renews it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

from specmine.mining.assertions.checks import Verification
from specmine.mining.assertions.explanation import Explanation
from specmine.model.batch import Lifetime
from specmine.model.function import Function, Reason
from specmine.model.inside.waits import Waits
from specmine.model.observation import Kind

from .call_counts import ProbeState
from .history import History
from .inference import InferenceState
from .phase import Phase, State
from .provisional import Provisional
from .sampling.profile import Profile
from .violations.function_violations import FunctionViolations


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """Which function it is, and how it was found."""

    function: Function
    hinted: bool = False
    """True if the user named it."""
    climbed: str = ""
    """Name of the finished function that it calls, '' if sampling found it."""
    descended: str = ""
    """Name of the unexplained function that calls it, likewise."""
    asked: Kind | None = None
    """What the fleet asks this host to observe of it; None: nothing."""
    programs: tuple[str, ...] = ()
    """Names of the programs in whose lifetimes it was observed, the first one first."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ExplanationState:
    """What call paths, or callees that calls reached, explain, and the job of the worker that is to find out."""

    result: Explanation | None = None
    observations: int = 0
    """Path observations that ``result`` rests on."""
    callees: int = 0
    """Callees of which it was known then whether calls reached them."""
    job: int | None = None
    """Number of the job that is running."""
    failures: int = 0
    """Jobs running that failed."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FunctionState:
    """One function; replaced as a whole at each change.

    ``call_counts`` writes ``probe``, ``history`` writes ``history``, ``inference`` the two parts of what follows from
    it, ``explanation`` what the worker said of it, ``violations`` what changed. ``transitions`` composes them and moves
    ``phase``.
    """

    identity: Identity
    phase: Phase = field(default_factory=Phase)
    profile: Profile = field(default_factory=Profile)
    probe: ProbeState = field(default_factory=ProbeState)
    history: History = field(default_factory=History)
    inference: InferenceState = field(default_factory=InferenceState)
    explanation: ExplanationState = field(default_factory=ExplanationState)
    verification: Verification = field(default_factory=Verification)
    violations: FunctionViolations = field(default_factory=FunctionViolations)
    waits: tuple[Waits, ...] = ()
    """Where its calls waited, in the newest phases in which that was followed; oldest first."""
    provisional: Provisional | None = None
    """What another build stated, until there is a statement of its own."""

    @property
    def function(self) -> Function:
        """Name and place of the function."""
        return self.identity.function

    @property
    def key(self) -> str:
        """Key of the function."""
        return self.identity.function.key

    @property
    def state(self) -> State:
        """Step at which the function stands."""
        return self.phase.state

    @property
    def reason(self) -> Reason | None:
        """Why it stands there."""
        return self.phase.reason

    def observed_in(self, lifetime: Lifetime | None) -> FunctionState:
        """Return the function with the program whose calls were observed; None: of an unknown lifetime."""
        programs = self.identity.programs
        if lifetime is None or lifetime.called in programs:
            return self
        return replace(self, identity=replace(self.identity, programs=(*programs, lifetime.called)))

    def home(self, running: Collection[Lifetime]) -> str:
        """Return the program whose calls alone are observed, '' if it is the only one or none is chosen yet.

        The windows of a library function must not alternate between programs that use it in different ways. The
        first one that was observed stays, as long as it runs.
        """
        names = {each.called for each in running}
        if self.function.in_program or len(names) < 2:
            return ""
        return next((name for name in self.identity.programs if name in names), "")

    def moved(self, state: State, reason: Reason | None, now_ns: int) -> FunctionState:
        """Return the function in a state; the time of entry stays if the state does."""
        phase = self.phase.moved(state, reason, now_ns)
        return self if phase is self.phase else replace(self, phase=phase)


def changed(now: Mapping[str, FunctionState], before: Mapping[str, FunctionState]) -> list[str]:
    """Return the keys of the functions that are new or were replaced, in order."""
    known = before.get  # this looks at all functions several times a turn
    return sorted([key for key, function in now.items() if known(key) is not function])
