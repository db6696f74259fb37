"""Has the machine code of all named functions digested, a few at a time, while the reader has nothing else to do."""

from __future__ import annotations

from .modules import Modules
from .symbolizer import Symbolizer

AT_ONCE = 16
"""Functions in one question: a few milliseconds of the reader's time."""


class CodeDigests:
    """Asks for each named function once."""

    def __init__(self, modules: Modules, naming: Symbolizer) -> None:
        """Ask nothing yet."""
        self._modules, self._symbolizer = modules, naming
        self._outstanding = False

    def ask(self) -> None:
        """Send the next question if the last one is answered and nobody waits for the reader."""
        waiting, module_of = self._symbolizer.undigested, self._symbolizer.module_of
        if not waiting or self._outstanding or self._modules.busy:
            return
        while waiting and waiting[0] not in module_of:  # its file was closed
            waiting.popleft()
        if not waiting:
            return
        module = module_of[waiting[0]]
        batch: list[str] = []
        while waiting and len(batch) < AT_ONCE and module_of.get(waiting[0]) is module:
            batch.append(waiting.popleft())
        self._outstanding = True

        def then(answer: object) -> None:
            self._outstanding = False
            if isinstance(answer, list):
                for key, code in zip(batch, answer, strict=True):
                    self._symbolizer.coded(key, code)

        offsets = [self._symbolizer.functions[key].offset for key in batch]
        self._modules.ask("code", module.fd, then, offsets=offsets, module=module.name)
