"""Choose the processes in which a function is probed: all at once where nobody else pays, else a few, in turn."""

from __future__ import annotations

import random

from specmine.probes.process.bystanders import Bystanders
from specmine.probes.process.tracker import ProcessTracker
from specmine.probes.safety.gate import Gate
from specmine.probes.symbols.modules import Modules

from .attachment import MAX_PIDS
from .return_sites import ReturnSites
from .timed_function import TimedFunction


class ProcessChoice:
    """Knows who maps what, and who must be left alone."""

    def __init__(
        self,
        modules: Modules,
        programs: ProcessTracker,
        bystanders: Bystanders,
        gate: Gate,
        returns: ReturnSites,
        chance: random.Random,
    ) -> None:
        """Choose by this source of chance."""
        self._modules, self._programs, self._bystanders = modules, programs, bystanders
        self._gate, self._returns, self._random = gate, returns, chance

    def pids(self, w: TimedFunction, *, begun: bool) -> list[int]:
        """Return the processes to link for: [0] for all, if only watched ones map the files; [] if there are none.

        All are of one lifetime, so that an observation is of one lifetime: lifetimes take turns, once a window that
        has ``begun`` is full.
        """
        layouts = self._modules.layouts
        every = [
            m for m in self._programs.members.values() if m.layout in layouts and w.module in layouts[m.layout].modules
        ]
        touched = {w.module, *(self._returns.modules(w) if w.by_site else ())}
        mapping = [m for m in every if self._gate.bars(m.pid, touched) is None]
        if not mapping:
            return []
        lifetimes = sorted({m.lifetime for m in mapping})
        keeps = w.lifetime in lifetimes and w.window is not None and begun
        chosen = w.lifetime if keeps else self._random.choice(lifetimes)
        if chosen != w.lifetime:
            w.lifetime, w.window = chosen, None
        alone = len(lifetimes) == 1 and len(mapping) == len(every)
        if alone and not any(self._bystanders.share(m.file) for m in touched):
            return [0]
        found = sorted(m.pid for m in mapping if m.lifetime == chosen)
        return sorted(self._random.sample(found, MAX_PIDS)) if len(found) > MAX_PIDS else found
