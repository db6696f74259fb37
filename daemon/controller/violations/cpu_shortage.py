"""Whether a program is kept from CPU time more than usual, and by whom. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from specmine.model.host.cpu_shortage import CpuShortage
from specmine.model.text import share

NEWEST = 2
"""Looks that say how it is now; older ones say how it usually is."""
USUAL_LOOKS, LEAST_LOOKS = 180, 6
"""Over so many looks that is averaged, about a quarter of an hour, and from so many on it is known."""
SLOWLY = 0.1
"""What is more than usual counts so much less for what is usual."""
TIMES, TIMES_WAITING = 2.0, 3.0
"""More than usual is so many times as much, of waiting for each second on CPU, ..."""
MORE_WAITING, MORE_THROTTLED, MORE_STEAL = 0.15, 0.1, 0.05
"""... and this much more, as shares: of the time in which threads could run, of the limit's periods, of the CPUs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shortage:
    """What keeps one program from CPU time."""

    newest: tuple[CpuShortage, ...]
    usual: CpuShortage
    looks: int = 0
    """Looks that ``usual`` rests on."""
    since_ns: int = 0
    """Since when it is more than usual; 0: it is not."""

    @property
    def now(self) -> CpuShortage:
        """How it is now."""
        waiting = [one.waiting for one in self.newest if one.waiting is not None]
        return replace(
            self.newest[-1],
            waiting=sum(waiting) / len(waiting) if waiting else None,
            throttled=sum(one.throttled for one in self.newest) / len(self.newest),
            steal=sum(one.steal for one in self.newest) / len(self.newest),
        )

    @property
    def waits_more(self) -> bool:
        """Its threads wait for CPUs more than usual."""
        more = (self.now.waiting or 0.0) - (self.usual.waiting or 0.0)
        return self.looks >= LEAST_LOOKS and more >= MORE_WAITING and self._waits_times(TIMES_WAITING)

    @property
    def throttled_more(self) -> bool:
        """Its CPU limit stops it more than usual."""
        return self._is_more(self.now.throttled, self.usual.throttled, MORE_THROTTLED)

    @property
    def stolen_more(self) -> bool:
        """The hypervisor takes more of the CPUs than usual."""
        return self._is_more(self.now.steal, self.usual.steal, MORE_STEAL)

    @property
    def is_more(self) -> bool:
        """Anything of that."""
        return self.waits_more or self.throttled_more or self.stolen_more

    @property
    def is_as_usual(self) -> bool:
        """Nothing of that; it is known how it usually is, and its threads wait for CPUs less than twice as much."""
        if self.looks < LEAST_LOOKS or self.now.waiting is None or self.usual.waiting is None:
            return False
        return not (self.throttled_more or self.stolen_more or self._waits_times(TIMES))

    def _waits_times(self, times: float) -> bool:
        """Tell whether threads wait so many times as long as usual for each second that they run."""
        now, usual = self.now.waiting or 0.0, self.usual.waiting or 0.0
        return now * (1 - usual) >= times * usual * (1 - now)

    def _is_more(self, now: float, usual: float, least: float) -> bool:
        return self.looks >= LEAST_LOOKS and now >= max(usual + least, TIMES * usual)


def with_looks(known: Mapping[str, Shortage], looks: Iterable[CpuShortage], now_ns: int) -> Mapping[str, Shortage]:
    """Return what is known of each program after a look; ``known`` itself if there was none.

    A program that does not run is short of nothing. How it usually is counts when it comes back.
    """
    found = {one.program: _with_look(known.get(one.program), one, now_ns) for one in looks}
    if not found:
        return known
    return {**{name: replace(one, since_ns=0) for name, one in known.items() if name not in found}, **found}


def _with_look(before: Shortage | None, look: CpuShortage, now_ns: int) -> Shortage:
    if before is None:
        return Shortage(newest=(look,), usual=look)
    newest = (*before.newest, look)
    after = before
    if len(newest) > NEWEST:
        after = _learned(before, newest[0])
        newest = newest[1:]
    after = replace(after, newest=newest)
    return replace(after, since_ns=(before.since_ns or now_ns) if after.is_more else 0)


def _learned(before: Shortage, look: CpuShortage) -> Shortage:
    """Return what is usual after one more look."""
    if not before.looks:
        return replace(before, usual=look, looks=1)
    weight = (SLOWLY if before.since_ns else 1.0) / min(before.looks + 1, USUAL_LOOKS)
    usual, waiting = before.usual, before.usual.waiting
    if look.waiting is not None:
        waiting = look.waiting if waiting is None else waiting + weight * (look.waiting - waiting)
    usual = replace(
        usual,
        waiting=waiting,
        throttled=usual.throttled + weight * (look.throttled - usual.throttled),
        steal=usual.steal + weight * (look.steal - usual.steal),
    )
    return replace(before, usual=usual, looks=before.looks + 1)


def began(known: Mapping[str, Shortage], before: Mapping[str, Shortage]) -> bool:
    """Tell whether a program has just begun to be kept from CPU time."""
    return any(one.since_ns and not (name in before and before[name].since_ns) for name, one in known.items())


def in_words(one: Shortage, others: tuple[float, float], cpus: int) -> str:
    """Return what keeps a program from CPU time, or that nothing does more than usual.

    Parameters
    ----------
    one : Shortage
    others : tuple of float
        CPUs that processes which nobody watches keep busy, now and usually.
    cpus : int
        CPUs of the host; 0: not known.
    """
    now, usual, said = one.now, one.usual, list[str]()
    if one.throttled_more:
        stopped = f"its CPU limit of {now.limit_cpus:.2g} CPUs stopped it in {share(now.throttled)} of the periods"
        said.append(f"{stopped}, usually {share(usual.throttled)}")
    if one.stolen_more:
        said.append(f"the hypervisor took {share(now.steal)} of the CPUs, usually {share(usual.steal)}")
    if one.waits_more and not said and cpus and others[0] >= max(TIMES * others[1], others[1] + MORE_WAITING):
        said.append(f"other processes keep {others[0]:.1f} of {cpus} CPUs busy, usually {others[1]:.1f}")
    if one.waits_more and not said:
        waits = f"its program waits for a CPU {share(now.waiting or 0.0)} of the time in which it could run"
        said.append(f"{waits}, usually {share(usual.waiting or 0.0)}")
    if said:
        return "; ".join(said)
    limit = f"stopped by its CPU limit as usual ({share(now.throttled)})" if now.throttled else "no throttling"
    return f"steal {share(now.steal)}, {limit}"
