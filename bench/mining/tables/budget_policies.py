"""What utility gains: functions on a simulated clock, one of them observed at a time, by three policies."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np

from bench.mining.tables.distributions import observed
from specmine.mining.borders.inference import Inference, ObservationBorders, infer_stable_borders, utility_of
from specmine.mining.settings import MiningSettings
from specmine.model.histogram import Histogram
from specmine.model.observation import Observation

S = MiningSettings()
_SLOT_NS = 10**10
_CALLS = 1_000
_HELD = 40
_PARKED = 100  # slots for which a function that is not stable after the sample limit is left alone
_LIMIT = 60  # the sample limit here, as the runs are short

Of = Callable[[int], float]


@dataclass(frozen=True, kw_only=True)
class Workload:
    """Two classes of durations, the upper eight times as slow, by slot."""

    share: Of = lambda slot: 0.3
    """Share of the slow class."""
    scale: Of = lambda slot: 1.0
    """Factor of all durations."""
    changes: tuple[int, ...] = ()
    """Slots in which the share changes."""


def _wild(slot: int) -> float:
    return float(np.exp(np.random.default_rng(slot).uniform(0, 5)))


WORKLOADS = {
    "steady, one class": Workload(share=lambda slot: 0.0),
    "steady, two classes": Workload(),
    "switching once": Workload(share=lambda slot: 0.3 if slot < 500 else 0.5, changes=(500,)),
    "cyclic": Workload(share=lambda slot: 0.3 if slot // 150 % 2 == 0 else 0.6, changes=tuple(range(150, 900, 150))),
    "drifting 0.2 % a slot": Workload(scale=lambda slot: 1.002**slot),
    "never twice alike": Workload(scale=_wild),
}
PROGRAM = (
    *("steady, one class",) * 4,
    *("steady, two classes",) * 4,
    *("switching once",) * 4,
    *("cyclic",) * 3,
    *("drifting 0.2 % a slot",) * 3,
    *("never twice alike",) * 2,
)
_SLOTS = 900
POLICIES = ("equal shares", "utility", "utility, a third for checks")
HEAD = [
    "workload", "policy", "slots to the first stable model", "stable of the time", "slots to notice a change",
    "changes noticed", "share of observations", "of them on what is not stable",
]  # fmt: skip


@dataclass
class _Watched:
    """A function and what is known of it."""

    workload: str
    born: int
    past: list[Observation] = field(default_factory=list)
    borders: Mapping[Observation, ObservationBorders] = field(default_factory=dict)
    known: Inference | None = None
    last: int = -1
    unsettled: int = 0
    parked_until: int = 0
    first: int | None = None
    stable_slots: int = 0
    noticed: dict[int, int] = field(default_factory=dict)
    observations: int = 0
    on_unknown: int = 0

    def observe(self, slot: int, rng: np.random.Generator) -> None:
        """Add the observation of a slot."""
        workload = WORKLOADS[self.workload]
        slow = rng.random(_CALLS) < workload.share(slot)
        durations = rng.lognormal(np.log(2e4), 0.2, _CALLS) * np.where(slow, 8.0, 1.0) * workload.scale(slot)
        seen = observed(slot, Histogram.from_durations(durations))
        self.on_unknown += not self.stable
        self.observations += 1
        self.past = [*self.past, seen][-_HELD:]
        self.known, self.borders = infer_stable_borders(self.past, self.borders, self.known, S)
        self.last = slot
        if self.known.stable and self.first is None:
            self.first = slot
        self.unsettled = 0 if self.known.stable else self.unsettled + 1
        if self.unsettled >= _LIMIT:
            self.unsettled, self.parked_until = 0, slot + _PARKED
        start = self.known.start_ns if self.known.start_ns is not None else (slot + 1) * _SLOT_NS
        for change in workload.changes:
            if change <= slot and change not in self.noticed and start >= (change - 1) * _SLOT_NS:
                self.noticed[change] = slot - change

    @property
    def stable(self) -> bool:
        return self.known is not None and self.known.stable

    def utility(self, slot: int) -> float:
        return 1.0 if self.known is None else utility_of(self.known, slot * _SLOT_NS)


def _chosen(functions: list[_Watched], slot: int, policy: str) -> _Watched:
    there = [f for f in functions if f.born <= slot and f.parked_until <= slot] or functions[:1]
    if policy == POLICIES[0]:
        return min((f for f in functions if f.born <= slot), key=lambda f: f.last)
    settled = [f for f in there if f.stable]
    if policy == POLICIES[2] and settled and slot % 3 == 0:
        return min(settled, key=lambda f: f.last)
    return max(there, key=lambda f: (f.utility(slot), -f.last))


def run(policy: str, seed: int) -> list[_Watched]:
    """Observe one function in each slot."""
    rng = np.random.default_rng([seed, POLICIES.index(policy)])
    order = np.random.default_rng(seed).permutation(len(PROGRAM))
    # half of the functions are there from the start, the others are found one by one
    functions = [
        _Watched(workload=PROGRAM[which], born=max(0, place - len(PROGRAM) // 2) * 20)
        for place, which in enumerate(order)
    ]
    for slot in range(_SLOTS):
        _chosen(functions, slot, policy).observe(slot, rng)
        for each in functions:
            each.stable_slots += each.stable
    return functions


def table(cases: int) -> Iterator[list[object]]:
    """Yield a row for each workload and policy, means over the runs."""
    runs = {policy: [f for seed in range(cases) for f in run(policy, seed)] for policy in POLICIES}
    for workload, kind in WORKLOADS.items():
        for policy, all_of_it in runs.items():
            own = [f for f in all_of_it if f.workload == workload]
            delays = [d for f in own for d in f.noticed.values()]
            firsts = [f.first - f.born for f in own if f.first is not None]
            changes = len(kind.changes) * len(own)
            yield [
                workload,
                policy,
                float(np.mean(firsts)) if firsts else "-",
                float(np.mean([f.stable_slots / (_SLOTS - f.born) for f in own])),
                float(np.median(delays)) if delays else "-",
                f"{len(delays)} of {changes}" if changes else "-",
                float(sum(f.observations for f in own) / (_SLOTS * cases)),
                float(sum(f.on_unknown for f in own) / max(sum(f.observations for f in own), 1)),
            ]
    for policy, functions in runs.items():
        unknown = sum(f.on_unknown for f in functions) / sum(f.observations for f in functions)
        firsts = [f.first - f.born for f in functions if f.first is not None]
        yield ["all", policy, float(np.mean(firsts)), "", "", "", 1.0, unknown]
