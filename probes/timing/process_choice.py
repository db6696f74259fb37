"""Choose the processes in which a function is probed: all at once where no bystander pays, else a few, in turn."""

from __future__ import annotations

import random
from dataclasses import dataclass

from specmine.probes.process.bystanders import Bystanders
from specmine.probes.process.tracker import ProcessTracker
from specmine.probes.safety.gate import Gate
from specmine.probes.symbols.modules import Modules

from .function.timed_function import TimedFunction
from .link_table import MAX_PIDS


@dataclass(frozen=True, slots=True)
class Chosen:
    """Where a function is probed, for others that are to be probed beside it."""

    lifetime: str
    pids: list[int]


class ProcessChoice:
    """Chooses by which process maps what, and who must not be probed."""

    def __init__(
        self,
        modules: Modules,
        tracker: ProcessTracker,
        bystanders: Bystanders,
        gate: Gate,
        chance: random.Random,
    ) -> None:
        """Choose by this random source."""
        self._modules, self._tracker, self._bystanders = modules, tracker, bystanders
        self._gate, self._random = gate, chance

    def pids(self, w: TimedFunction, *, begun: bool, beside: Chosen | None = None) -> list[int]:
        """Return the processes to link for: [0] for all, if only watched ones map the files; [] if there are none.

        All are of one lifetime, so that an observation is of one lifetime. Lifetimes take turns, once a window that
        has ``begun`` is full. ``beside``: of its lifetime, and of its processes only.
        """
        layouts = self._modules.layouts
        mapping = [
            member
            for member in self._tracker.members.values()
            if member.layout in layouts and w.module in layouts[member.layout].modules
        ]
        touched = {w.module, *(w.returns.modules if w.by_site else ())}
        wanted = [member for member in mapping if w.watch.program in ("", member.called)]
        allowed = [member for member in wanted if self._gate.bars(member.pid, touched) is None]
        if not allowed:
            return []
        lifetimes = sorted({member.lifetime for member in allowed})
        if beside is not None and beside.lifetime not in lifetimes:
            return []
        stays = w.lifetime in lifetimes and w.window is not None and begun
        w.choose(beside.lifetime if beside else w.lifetime if stays else self._random.choice(lifetimes))
        alone = len(lifetimes) == 1 and len(allowed) == len(mapping)
        if alone and not any(self._bystanders.share(module.file) for module in touched):
            w.attachment.reach(len(wanted), len(wanted))
            return [0]
        pids = sorted(member.pid for member in allowed if member.lifetime == w.lifetime)
        if beside is not None and 0 not in beside.pids:
            pids = [pid for pid in pids if pid in beside.pids]
        if len(pids) > MAX_PIDS:
            pids = sorted(self._random.sample(pids, MAX_PIDS))
        w.attachment.reach(len(pids), len(wanted))
        return pids

    def has_others(self, w: TimedFunction) -> bool:
        """Tell whether there are processes in which the function is not probed now."""
        return 0 not in w.attachment.pids and len(self._tracker.members) > len(w.attachment.links)

    def is_shared(self, w: TimedFunction) -> bool:
        """Tell whether the function is probed for all, and bystanders map a file that calls it."""
        return 0 in w.attachment.pids and any(self._bystanders.share(m.file) for m in w.returns.modules)
