"""Follow the chosen programs: which processes are theirs now, and to which lifetime each belongs."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from specmine.model.batch import Lifetime
from specmine.probes.kernel.maps import CachedMap
from specmine.probes.kernel.structs import EVENT_EXEC, EVENT_EXIT, EVENT_FORK, PROCESS

from . import proc
from .mappings import FileId
from .proc import Process
from .proc_files import PROC, path_as_text
from .selection import Selection, belongs

RESCAN_NS, RESCAN_UNASKED_NS = 5_000_000_000, 30_000_000_000
"""Events may be lost in a storm: so often everything is looked at again, and where nothing began meanwhile."""
LOOKS_SHARE, LONGEST_NS = 0.0002, 60_000_000_000
"""How much of a CPU these looks may take, and how far apart they may be: a look at a thousand processes takes 20 ms."""


@dataclass(slots=True)
class Member:
    """A watched process."""

    pid: int
    program: int
    lifetime: str
    start_ticks: int
    file: FileId | None
    called: str = ""
    """Name of its program."""
    layout: int = 0
    followed: bool = False
    """What leaves its frames without returning is probed."""
    cpu_ns: int = 0
    """CPU time when it was last looked at."""
    image: int = 0
    """``Process.image`` when it was added, or by its next exec where it was added in the middle of that."""


@dataclass(slots=True)
class _Life:
    """A lifetime while it lasts."""

    id: str
    pid: int
    executable: str
    program: str
    chosen: str
    start_ns: int
    members: set[int] = field(default_factory=set)
    build_id: str = ""
    told: int = -1
    """Number of processes last reported."""


class ProcessTracker:
    """The watched processes, here and in the kernel's map of them."""

    def __init__(self, selections: Iterable[Selection], kernel: CachedMap) -> None:
        """Watch nothing yet; ``begin`` looks for the first time."""
        self.selections = tuple(selections)
        self.members: dict[int, Member] = {}
        self.cpu_ns = 0
        """CPU time of all members while they were watched ..."""
        self.cpu_by_program: dict[str, int] = {}
        """... of each program, by its name."""
        self.forked: list[tuple[int, int]] = []
        """(parent, child) since the last ``take_news``."""
        self.arrived: list[int] = []
        """Pids that became members by other ways than a fork, since the last ``take_news``."""
        self.gone: list[int] = []
        self.executed: list[int] = []
        """Pids that nobody chose and that executed something: possible bystanders."""
        self._kernel = kernel
        self._boot = proc.boot_id()
        self._lives: dict[str, _Life] = {}
        self._births: dict[tuple[int, int], int] = {}
        """Execs that were seen of each process that lives, by pid and start time."""
        self._strangers: set[tuple[int, int]] = set()
        """Processes that live and were seen to execute something that nobody chose."""
        self._scanned: set[int] = set()
        """Processes that a look at all of them found, and whose exec may not have been told yet."""
        self._rescan_ns = self._rescan_all_ns = 0
        self._newest = 0
        """The process or thread that had begun last before everything was looked at; 0: it is not known."""
        self._moves = any(each.unit or each.cgroup for each in self.selections)
        """Processes become members without a fork or an exec: by a move into another control group."""

    def begin(self, now_ns: int) -> None:
        """Find the processes that are there already."""
        self._scan(now_ns)

    def events(self, events: np.ndarray, now_ns: int) -> None:
        """Take in what the kernel told: forks, execs, exits."""
        columns = (events[name].tolist() for name in ("type", "tgid", "value"))
        for kind, tgid, value in zip(*columns, strict=True):
            if kind == EVENT_FORK:
                self._fork(tgid, value)
            elif kind == EVENT_EXEC:
                self._exec(tgid, now_ns)
            elif kind == EVENT_EXIT:
                self._look(tgid)
        self._scanned.clear()

    def look_around(self, now_ns: int) -> None:
        """Account CPU time, notice the dead, and from time to time look at everything again."""
        for pid, member in list(self.members.items()):
            self._look(pid)
            if pid in self.members and proc.executable(pid) not in (None, member.file):
                self._exec(pid, now_ns)  # the event was lost
        if now_ns >= self._rescan_ns and self._is_rescan_due(now_ns):
            self._scan(now_ns)

    def rescan(self) -> None:
        """Look at everything again at the next look: events were lost."""
        self._rescan_ns = self._newest = 0

    def _is_rescan_due(self, now_ns: int) -> bool:
        """Tell whether anything may be found: on a host of a thousand processes a look at all takes 20 ms."""
        if self._moves or now_ns >= self._rescan_all_ns or not self._newest or proc.newest() != self._newest:
            return True
        self._rescan_ns = min(now_ns + RESCAN_NS, self._rescan_all_ns)
        return False

    def place(self, pid: int, layout: int) -> None:
        """Tell the kernel which address-space layout a process has."""
        member = self.members.get(pid)
        if member is not None and member.layout != layout:
            member.layout = layout
            self._put(member)

    def follow(self, pid: int, *, followed: bool) -> None:
        """Tell the kernel whether what leaves the process's frames without returning is probed."""
        member = self.members.get(pid)
        if member is not None and member.followed != followed:
            member.followed = followed
            self._put(member)

    def lifetimes(self, build_ids: dict[FileId, str]) -> tuple[Lifetime, ...]:
        """Return the lifetimes whose number of processes changed since the last call.

        Parameters
        ----------
        build_ids : dict
            Build-id of each executable that is known by now; a lifetime is not told before its build is.
        """
        told = []
        for life in list(self._lives.values()):
            file = next((self.members[p].file for p in life.members), None)
            life.build_id = life.build_id or (build_ids.get(file, "") if file else "")
            if len(life.members) == life.told or (life.members and not life.build_id):
                continue
            life.told = len(life.members)
            if not life.members:
                del self._lives[life.id]
            told.append(
                Lifetime(
                    id=life.id,
                    pid=life.pid,
                    executable=life.executable,
                    build_id=life.build_id,
                    start_ns=life.start_ns,
                    processes=life.told,
                    program=life.program,
                    chosen=life.chosen,
                )
            )
        return tuple(told)

    @property
    def ended(self) -> bool:
        """True if no process is left and none can come."""
        return not self.members and all(s.pid for s in self.selections)

    def take_news(self) -> tuple[list[tuple[int, int]], list[int], list[int], list[int]]:
        """Return and forget (forked, arrived, gone, executed) since the last call."""
        news = (self.forked, self.arrived, self.gone, self.executed)
        self.forked, self.arrived, self.gone, self.executed = [], [], [], []
        return news

    def _put(self, member: Member) -> None:
        value = np.array([(member.program, member.layout, member.followed, 0)], PROCESS)
        self._kernel.put(np.uint32(member.pid).tobytes(), value.tobytes())

    def _add(self, found: Process, program: int, life: _Life, layout: int = 0) -> None:
        member = Member(
            pid=found.pid,
            program=program,
            lifetime=life.id,
            start_ticks=found.start_ticks,
            file=proc.executable(found.pid),
            called=life.program,
            layout=layout,
            cpu_ns=found.cpu_ns,
            image=found.image,
        )
        self.members[found.pid] = member
        life.members.add(found.pid)
        self._put(member)

    def _remove(self, pid: int) -> None:
        member = self.members.pop(pid, None)
        if member is None:
            return
        life = self._lives.get(member.lifetime)
        if life is not None:
            life.members.discard(pid)
        self._kernel.remove(np.uint32(pid).tobytes())
        self.gone.append(pid)

    def _born(self, found: Process, program: int, now_ns: int) -> _Life:
        """Begin the lifetime whose exec this process did."""
        name, one = f"{self._boot}:{found.pid}:{found.start_ticks}", (found.pid, found.start_ticks)
        births = self._births[one] = self._births.get(one, 0) + 1
        if births > 1:  # another exec keeps pid and start time
            name = f"{name}:{births}"
        choice, path = self.selections[program], proc.executable_path(found.pid)
        life = self._lives[name] = _Life(
            id=name,
            pid=found.pid,
            executable=path_as_text(path),
            program=path_as_text(choice.name or proc.executed_name(found.pid, found.name)),
            chosen=choice.shown,
            start_ns=now_ns,
        )
        return life

    def _scan(self, now_ns: int) -> None:
        began_ns = time.thread_time_ns()
        self._newest = proc.newest()
        everything = proc.processes()
        self._rest(now_ns, time.thread_time_ns() - began_ns)
        alive = {p.pid: p for p in everything if not p.zombie}
        living = {(p.pid, p.start_ticks) for p in everything}
        self._births = {one: births for one, births in self._births.items() if one in living}
        self._strangers &= living
        for number, selection in enumerate(self.selections):
            if selection.at_exec and proc.executable(selection.pid) == proc.executable(os.getpid()):
                continue
            file = self._file_of(selection)
            roots = [p for p in alive if p not in self.members and belongs(selection, p, file)]
            for pid in sorted(roots, key=lambda p: (alive[p].start_ticks, p)):
                if pid not in self.members and proc.executable(pid) is not None:
                    self._adopt_family(pid, number, everything, alive, now_ns)
        for pid in [p for p, found in alive.items() if p not in self.members and found.parent in self.members]:
            # a fork that was not told, of a program whose file was replaced: nothing but its parent tells its program
            parent, stranger = self.members[alive[pid].parent], (pid, alive[pid].start_ticks) in self._strangers
            if pid not in self.members and not stranger and parent.file == proc.executable(pid):
                self._adopt_family(pid, parent.program, everything, alive, now_ns)

    def _rest(self, now_ns: int, took_ns: int) -> None:
        """Note when everything is looked at again, after a look that took so long."""
        # by a move into a control group, nothing tells that a process belongs here
        apart_ns = 0 if self._moves else min(LONGEST_NS, round(took_ns / LOOKS_SHARE))
        self._rescan_ns = now_ns + max(RESCAN_NS, apart_ns)
        self._rescan_all_ns = now_ns + max(RESCAN_UNASKED_NS, apart_ns)

    def _adopt_family(
        self, pid: int, program: int, everything: list[Process], alive: dict[int, Process], now_ns: int
    ) -> None:
        """Add a process with its descendants; it joins its parent's lifetime if that runs the same file."""
        parent = self.members.get(alive[pid].parent)
        if parent is not None and parent.file == proc.executable(pid):
            life = self._lives[parent.lifetime]
        else:
            life = self._born(alive[pid], program, now_ns)
        for one in proc.family(pid, everything):
            if one in alive and one not in self.members:
                self._add(alive[one], program, life)
                self.arrived.append(one)
                self._scanned.add(one)

    @staticmethod
    def _file_of(selection: Selection) -> FileId | None:
        if not selection.exe:
            return None
        try:
            status = Path(selection.exe).stat()
        except OSError:
            return None
        return (status.st_dev, status.st_ino)

    def _fork(self, parent: int, child: int) -> None:
        above, found = self.members.get(parent), proc.process(child)
        if above is None or found is None or child in self.members:
            return
        if proc.executable(child) != above.file:  # it has executed something else already
            return
        self._add(found, above.program, self._lives[above.lifetime], above.layout)
        self.forked.append((parent, child))

    def _exec(self, pid: int, now_ns: int) -> None:
        found = proc.process(pid)
        if found is not None and self._is_known(found):
            return
        self._remove(pid)
        if found is None or found.zombie:
            return
        for number, selection in enumerate(self.selections):
            if belongs(selection, pid, self._file_of(selection)):
                self._add(found, number, self._born(found, number, now_ns))
                self.arrived.append(pid)
                return
        self.executed.append(pid)
        self._strangers.add((pid, found.start_ticks))

    def _is_known(self, found: Process) -> bool:
        """Tell whether an exec is the one by which a look at all processes has found this one already."""
        member = self.members.get(found.pid)
        if member is None or found.pid not in self._scanned or not found.image:
            return False
        if member.image not in (0, found.image):  # 0: it was found in the middle of this exec
            return False
        member.image = found.image
        self._put(member)  # the kernel forgets a process that executes
        return True

    def _look(self, pid: int) -> None:
        member = self.members.get(pid)
        if member is None:
            return
        found = proc.process(pid)
        if found is None or found.start_ticks != member.start_ticks or (found.zombie and not _has_threads(pid)):
            self._remove(pid)
            return
        used_ns = max(0, found.cpu_ns - member.cpu_ns)
        self.cpu_ns += used_ns
        self.cpu_by_program[member.called] = self.cpu_by_program.get(member.called, 0) + used_ns
        member.cpu_ns = found.cpu_ns


def _has_threads(pid: int) -> bool:
    """Tell whether threads outlive the leader of their group."""
    try:
        return len(os.listdir(f"{PROC}/{pid}/task")) > 1
    except OSError:
        return False
