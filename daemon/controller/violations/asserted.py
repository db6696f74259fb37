"""What is asserted of a function, as far as windows are measured by it: classes, and behaviours by call paths."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from specmine.mining.assertions.behaviour_windows import windows_of_formula
from specmine.mining.assertions.explanation import Explanation
from specmine.mining.assertions.expression import Formula, shared_names
from specmine.mining.borders.inference import Inference
from specmine.mining.levels.window import Window
from specmine.model.buckets import shifted_edges
from specmine.model.observation import Observation

TRUE = "true"
"""The expression of all calls."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """The calls of one behaviour."""

    expression: str
    formula: Formula


@dataclass(frozen=True, slots=True, kw_only=True)
class Asserted:
    """Classes and behaviours; one of each where nothing distinguishes calls."""

    edges: tuple[int, ...] = ()
    """First bucket of each class but the lowest."""
    bias_ns: float = 0.0
    """What the probes added where they were learned."""
    behaviours: tuple[Claim, ...] = ()
    """If there are several; none of them is ``true``."""
    shared: tuple[str, ...] = ()
    """Names that the formulas show with their module."""

    @property
    def expressions(self) -> tuple[str, ...]:
        """All calls, then each behaviour."""
        return (TRUE, *(claim.expression for claim in self.behaviours))

    def edges_at(self, bias_ns: float) -> tuple[int, ...]:
        """Return the edges for durations with another bias."""
        return shifted_edges(self.edges, self.bias_ns, bias_ns)

    def windows(self, observations: Sequence[Observation], expression: str) -> tuple[Window, ...]:
        """Return the windows of the calls that an expression is about."""
        formula = next((claim.formula for claim in self.behaviours if claim.expression == expression), ((),))
        held = [one for one in observations if one.timed]
        return windows_of_formula(held, formula, frozenset(self.shared))


def asserted_by(learned: Inference | None, result: Explanation | None) -> Asserted:
    """Return what the inference of a stable function, and the explanation by call paths, assert."""
    if result is not None:
        several = len(result.behaviours) > 1
        return Asserted(
            edges=result.borders,
            bias_ns=result.bias_ns,
            behaviours=tuple(
                Claim(expression=each.expression, formula=each.formula) for each in result.behaviours if several
            ),
            shared=tuple(sorted(shared_names(each.path for each in result.paths))),
        )
    if learned is None:
        return Asserted()
    return Asserted(edges=learned.edges, bias_ns=learned.bias_ns)
