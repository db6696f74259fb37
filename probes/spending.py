"""What observing has cost the watched programs, by purpose, and what did not fit into bounded memory."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from specmine.model.batch import Spent
from specmine.probes.kernel.structs import UNSENT
from specmine.probes.process.self_cpu import SelfCpu
from specmine.probes.process.tracker import ProcessTracker
from specmine.probes.safety.nonlocal_exits import NonlocalExits
from specmine.probes.sampling.profiler import Profiler
from specmine.probes.symbols.modules import Modules
from specmine.probes.timing.registry import Registry
from specmine.probes.timing.waits import WaitMeter


class Spending:
    """Running totals over all parts of the kernel side."""

    def __init__(
        self,
        registry: Registry,
        profiler: Profiler,
        wait_meter: WaitMeter | None,
        nonlocal_exits: NonlocalExits,
        modules: Modules,
        counters: NDArray[Any],
    ) -> None:
        """Take the parts, and the kernel's counters of all slots."""
        self._registry, self._profiler, self._wait_meter = registry, profiler, wait_meter
        self._nonlocal_exits, self._modules, self._counters = nonlocal_exits, modules, counters

    def purposes(self, sample_ns: float) -> dict[str, float]:
        """Return the overhead so far by what it was spent on, ns; ``sample_ns``: price of a sample with its stack."""
        hits = dict(self._registry.activity.costs_ns)
        timed_ns = hits.pop("timed", 0.0)
        durations_ns = min(timed_ns, self._registry.windows.delivered_ns)
        walked = self._profiler.sampled + (self._wait_meter.walked if self._wait_meter is not None else 0)
        switches_ns, _ = self._profiler.passes_ns()
        return hits | {
            "durations": durations_ns,
            "open": timed_ns - durations_ns,
            "sampling": walked * sample_ns + switches_ns,
            "exits": self._nonlocal_exits.cost_ns,
        }

    def spent(self, programs: ProcessTracker, own: SelfCpu, sample_ns: float, *, loading_ns: int) -> Spent:
        """Return all that was spent so far.

        Parameters
        ----------
        programs : ProcessTracker
            Knows the CPU time of the watched programs.
        own : SelfCpu
            Knows that of our own processes.
        sample_ns : float
            Price of a sample with its stack.
        loading_ns : int
            CPU time of programs that were loaded after the start.
        """
        purposes = self.purposes(sample_ns)
        switches_ns, all_switches_ns = self._profiler.passes_ns()
        return Spent(
            overhead_ns=sum(purposes.values()),
            program_cpu_ns=programs.cpu_ns,
            cpu_by_program=dict(programs.cpu_by_program),
            agent_ns=own.ns + round(all_switches_ns - switches_ns),
            loading_ns=loading_ns,
            purposes=purposes,
        )

    def lost(self, unsent: NDArray[Any]) -> dict[str, int]:
        """Return what was lost so far; ``unsent`` counts what ring buffers had no room for."""
        return {
            "calls": int(self._counters["lost"].sum()),
            "unlearnt_calls": int(self._counters["unlearnt"].sum()),
            "abandoned_calls": int(self._counters["dropped"].sum()),
            "perturbed_calls": self._registry.windows.perturbed,
            "unsplit_calls": int(self._counters["unsplit"].sum()),
            **{f"unsent_{what}": int(number) for what, number in zip(UNSENT, unsent, strict=True)},
            "modules": self._modules.lost,
            "modules_evicted": self._modules.evictions,
        }
