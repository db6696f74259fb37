"""What the statements about one function rest on: the observations that are retained, and the borders found."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from specmine.daemon.controller.function import FunctionState
from specmine.daemon.controller.phase import State
from specmine.model.histogram import Histogram
from specmine.model.observation import Observation

from .time_split import SplitCalls, split_calls


@dataclass(frozen=True, kw_only=True, eq=False)
class Data:
    """What the statements about a function rest on; sums over all windows only once somebody asks for them."""

    edges: tuple[int, ...]
    bias_ns: float
    uncertainty_ns: float
    held: tuple[Observation, ...]

    @cached_property
    def histogram(self) -> Histogram:
        """The calls of all windows that are held."""
        return Histogram.sum(one.histogram for one in self.held)

    @cached_property
    def split(self) -> SplitCalls | None:
        """What the same calls did of their time; None where this is not known."""
        return split_calls(self.held, self.bias_ns)


def data_of(function: FunctionState) -> Data | None:
    """Return the histogram that the classes cut, None while nothing is stable."""
    learned, history = function.inference.learned, function.history
    if learned is None or function.state in (State.CANDIDATE, State.WAITING, State.TIMING, State.UNSTABLE):
        return None
    result = function.explanation.result if history.paths else None
    held = history.paths if result is not None else history.timing or history.paths
    bias_ns = result.bias_ns if result is not None else learned.bias_ns
    return Data(
        edges=result.borders if result is not None else learned.edges,
        bias_ns=bias_ns,
        uncertainty_ns=max((one.uncertainty_ns for one in held), default=learned.uncertainty_ns),
        held=held,
    )
