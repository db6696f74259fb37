"""Programs that exist only as numbers: functions with rates, paths and classes of durations."""

from __future__ import annotations

import zlib
from dataclasses import dataclass

from specmine.model.call_path import CallPath, Frame
from specmine.model.function import Function, Reason
from specmine.model.observation import Kind

MODULE = "app"


@dataclass(frozen=True, kw_only=True)
class Way:
    """One call path to a function, and its classes of durations: share, median in ns, sigma of the log."""

    callers: str
    weight: float
    classes: tuple[tuple[float, float, float], ...]
    complete: bool = True


@dataclass(frozen=True, kw_only=True)
class Planted:
    """A function of the simulated program."""

    name: str
    rate: float
    ways: tuple[Way, ...]
    own: float = 0.1
    """Share of the CPU time with it innermost."""
    inclusive: float = 0.2
    callers: tuple[tuple[str, float], ...] = ()
    loop_bottom: bool = False
    refused: tuple[Kind, Reason] | None = None
    drift: float = 0.0
    """Medians grow by this factor a second: never stable."""
    inner: float = 0.0
    """Recursive calls inside an outermost one."""

    @property
    def function(self) -> Function:
        return Function(
            build_id="b1d",
            offset=(sum(map(ord, self.name)) << 32 | zlib.crc32(self.name.encode())) * 64,
            name=self.name,
            module=MODULE,
            in_program=True,
        )


def path_of(way: Way, name: str) -> CallPath:
    """Return the path ``main;a;b`` with the function at its end."""
    frames = tuple(Frame(each, MODULE) for each in (*way.callers.split(";"), name))
    return CallPath(frames, complete=way.complete)


FAST, SLOW = (1.0, 20_000.0, 0.1), (1.0, 200_000.0, 0.1)
MIXED = ((0.6, 20_000.0, 0.1), (0.4, 200_000.0, 0.1))


def paper_program() -> tuple[Planted, ...]:
    """Return the example of the first paper: z is fast over b->c and mixed elsewhere."""
    z = Planted(
        name="z",
        rate=40_000.0,
        own=0.8,
        inclusive=0.8,
        ways=(
            Way(callers="main;a;b;c", weight=1.0, classes=(FAST,)),
            Way(callers="main;a;c", weight=1.0, classes=MIXED),
            Way(callers="main;c", weight=1.0, classes=MIXED),
        ),
        callers=(("c", 1.0),),
    )
    c = _caller("c", 40_000.0, "main;a", (("b", 0.3), ("a", 0.3), ("main", 0.4)))
    b = _caller("b", 13_000.0, "main;a", (("a", 1.0),))
    a = _caller("a", 26_000.0, "main", (("main", 1.0),))
    return z, c, b, a, Planted(name="main", rate=0.0, own=0.02, inclusive=1.0, ways=(_one("start"),))


def _one(callers: str) -> Way:
    return Way(callers=callers, weight=1.0, classes=((1.0, 50_000.0, 0.4),))


def _caller(name: str, rate: float, callers: str, edges: tuple[tuple[str, float], ...]) -> Planted:
    return Planted(name=name, rate=rate, own=0.05, inclusive=0.8, ways=(_one(callers),), callers=edges)


def unimodal(name: str = "smooth", rate: float = 2000.0, **more: object) -> Planted:
    """Return a function with one class of durations."""
    return Planted(name=name, rate=rate, ways=(_one("main"),), **more)  # type: ignore[arg-type]
