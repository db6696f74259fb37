"""Where a program spends its time, as far as one function goes."""

from __future__ import annotations

from dataclasses import dataclass, replace

from specmine.model.batch import HotSample


@dataclass(frozen=True, slots=True, kw_only=True)
class Where:
    """What sampling said about a function, fading with time."""

    samples: float = 0.0
    own_ns: float = 0.0
    """Wall-clock time with the function innermost."""
    cpu_ns: float = 0.0
    """The part of it on CPU."""
    inclusive_ns: float = 0.0
    callee_ns: float = 0.0
    """The part of the inclusive time in the function that it calls for longest."""
    callers: tuple[tuple[str, float], ...] = ()
    loop_bottom: bool = False

    def seen(self, sample: HotSample) -> Where:
        """Add what sampling found since the last batch."""
        callers = dict(self.callers)
        for key, time_ns in sample.callers:
            callers[key] = callers.get(key, 0.0) + time_ns
        ordered = sorted(callers.items(), key=lambda item: (-item[1], item[0]))
        return Where(
            samples=self.samples + sample.samples,
            own_ns=self.own_ns + sample.on_cpu_ns + sample.off_cpu_ns,
            cpu_ns=self.cpu_ns + sample.on_cpu_ns,
            inclusive_ns=self.inclusive_ns + sample.inclusive_ns,
            callee_ns=self.callee_ns + sample.callee_ns,
            callers=tuple(ordered[:32]),
            loop_bottom=sample.loop_bottom,
        )

    def faded(self, share: float) -> Where:
        """Keep only this share of the weight."""
        callers = tuple((key, time_ns * share) for key, time_ns in self.callers)
        return replace(
            self,
            samples=self.samples * share,
            own_ns=self.own_ns * share,
            cpu_ns=self.cpu_ns * share,
            inclusive_ns=self.inclusive_ns * share,
            callee_ns=self.callee_ns * share,
            callers=callers,
        )
