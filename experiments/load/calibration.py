"""How many units of a demand take a given CPU time here. CPU time is measured, so that competing tasks do not matter.

Units are calibrated at one millisecond and scaled. Two tries must agree: of several dozen calibrations one was wrong by
a factor of 1.85, during a slowdown of the virtual CPU that showed nowhere else. Where a CPU alternates between speeds,
two tries in a row may never agree, but two of several do. A known calibration is tried again before each use, and made
anew if it no longer holds.
"""

from __future__ import annotations

from collections.abc import MutableMapping

from specmine.experiments.types import MS, Context, Kind, Load, Step, Task
from specmine.model.function import Reason

from .tasks import Machine

_AT_NS = MS
_AGREE = 0.02
_TRIES = 4
_SCALE = 1000
"""Units are stored in thousandths a millisecond."""


def calibrate(
    wanted: tuple[tuple[Kind, int], ...],
    context: Context,
    machine: Machine,
    known: MutableMapping[str, int],
) -> tuple[dict[tuple[Kind, int], int], Reason | None]:
    """Return the units of each demand, or why there are none.

    Parameters
    ----------
    wanted : tuple of (kind, ns)
        The demands.
    known : mapping
        Thousandths of units a millisecond, by worker binary and kind; new ones are added.
    """
    units = {}
    for kind, ns in wanted:
        key = f"{machine.identity}:{kind}"
        rate = rate_of(kind, context.cpus[0], machine, known=known.get(key, 0) / _SCALE)
        if rate is None:
            known.pop(key, None)
            return {}, Reason(
                code="uncalibratable", text=f"the {kind} demand took a different time at each try", remedy="try later"
            )
        known[key] = round(rate * _SCALE)
        units[kind, ns] = max(1, round(known[key] / _SCALE * ns / MS))
    return units, None


def rate_of(kind: Kind, cpu: int, machine: Machine, *, known: float = 0.0) -> float | None:
    """Return the units a millisecond of CPU time, None if no two tries agree.

    Parameters
    ----------
    kind, cpu, machine
        What to calibrate, and where.
    known : float
        An earlier result; it stays if one try agrees with it. 0: there is none.
    """
    before = [known] if known else []
    for _ in range(_TRIES):
        task = Task(
            name="calibrate",
            steps=(Step(kind=kind, amount=_AT_NS),),
            sensor="calibrate",
            leads=True,
            cpu=cpu,
            seconds=2.0,
        )
        units, cpu_ns = machine.run(Load(tasks=(task,))).tasks[0].samples[-1, :2].tolist()
        rate = units * MS / max(1, cpu_ns)
        like = next((each for each in reversed(before) if abs(rate / each - 1) <= _AGREE), None)
        if like is not None:
            return float(like if like == known else (rate + like) / 2)
        before.append(rate)
    return None
