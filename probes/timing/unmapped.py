"""Functions asked for by a key of an earlier run of specmine, whose binary has not been mapped in this one."""

from __future__ import annotations

from collections.abc import Iterator

from specmine.model.batch import Watch
from specmine.probes.symbols.modules import Modules
from specmine.probes.symbols.symbolizer import Symbolizer


class UnmappedFunctions:
    """What was asked for and waits until a process maps it."""

    def __init__(self, modules: Modules, symbolizer: Symbolizer) -> None:
        """Await nothing yet."""
        self._modules, self._symbolizer = modules, symbolizer
        self._watches: dict[str, Watch] = {}

    def awaits(self, watch: Watch) -> bool:
        """Tell whether nobody maps the function now, and then remember what was asked for."""
        known = watch.function in self._symbolizer.functions
        if known and not self._symbolizer.module_of[watch.function].gone:
            return False
        self._watches[watch.function] = watch
        return True

    def forget(self, function: str) -> None:
        """Await a function no longer."""
        self._watches.pop(function, None)

    def mapped(self) -> Iterator[tuple[Watch, bool]]:
        """Yield what is mapped by now, and whether its binary has such a function."""
        for key, watch in list(self._watches.items()):
            build, _, offset = key.rpartition("+")
            for module in list(self._modules.by_file.values()):
                if module.facts is None or module.facts.build_id != build:
                    continue
                if self._symbolizer.function(module, int(offset, 16)) is not False:
                    del self._watches[key]
                    known = key in self._symbolizer.functions
                    if known and self._symbolizer.module_of[key].gone:
                        self._symbolizer.move(key, module)
                    yield watch, known
                break
