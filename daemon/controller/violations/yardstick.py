"""The yardstick of a function: how its calls were when what is asserted was learned. It never moves by itself.

It settles for half an hour: windows ever further apart, so that it knows how they differ in the long run. While
something is suspected or open it stays as it is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from specmine.daemon.config.settings import SECOND
from specmine.mining.levels.estimate import level_of
from specmine.mining.levels.window import Window
from specmine.model.level import Level
from specmine.model.observation import Observation

from .asserted import TRUE, Asserted
from .usual import Usual, with_observation

SETTLING_NS = 1_800 * SECOND
"""A yardstick takes up windows for so long."""
FIRST_SPACING_NS = 5 * SECOND
"""Least distance of the windows that it takes up; twice as far whenever it holds the most."""
MOST_WINDOWS = 32
LEAST_WINDOWS = 5
"""Windows from which there is a yardstick."""
LEAST_CALLS = 100
"""A window of fewer timed calls does not count."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Settling:
    """The windows that a yardstick is made of, while it settles."""

    windows: Mapping[str, tuple[Window, ...]] = field(default_factory=dict)
    """By the expression whose calls they hold, oldest first."""
    spacing_ns: int = FIRST_SPACING_NS
    last_ns: int = 0
    """End of the newest."""
    began_ns: int = 0

    @property
    def number(self) -> int:
        """Windows of all calls."""
        return len(self.windows.get(TRUE, ()))


@dataclass(frozen=True, slots=True, kw_only=True)
class Disturbance:
    """A violation that was open while a yardstick was learned."""

    violation: str
    """Its id."""
    function: str
    """The function that was slower, as people read it."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Yardstick:
    """What later windows of a function are measured by."""

    build_id: str
    """The build that it was learned from."""
    since_ns: int
    """When it was begun, or when a person acknowledged a change."""
    asserted: Asserted = field(default_factory=Asserted)
    levels: Mapping[str, Level] = field(default_factory=dict)
    """Expression to the level of its calls; ``true``: all calls."""
    usual: Usual = field(default_factory=Usual)
    inherited_ns: int | None = None
    """Since when another build is judged by it; None: it is this build's own."""
    lifetimes: tuple[str, ...] = ()
    """Lifetimes that it was learned from, the newest last."""
    during: tuple[Disturbance, ...] = ()
    """What was slower in the same program meanwhile. While there is any, faster calls are no violation."""
    settling: Settling | None = None
    """None once it has settled."""

    @property
    def level(self) -> Level:
        """The level of all calls."""
        return self.levels.get(TRUE, Level())

    @property
    def ready(self) -> bool:
        """True if something can be measured by it."""
        return self.level.p50 is not None and self.level.windows >= LEAST_WINDOWS

    def settled(self) -> Yardstick:
        """Return it as it is kept: it takes up no more windows."""
        return replace(self, settling=None)

    def shifted(self, by_ns: int) -> Yardstick:
        """Return it with its times on a clock that is ahead by so much, settled."""
        inherited_ns = None if self.inherited_ns is None else self.inherited_ns + by_ns
        return replace(self.settled(), since_ns=self.since_ns + by_ns, inherited_ns=inherited_ns)


def begun(build_id: str, asserted: Asserted, observations: Sequence[Observation], now_ns: int) -> Yardstick:
    """Return a new yardstick from observations, oldest first; it goes on settling."""
    first_ns = observations[0].start_ns if observations else now_ns
    empty = Yardstick(
        build_id=build_id, since_ns=now_ns, asserted=asserted, settling=Settling(began_ns=first_ns, spacing_ns=0)
    )
    made = empty
    for one in observations:
        made = _taken(made, one)
    made = _measured(made)
    settling = made.settling
    return made if settling is None else replace(made, settling=replace(settling, spacing_ns=FIRST_SPACING_NS))


def settled_by(yardstick: Yardstick, observation: Observation) -> Yardstick:
    """Return a yardstick after one more window of an unchanged program."""
    settling = yardstick.settling
    if settling is None:
        return yardstick
    if observation.end_ns - settling.began_ns >= SETTLING_NS:
        return _measured(yardstick).settled()
    if observation.end_ns - settling.last_ns < settling.spacing_ns:
        return yardstick
    taken = _taken(yardstick, observation)
    if taken is yardstick or taken.settling is None:
        return taken
    number = taken.settling.number
    # a level takes some ms to estimate; more windows change it less and less
    return _measured(taken) if number <= 8 or number % 4 == 0 else taken


def with_asserted(yardstick: Yardstick, asserted: Asserted, observations: Sequence[Observation]) -> Yardstick:
    """Return a yardstick for other classes or behaviours; the level of all calls stays as it is."""
    if yardstick.asserted == asserted:
        return yardstick
    known = {name: level for name, level in yardstick.levels.items() if name in asserted.expressions}
    missing = [name for name in asserted.expressions if name not in known]
    levels = known | {name: level_of(asserted.windows(observations, name)) for name in missing}
    settling = yardstick.settling
    if settling is not None:
        windows = {name: settling.windows.get(name, ()) for name in asserted.expressions}
        windows |= {name: asserted.windows(observations, name)[-MOST_WINDOWS:] for name in missing}
        settling = replace(settling, windows=windows)
    return replace(yardstick, asserted=asserted, levels=levels, settling=settling)


def _taken(yardstick: Yardstick, observation: Observation) -> Yardstick:
    settling = yardstick.settling
    if settling is None or observation.timed < LEAST_CALLS:
        return yardstick
    windows = {
        name: (*settling.windows.get(name, ()), *yardstick.asserted.windows((observation,), name))
        for name in yardstick.asserted.expressions
    }
    spacing_ns = settling.spacing_ns
    if len(windows[TRUE]) > MOST_WINDOWS:
        windows = {name: held[1::2] for name, held in windows.items()}
        spacing_ns *= 2
    lifetimes = tuple(one for one in yardstick.lifetimes if one != observation.lifetime)
    return replace(
        yardstick,
        usual=with_observation(yardstick.usual, observation),
        lifetimes=(*lifetimes, observation.lifetime)[-MOST_WINDOWS:],
        settling=replace(settling, windows=windows, spacing_ns=spacing_ns, last_ns=observation.end_ns),
    )


def _measured(yardstick: Yardstick) -> Yardstick:
    settling = yardstick.settling
    if settling is None:
        return yardstick
    return replace(yardstick, levels={name: level_of(held) for name, held in settling.windows.items()})
