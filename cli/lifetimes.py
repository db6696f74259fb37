"""The lifetimes that compare, check and report speak of, and which of them a user means."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from specmine.mining.change.sample import Floats, Sample
from specmine.mining.change.verdicts import LifetimeSample
from specmine.mining.environment import Environment
from specmine.probes.errors import InputError

from .reading import is_store

EVERYTHING = "all"
"""Name of the function where a file names none."""
PREFIX = 256
"""So many durations of each lifetime are kept in their order."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Observed:
    """One function in one lifetime."""

    function: str
    module: str
    build: str
    """Build-id, or the label in a CSV."""
    label: str | None
    host: str
    lifetime: str
    start_ns: int
    """When it began, UTC; 0: unknown."""
    sample: Sample
    rate: float | None = None
    """Calls per watched second."""
    warmup: int = 0
    """Calls left out as warm-up."""
    path: tuple[str, ...] = ()
    """The call path that these calls came over, if they are kept apart by path."""
    window: int = 0
    """Start of the window, if they are kept apart by window."""
    prefix: Floats | None = None
    """The first durations in their order, ns, if the source has an order."""
    kept: Floats | None = None
    """A fair sample of the durations, ns, in any order; at most ``PREFIX``."""
    environment: Environment | None = None
    """What was known of the host when it ended."""

    @property
    def key(self) -> tuple[str, str]:
        """What makes it the same function in another build."""
        return self.function, self.module

    @property
    def shown(self) -> str:
        """The build as people call it."""
        return self.label or self.build[:12]

    def as_lifetime(self) -> LifetimeSample:
        """Return what the comparison needs."""
        return LifetimeSample(lifetime=self.lifetime, host=self.host, sample=self.sample, rate=self.rate)


@dataclass(frozen=True, slots=True, kw_only=True)
class Skipped:
    """Lines of a file that could not be used."""

    lines: int = 0
    first: str = ""


def read_lifetimes(path: Path, *, skip_bad: bool = False, warmup: bool = True) -> tuple[list[Observed], Skipped]:
    """Read a store, or recorded durations as CSV (``-``: standard input).

    Raises
    ------
    InputError
        If the file is neither, or a line is bad and ``skip_bad`` is not given.
    """
    if str(path) != "-" and is_store(path):
        from .stored import from_store  # noqa: PLC0415

        return from_store(path), Skipped()
    from .recorded import from_csv  # noqa: PLC0415

    return from_csv(path, skip_bad=skip_bad, warmup=warmup)


def side(observed: Sequence[Observed], wanted: str, what: str) -> list[Observed]:
    """Return the lifetimes that a user means: by label, beginning of a build-id, host or lifetime.

    Raises
    ------
    InputError
        If it names nothing, or build-ids of which several begin so.
    """
    exact = [each for each in observed if wanted in (each.label, each.build)]
    if exact:
        return exact
    builds = sorted({each.build for each in observed if wanted and each.build.startswith(wanted)})
    if len(builds) > 1:
        raise InputError(f"{len(builds)} builds begin with {wanted}", remedy="give more digits")
    if builds:
        return [each for each in observed if each.build == builds[0]]
    for field in ("host", "lifetime"):
        found = [each for each in observed if getattr(each, field) == wanted]
        if found:
            return found
    known = sorted({each.shown for each in observed})
    seen = ", ".join(known[:8]) + (", ..." if len(known) > 8 else "")
    raise InputError(f"{what} names no build, host or lifetime: {wanted!r}", remedy=f"builds there: {seen or 'none'}")
