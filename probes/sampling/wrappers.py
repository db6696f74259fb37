"""Functions that jump to a hot one: they are called, yet stand on no stack."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from specmine.model.batch import HotSample
from specmine.probes.symbols.modules import Modules
from specmine.probes.symbols.symbolizer import Symbolizer


class Wrappers:
    """Names the functions that jump to a hot one."""

    def __init__(self, modules: Modules, naming: Symbolizer) -> None:
        """Know none."""
        self._modules, self._symbolizer = modules, naming
        self._wrappers: dict[str, tuple[str, ...]] = {}

    def with_wrappers(self, hot_samples: tuple[HotSample, ...]) -> tuple[HotSample, ...]:
        """Return the hot_samples, and for each function that is innermost somewhere the same for its wrappers.

        Whether anybody calls these is not known, and they have no time of their own: they come after what is.
        """
        more = []
        for one in hot_samples:
            if one.on_cpu_ns + one.off_cpu_ns:
                if one.function not in self._wrappers:
                    self._ask(one.function)
                around = replace(one, on_cpu_ns=0.0, off_cpu_ns=0.0, cpu_samples=0, is_wrapper=True)
                more += [replace(around, function=key) for key in self._wrappers[one.function]]
        return (*hot_samples, *more)

    def forget(self, functions: Collection[str]) -> None:
        """Forget functions whose files were closed."""
        for key in functions:
            self._wrappers.pop(key, None)

    def _ask(self, key: str) -> None:
        self._wrappers[key] = ()
        module, function = self._symbolizer.module_of[key], self._symbolizer.functions[key]

        def then(answer: object) -> None:
            if isinstance(answer, list) and not module.gone:
                self._wrappers[key] = tuple(self._symbolizer.admit(module, facts).key for facts in answer)

        self._modules.ask("wrappers", module.fd, then, offsets=[function.offset], module=module.name)
