"""What one burst of sampling finds, as its samples arrive. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from specmine.daemon.config.settings import SECOND
from specmine.model.batch import Batch


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Burst:
    """What a burst has found as yet, by function."""

    times_s: Mapping[str, float] = field(default_factory=dict)
    """Wall-clock time with the function anywhere on the stack, on CPU and blocked."""
    cpus_s: Mapping[str, float] = field(default_factory=dict)
    """CPU time with the function anywhere on the stack, by samples of the CPU clock alone."""
    jumped_s: Mapping[str, float] = field(default_factory=dict)
    """The same of functions that stand on no stack but jump to one that does: how much of it is theirs is not known."""
    innermost_s: Mapping[str, float] = field(default_factory=dict)
    """CPU time with the function innermost."""
    looks: Mapping[str, int] = field(default_factory=dict)
    """Looks at all blocked threads that saw one in the function."""
    seconds: float = 0.0
    """Its length as yet; 0: it has not begun."""
    ended_ns: int = 0
    """When it ended, or until when it has gone on."""
    hertz: int = 0
    """Samples a second on each busy CPU."""


def with_samples(before: Burst, batch: Batch, hertz: int, passed_ns: int) -> Burst:
    """Return the burst with what sampling found since the last batch.

    Parameters
    ----------
    before : Burst
    batch : Batch
    hertz : int
        Samples a second on each busy CPU meanwhile; 0: none was taken, late ones count for the burst before.
    passed_ns : int
        Since the last batch.
    """
    if not before.seconds and not hertz:
        return before
    times, innermost = dict(before.times_s), dict(before.innermost_s)
    cpus, jumped, looks = dict(before.cpus_s), dict(before.jumped_s), dict(before.looks)
    rate = hertz or before.hertz
    for sample in batch.hot_samples:
        times[sample.function] = times.get(sample.function, 0.0) + sample.inclusive_ns / SECOND
        if sample.busy_samples:
            seen = jumped if sample.is_wrapper else cpus
            seen[sample.function] = seen.get(sample.function, 0.0) + sample.busy_samples / rate
        if sample.looks:
            looks[sample.function] = looks.get(sample.function, 0) + sample.looks
        if sample.cpu_samples:
            innermost[sample.function] = innermost.get(sample.function, 0.0) + sample.cpu_samples / rate
    found = replace(before, times_s=times, cpus_s=cpus, jumped_s=jumped, innermost_s=innermost, looks=looks)
    if not hertz:
        return found
    return replace(found, seconds=before.seconds + passed_ns / SECOND, ended_ns=batch.now_ns, hertz=hertz)
