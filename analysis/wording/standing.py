"""How a host stands, in a few words and counts: the same for the CLI and the page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from specmine.analysis.documents import Entry
from specmine.model.text import plural

from .states import FINISHED, group_of
from .violations import has_open_cause, is_open, is_problem

ALL_WELL = "All well"


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """What is wrong, and of how many functions what is known."""

    problems: tuple[Entry, ...] = ()
    """Open violations that are slower, without those that another open one explains."""
    changes: tuple[Entry, ...] = ()
    """The other open violations without an open cause."""
    changed: int = 0
    """Functions with an open violation."""
    holding: int = 0
    """Functions whose newest calls are as asserted."""
    undecided: int = 0
    """Functions of which the newest calls do not say whether they are as asserted, ..."""
    few: int = 0
    """... and those of them that had too few calls."""

    @property
    def asserted(self) -> int:
        """Functions of which something is asserted."""
        return self.changed + self.holding + self.undecided

    @property
    def title(self) -> str:
        """What a status begins with. All is well only where all is decided: unknown is no yes."""
        if self.problems:
            return plural(len(self.problems), "problem")
        if self.changes:
            return plural(len(self.changes), "change")
        if not self.asserted:
            return "Nothing asserted yet"
        if not self.holding:
            return "Nothing decided now"
        return "No problem seen" if self.undecided else ALL_WELL


def standing_of(functions: Sequence[Entry], violations: Sequence[Entry]) -> Standing:
    """Return how a host stands.

    Each function counts once. The violations decide which changed: a store has them from the moment they open, and the
    functions from up to some minutes before.

    Parameters
    ----------
    functions : sequence
        Those of a specification.
    violations : sequence
        Those of ``specmine.violations/1``.
    """
    standing = [each for each in violations if is_open(each)]
    causes = [each for each in standing if not has_open_cause(each, standing)]
    changed = {str(each.get("key")) for each in standing}
    groups = [
        group_of(each) for each in functions if each.get("state") in FINISHED and str(each.get("key")) not in changed
    ]
    holding = groups.count("holds")
    return Standing(
        problems=tuple(each for each in causes if is_problem(each)),
        changes=tuple(each for each in causes if not is_problem(each)),
        changed=len(changed),
        holding=holding,
        undecided=len(groups) - holding,
        few=groups.count("too few calls"),
    )
