"""Which programs are short of CPU time, since when, and what keeps them from it, in words. Pure."""

from __future__ import annotations

from typing import Any

from specmine.daemon.config.settings import SECOND
from specmine.daemon.controller.problems.short_of_cpu import cpus_of, others_of
from specmine.daemon.controller.state import ControllerState
from specmine.daemon.controller.violations.cpu_shortage import Shortage, in_words

from .timestamps import date_of


def shortage_in_words(one: Shortage, state: ControllerState) -> str:
    """Return what keeps a program from CPU time; who has the CPUs now, where nothing takes more than usual."""
    others, cpus = others_of(state.account), cpus_of(state)
    words = in_words(one, others, cpus)
    if one.throttled_more or one.stolen_more or not cpus or not state.account.host_rate or "other processes" in words:
        return words
    own = min(float(cpus), state.account.cpu_rate / SECOND)
    return f"{words}; other processes keep {others[0]:.1f}, watched programs {own:.1f} of {cpus} CPUs busy"


def shortages(state: ControllerState) -> dict[str, Shortage]:
    """Return what keeps programs from CPU time that run and are short of it, by name."""
    running = {each.called for each in state.lifetimes.values() if each.processes}
    return {name: one for name, one in sorted(state.shortages.items()) if one.since_ns and name in running}


def programs_short_of_cpu(state: ControllerState) -> list[dict[str, Any]]:
    """Return the programs that run and are short of CPU time, by name: since when, and why."""
    return [
        {"program": name, "since": date_of(state, one.since_ns), "text": shortage_in_words(one, state)}
        for name, one in shortages(state).items()
    ]
