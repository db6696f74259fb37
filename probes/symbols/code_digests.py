"""Has the machine code of all named functions digested, a few at a time, while the reader has nothing else to do."""

from __future__ import annotations

from collections import deque

from .modules import Modules
from .symbolizer import Symbolizer

AT_ONCE = 16
"""Functions in one question: a few milliseconds of the reader's time."""


class CodeDigests:
    """Asks for each named function once."""

    def __init__(self, modules: Modules, naming: Symbolizer) -> None:
        """Ask nothing yet."""
        self._modules, self._symbolizer = modules, naming
        self._seen = 0
        self._waiting: deque[str] = deque()
        self._outstanding = False

    def ask(self) -> None:
        """Send the next question if the last one is answered and nobody waits for the reader."""
        keys = self._symbolizer.functions
        if len(keys) > self._seen:  # in the order in which they were named
            self._waiting += list(keys)[self._seen :]
            self._seen = len(keys)
        if not self._waiting or self._outstanding or self._modules.busy:
            return
        module = self._symbolizer.module_of[self._waiting[0]]
        batch: list[str] = []
        while self._waiting and len(batch) < AT_ONCE and self._symbolizer.module_of[self._waiting[0]] is module:
            batch.append(self._waiting.popleft())
        self._outstanding = True

        def then(answer: object) -> None:
            self._outstanding = False
            if isinstance(answer, list):
                for key, code in zip(batch, answer, strict=True):
                    self._symbolizer.coded(key, code)

        offsets = [self._symbolizer.functions[key].offset for key in batch]
        self._modules.ask("code", module.fd, then, offsets=offsets, module=module.name)
