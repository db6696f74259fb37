"""Give processes the layouts of their address spaces, and tell of those that come and go."""

from __future__ import annotations

from collections.abc import Collection

from specmine.probes.process import proc
from specmine.probes.process.bystanders import Bystanders
from specmine.probes.process.code_sizes import CodeSizes
from specmine.probes.process.mappings import FileId
from specmine.probes.process.tracker import ProcessTracker
from specmine.probes.symbols.module import Module
from specmine.probes.symbols.modules import Modules
from specmine.probes.symbols.symbolizer import Symbolizer

from .registry import Registry

REMAP_NS = 10_000_000_000
"""How often one process's mappings are read again: libraries come and go, at times without a change of the sizes."""
SOON_NS = 100_000_000
"""How long a process that has just come may take to map its libraries. Then it is asked how much memory it executes:
most have mapped all before they are first looked at, and to read what they map takes half of what a life costs us."""
CODE_NS, CODE_OF_ALL_NS = 100_000_000, 1_000_000_000
"""How often processes are asked whether they execute more or less memory than before: those in which return addresses
are replaced, which a library that has just come may stumble over, and all."""
FORKED_NS = 2_000_000_000
"""A parent whose mappings were read so long ago is read again once it has forked, and its children if it has other
ones: a server that loads its configuration anew has its libraries elsewhere, and as much code as before."""
GONE_NS = 1_000_000_000
"""After the end of a process the same is looked at so soon: what only it mapped is not watched any more."""
PROCESSES_PER_LOOK = 8


class AddressSpaces:
    """Which process maps what, as far as it has been read."""

    def __init__(
        self,
        modules: Modules,
        naming: Symbolizer,
        programs: ProcessTracker,
        bystanders: Bystanders,
        watching: Registry,
        code_sizes: CodeSizes,
    ) -> None:
        """Have read nothing."""
        self._modules, self._symbolizer, self._programs = modules, naming, programs
        self._bystanders, self._registry = bystanders, watching
        self._remap_ns = self._use_ns = self._code_ns = self._all_code_ns = 0
        self._young: dict[int, int] = {}
        """Processes that have just come, and when they will have mapped their libraries."""
        self._read_ns: dict[int, int] = {}
        """When the mappings of a process were last read."""
        self._children: dict[int, list[int]] = {}
        """What a parent has forked since then."""
        self._code_sizes = code_sizes
        self._gone: set[Module] = set()
        self._forgotten: frozenset[str] = frozenset()

    def look_around(self, now_ns: int) -> None:
        """Place every process that came, and read some of the old ones' mappings again."""
        forked, arrived, gone, executed = self._programs.take_news()
        if arrived or gone:
            self._modules.use({member.layout for member in self._programs.members.values()}, now_ns)
        for pid in arrived:
            self._bystanders.chosen(pid)
            self._place(pid, now_ns)
            self._young[pid] = now_ns + SOON_NS
        for parent, child in forked:
            self._code_sizes.inherit(parent, child)
            self._registry.forked(parent, child)
            self._children.setdefault(parent, []).append(child)
        for pid in gone:
            self._read_ns.pop(pid, None)
            self._children.pop(pid, None)
            self._code_sizes.forget(pid)
            self._young.pop(pid, None)
            self._registry.gone(pid)
        for pid in executed[:PROCESSES_PER_LOOK]:
            self._bystanders.look_at(pid)
        if executed:
            self._registry.placement.check_bystanders(now_ns)
        if gone:
            self._use_ns = min(self._use_ns, now_ns + GONE_NS)
        due, settled = now_ns >= self._remap_ns, self._settled(now_ns)
        if due or now_ns >= self._use_ns:
            self._use_ns = now_ns + REMAP_NS
            self._modules.use({member.layout for member in self._programs.members.values()}, now_ns)
            self._forget_files(now_ns)
        changed = self._with_changed_code(now_ns, settled) + self._with_parents_moved(now_ns)
        for pid in dict.fromkeys((*changed, *(self._some(now_ns) if due else ()))):
            self._place(pid, now_ns)
        if due:
            self._remap_ns = now_ns + REMAP_NS
        if self._modules.retired:
            self._symbolizer.paths.forget(self._modules.retired)
            self._registry.forget_layouts(self._modules.retired)
            self._modules.retired.clear()
        if due or changed or settled:
            self._registry.recheck_safety(now_ns)

    def _forget_files(self, now_ns: int) -> None:
        """Close files that no process maps any more, and forget what is known of their functions."""
        gone = self._modules.forget(self._symbolizer.unread())
        if gone:
            forgotten = self._symbolizer.forget(gone)
            self._registry.forget(gone, forgotten, now_ns)
            self._gone |= gone
            self._forgotten |= forgotten

    def take_gone(self) -> tuple[set[Module], frozenset[str]]:
        """Return the files that were closed since the last call, and the functions forgotten with them, by key."""
        gone, self._gone = self._gone, set()
        forgotten, self._forgotten = self._forgotten, frozenset()
        return gone, forgotten

    def build_ids(self) -> dict[FileId, str]:
        """Return the build-ids of the members' executables, as far as they are known."""
        found: dict[FileId, str] = {}
        for member in self._programs.members.values():
            if member.file is None or member.file in found:
                continue
            layout = self._modules.layouts.get(member.layout)
            for module in layout.modules if layout else ():
                if module is not None and module.file[1] == member.file[1] and module.facts is not None:
                    found[member.file] = module.facts.build_id
        return found

    def _settled(self, now_ns: int) -> list[int]:
        """Return the processes that came a moment ago and will have mapped their libraries by now."""
        found = [pid for pid, due_ns in self._young.items() if now_ns >= due_ns]
        for pid in found:
            del self._young[pid]
        return found

    def _with_changed_code(self, now_ns: int, settled: Collection[int]) -> list[int]:
        """Return processes to which a library has come, or from which one has gone; ``settled`` are looked at now."""
        if now_ns < self._code_ns:
            return self._code_sizes.changed(settled) if settled else []
        self._code_ns = now_ns + CODE_NS
        changed = self._code_sizes.changed(self._registry.placement.replaced_pids().union(settled))
        if now_ns >= self._all_code_ns:
            self._all_code_ns = now_ns + CODE_OF_ALL_NS
            changed += [pid for pid in self._code_sizes.changed(self._programs.members) if pid not in changed]
        return changed

    def _with_parents_moved(self, now_ns: int) -> list[int]:
        """Return children of parents that map other files, or at other places, than when they were last read."""
        members, found = self._programs.members, []
        due = [pid for pid in self._children if now_ns - self._read_ns.get(pid, 0) >= FORKED_NS]
        for parent in due[:PROCESSES_PER_LOOK]:
            children, member = self._children.pop(parent), members.get(parent)
            before = member.layout if member is not None else 0
            self._place(parent, now_ns)
            if member is not None and member.layout != before:
                found += [child for child in children if child in members]
        return found

    def _some(self, now_ns: int) -> list[int]:
        """Return the members whose turn it is."""
        members = sorted(self._programs.members)
        if len(members) <= PROCESSES_PER_LOOK:
            return members
        at = int(now_ns // REMAP_NS) * PROCESSES_PER_LOOK % len(members)
        return (members + members)[at : at + PROCESSES_PER_LOOK]

    def _place(self, pid: int, now_ns: int) -> None:
        self._read_ns[pid] = now_ns
        self._code_sizes.read(pid)
        try:
            number = self._modules.layout_of(pid)
        except OSError:
            return
        if not number:
            return
        self._programs.place(pid, number)
        executable, layout = proc.executable(pid), self._modules.layouts[number]
        for mapping, module in zip(layout.mappings, layout.modules, strict=True):
            if module is not None and executable is not None and mapping.file[1] == executable[1]:
                self._symbolizer.programs.add(module)
