"""Functions that jump to a hot one come after what was seen."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from specmine.model.batch import HotSample
from specmine.model.function import Function
from specmine.probes.sampling.wrappers import Wrappers


def test_a_wrapper_has_no_time_of_its_own() -> None:
    """A function that jumps to a hot one may be called by nobody: it comes after what was seen, and adds no time."""
    asked: list[Any] = []
    module = SimpleNamespace(gone=False, fd=1, name="libc.so.6")
    modules: Any = SimpleNamespace(ask=lambda what, fd, then, **more: asked.append(then))
    wait, wrapper = (Function(build_id="0", offset=at, name=f"f{at}", module="m") for at in (1, 2))
    naming: Any = SimpleNamespace(
        module_of={wait.key: module}, functions={wait.key: wait}, admit=lambda module, facts: wrapper
    )
    one = HotSample(function=wait.key, samples=9, cpu_samples=4, on_cpu_ns=4e6, off_cpu_ns=5e6, inclusive_ns=9e6)
    wrappers = Wrappers(modules, naming)
    assert wrappers.with_wrappers((one,)) == (one,)
    asked[0]([{}])
    same, around = wrappers.with_wrappers((one,))
    assert same == one
    assert (around.function, around.samples, around.inclusive_ns) == (wrapper.key, 9, 9e6)
    assert (around.on_cpu_ns, around.off_cpu_ns, around.cpu_samples) == (0.0, 0.0, 0)
    assert (same.is_wrapper, around.is_wrapper) == (False, True)
