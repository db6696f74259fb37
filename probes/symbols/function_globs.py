"""The user's globs over functions, resolved in every module as it becomes known."""

from __future__ import annotations

from collections.abc import Collection

from specmine.probes.elf.facts import FunctionFacts

from .module import Module
from .modules import Modules
from .symbolizer import Symbolizer


class FunctionGlobs:
    """Names the functions that the globs fit; the controller knows which glob means what."""

    def __init__(self, globs: tuple[str, ...], modules: Modules, naming: Symbolizer) -> None:
        """Have looked nowhere yet."""
        self._globs, self._modules, self._symbolizer = globs, modules, naming
        self._seen: set[Module] = set()

    def forget(self, gone: Collection[Module]) -> None:
        """Forget modules that no process maps any more."""
        self._seen.difference_update(gone)

    def resolve(self) -> None:
        """Ask for matches in the modules that have come since the last call."""
        if not self._globs:
            return
        for module in list(self._modules.by_file.values()):
            if module.facts is not None and module not in self._seen:
                self._seen.add(module)
                self._ask(module)

    def _ask(self, module: Module) -> None:
        def then(answer: object) -> None:
            for facts in answer if isinstance(answer, list) else ():
                if isinstance(facts, FunctionFacts):
                    self._symbolizer.admit(module, facts)

        self._modules.ask("find", module.fd, then, globs=list(self._globs), module=module.name)
