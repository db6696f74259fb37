"""The time profile of a function: what sampling found, fading with time."""

from __future__ import annotations

from dataclasses import dataclass, replace

from specmine.model.batch import HotSample

MOST_CALLERS = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """Where a program spends its time, as far as one function is concerned."""

    samples: float = 0.0
    own_ns: float = 0.0
    """Wall-clock time with the function innermost."""
    cpu_ns: float = 0.0
    """The part of it on CPU."""
    inclusive_ns: float = 0.0
    callee_ns: float = 0.0
    """The part of it in the callee that takes most of it, as far as nobody else calls that one."""
    callers: tuple[tuple[str, float], ...] = ()
    """Key and time of each caller, by time."""
    loop_bottom: bool = False

    def with_sample(self, sample: HotSample) -> Profile:
        """Add what sampling found since the last batch."""
        callers = dict(self.callers)
        for key, time_ns in sample.callers:
            callers[key] = callers.get(key, 0.0) + time_ns
        ordered = sorted(callers.items(), key=lambda item: (-item[1], item[0]))
        return Profile(
            samples=self.samples + sample.samples,
            own_ns=self.own_ns + sample.on_cpu_ns + sample.off_cpu_ns,
            cpu_ns=self.cpu_ns + sample.on_cpu_ns,
            inclusive_ns=self.inclusive_ns + sample.inclusive_ns,
            callee_ns=self.callee_ns + sample.callee_ns,
            callers=tuple(ordered[:MOST_CALLERS]),
            loop_bottom=sample.loop_bottom,
        )

    def faded(self, share: float) -> Profile:
        """Keep only this share of the weight."""
        return replace(
            self,
            samples=self.samples * share,
            own_ns=self.own_ns * share,
            cpu_ns=self.cpu_ns * share,
            inclusive_ns=self.inclusive_ns * share,
            callee_ns=self.callee_ns * share,
            callers=tuple((key, time_ns * share) for key, time_ns in self.callers),
        )
