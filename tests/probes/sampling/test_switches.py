"""The tracepoints of the scheduler are on while somebody needs them, once, and off as soon as nobody does."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from specmine.probes.kernel.structs import SWITCHES, SWITCHES_A_TIMED
from specmine.probes.sampling.switches import SwitchTracepoint


class Holder:
    """Stands for the process that holds the links."""

    def __init__(self) -> None:
        self.on: dict[int, str] = {}
        self.made = 0

    def tracepoint(self, name: str, program: str) -> int:
        """Attach it."""
        self.made += 1
        self.on[self.made] = name
        return self.made

    def close(self, number: int) -> None:
        """Detach it, if it is on."""
        self.on.pop(number, None)


def tracepoint() -> tuple[SwitchTracepoint, Holder, list[str], Any]:
    """Return one over a holder, what was emptied, and the kernel's counts."""
    holder, emptied, switches = Holder(), list[str](), np.zeros(1, SWITCHES)
    waits: Any = SimpleNamespace(drain=lambda: emptied.append("waits"))
    links: Any = holder
    return SwitchTracepoint(links, waits, np.ones(4, np.uint64), switches), holder, emptied, switches


def test_two_share_one_link() -> None:
    """Whoever comes second finds it attached, and what is open stays; who goes first leaves it on.

    Wake-ups are for who follows waits only.
    """
    point, holder, emptied, _ = tracepoint()
    point.want("profiler", on=True)
    assert [*holder.on.values()] == ["sched_switch"]
    point.want("waits", on=True)
    assert ([*holder.on.values()], emptied) == (["sched_switch", "sched_waking"], ["waits"])
    point.want("profiler", on=False)
    assert [*holder.on.values()] == ["sched_switch", "sched_waking"]
    point.want("profiler", on=True)
    point.want("waits", on=False)
    assert [*holder.on.values()] == ["sched_switch"]
    point.want("profiler", on=False)
    point.want("waits", on=False)
    point.want("waits", on=False)
    assert not holder.on


def test_wakeups_are_left_out_where_the_program_cannot_take_them() -> None:
    """Attached to them it would take a thread for the flag of a switch."""
    point, holder, _, _ = tracepoint()
    point.wakeups = False
    point.want("waits", on=True)
    assert [*holder.on.values()] == ["sched_switch"]


def test_it_comes_back_where_it_is_needed() -> None:
    """After the holder took everything off it is attached once; not where nobody needs it."""
    point, holder, _, _ = tracepoint()
    point.want("waits", on=True)
    holder.on.clear()
    point.resume()
    assert [*holder.on.values()] == ["sched_switch", "sched_waking"]
    point.want("waits", on=False)
    point.resume()
    assert not holder.on


def test_costs_are_those_of_all_passes() -> None:
    """One pass in so many is timed and stands for the others."""
    point, _, _, switches = tracepoint()
    switches["timed"], switches["ns"], switches["own"] = 10, 2000, 3
    own, everybody = point.passes_ns()
    assert everybody == pytest.approx(10 * SWITCHES_A_TIMED * 200)
    assert own == pytest.approx(3 * SWITCHES_A_TIMED * 200)
