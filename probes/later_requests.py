"""Requests of the controller that wait for programs which are loaded later."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from specmine.model.batch import FollowWaits, Request, Sampling, Unwatch, Watch
from specmine.model.observation import Kind
from specmine.probes.kernel.later_programs import LaterPrograms
from specmine.probes.kernel.loader import PATHS, SAMPLING


class LaterRequests:
    """Holds a request back until its programs are there; calls are counted meanwhile."""

    def __init__(self, later: LaterPrograms, carry_out: Callable[[Request], None]) -> None:
        """Hold nothing; ``carry_out`` gets each request whose programs are there."""
        self._later, self._carry_out = later, carry_out
        self._held: dict[str, Request] = {}
        """By function, or by their type."""
        self.loading_ns = 0
        """CPU time of what was loaded later."""

    def apply(self, request: Request) -> None:
        """Carry a request out, or hold it back."""
        about = request.function if isinstance(request, Watch | Unwatch) else type(request).__name__
        self._held.pop(about, None)
        if not self._later.awaited(_group(request)):
            self._carry_out(request)
            return
        self._held[about] = request
        if isinstance(request, Watch):  # on a busy host seconds pass
            self._carry_out(replace(request, kind=Kind.COUNT))

    def take(self) -> tuple[dict[str, int], list[str], int]:
        """Return programs, notes and CPU time as ``LaterPrograms.take``."""
        programs, notes, used_ns = self._later.take()
        self.loading_ns += used_ns
        return programs, notes, used_ns

    def resume(self) -> None:
        """Carry out what waited for the programs that came."""
        held, self._held = self._held, {}
        for request in held.values():
            self.apply(request)


def _group(request: Request) -> str:
    """Return the group of programs that a request needs, '' if those that are always there will do."""
    if isinstance(request, Watch) and request.kind is Kind.PATH:
        return PATHS
    wanted = request.hertz if isinstance(request, Sampling) else isinstance(request, FollowWaits) and request.functions
    return SAMPLING if wanted else ""
