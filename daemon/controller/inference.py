"""What the observations of one function say: stable borders, time on CPU, and whether the assertion still holds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from specmine.mining.assertions.explanation import JobResult
from specmine.mining.borders.inference import Check, Conclusion, Found, borders_of, check, conclude, no_finer
from specmine.mining.off_cpu import on_cpu
from specmine.mining.off_cpu.on_cpu import OnCpu
from specmine.mining.settings import MiningSettings
from specmine.model.observation import Kind, Observation


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class InferenceState:
    """What the newest observations of one function agree on."""

    chain: Conclusion | None = None
    """What the last observations say; None while there is no observation."""
    kind: Kind = Kind.TIME
    """Kind of those observations."""
    borders: Mapping[Observation, Found] = field(default_factory=dict)
    """Borders of each of those observations: every later inference needs them again."""
    learned: Conclusion | None = None
    """What the observations said when the function was found stable; None before."""
    on_cpu: OnCpu | None = None
    """The same of its time on CPU; None while no call leaves its CPU."""


def with_on_cpu(
    inference: InferenceState, observations: Sequence[Observation], mining: MiningSettings
) -> InferenceState:
    """Infer what the newest observations of a kind say of time on CPU."""
    return replace(inference, on_cpu=on_cpu.observed(inference.on_cpu, observations, mining))


def with_chain(
    inference: InferenceState, observations: Sequence[Observation], kind: Kind, mining: MiningSettings
) -> InferenceState:
    """Infer stable borders from the newest observations of a kind, oldest first."""
    borders: dict[Observation, Found] = {}
    whole = []
    for retained in observations:
        observation = retained
        whole.append(observation)
        known = inference.borders.get(retained)
        borders[retained] = borders_of(observation, no_finer(mining, [observation])) if known is None else known
    before = inference.chain if inference.kind is kind else None
    chain = conclude(whole, tuple(borders.values()), before, mining)
    return replace(inference, chain=chain, kind=kind, borders=borders)


@dataclass(frozen=True, slots=True, kw_only=True)
class VerificationState:
    """Whether the newest observations agree with the assertion of one function."""

    checks: tuple[Check, ...] = ()
    """The last check of each thing asserted."""
    checked_ns: int | None = None
    violations: int = 0
    """Observations running that violate the assertion."""

    @property
    def wrong(self) -> int:
        """Number of things asserted that the last check found violated."""
        return sum(one.verdict == "violated" for one in self.checks)


def with_check(
    verification: VerificationState,
    observation: Observation,
    inference: InferenceState,
    result: JobResult | None,
    mining: MiningSettings,
) -> VerificationState:
    """Check an observation against what is asserted.

    Parameters
    ----------
    verification : VerificationState
    observation : Observation
    inference : InferenceState
        After this observation.
    result : JobResult, optional
        What call paths explain.
    mining : MiningSettings
    """
    if observation.timed < mining.minimum_calls:
        return replace(verification, checked_ns=observation.end_ns)
    if inference.learned is None or inference.chain is None:
        return verification
    checks = check(observation, result, inference.learned, inference.chain.chain > 0, mining)
    now = VerificationState(checks=checks, checked_ns=observation.end_ns)
    return replace(now, violations=verification.violations + 1) if now.wrong else now
