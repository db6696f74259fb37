"""What the observations of one function agree on: in their durations, and in their time on CPU."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from specmine.mining.borders.inference import Inference, ObservationBorders, infer_stable_borders
from specmine.mining.off_cpu.on_cpu import OnCpu
from specmine.mining.settings import MiningSettings
from specmine.model.observation import Kind, Observation


@dataclass(frozen=True, slots=True, kw_only=True)
class Inherited:
    """Where a statement comes from that this host did not learn but found true of its own windows."""

    build_id: str
    """The build that it was learned from."""
    hosts: int
    """Hosts of the fleet on which it was learned."""
    since_ns: int = 0
    """When this host took it for its own."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class InferenceState:
    """What the newest observations of one function agree on."""

    chain: Inference | None = None
    """What the last observations say; None while there is no observation."""
    kind: Kind = Kind.TIME
    """Kind of those observations."""
    borders: Mapping[Observation, ObservationBorders] = field(default_factory=dict)
    """Borders of each of those observations: every later inference needs them again."""
    learned: Inference | None = None
    """What the observations said when the function was found stable; None before."""
    inherited: Inherited | None = None
    """Whose ``learned`` is if other hosts learned it."""
    on_cpu: OnCpu | None = None
    """The same of its time on CPU; None while no call leaves its CPU."""


def with_chain(
    inference: InferenceState, observations: Sequence[Observation], kind: Kind, mining: MiningSettings
) -> InferenceState:
    """Infer stable borders from the newest observations of a kind, oldest first."""
    before = inference.chain if inference.kind is kind else None
    chain, borders = infer_stable_borders(observations, inference.borders, before, mining)
    return replace(inference, chain=chain, kind=kind, borders=borders)
