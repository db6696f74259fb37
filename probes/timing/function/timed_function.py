"""One timed function: what is asked for, where its probe is, and its parts, each of which owns its fields."""

from __future__ import annotations

from dataclasses import dataclass, field

from specmine.model.batch import Watch
from specmine.model.function import Function
from specmine.model.probe_kind import PROBE_KINDS, ProbeKind
from specmine.probes.symbols.module import Module

from .attachment import Attachment
from .handler_times import HandlerTimes
from .open_calls import OpenCalls
from .return_sites import ReturnSites
from .schedule import Schedule
from .slot import Hits, Slot
from .token_bucket import TokenBucket
from .window import Window

Totals = tuple[Hits, int]
"""Running totals of hits, and of ns with the probes on."""


@dataclass(slots=True, eq=False)
class TimedFunction:
    """One timed function, with its slot in the kernel's arrays."""

    function: Function
    module: Module
    watch: Watch
    slot: Slot
    open_calls: OpenCalls
    returns: ReturnSites = field(default_factory=ReturnSites)
    may_isolate: bool = True
    """False: probes inside its calls stay on; its durations are kept, with their uncertainty."""
    lifetime: str = ""
    """The lifetime that is observed now."""
    site: int = 0
    """File offset of the probe."""
    stepped: bool = False
    """The probe's instruction is single-stepped."""
    ready: bool = False
    """The site is known and the gate allows it."""
    by_site: bool = False
    """Returns are timed by ordinary probes at return sites, not by replacing return addresses."""
    isolated: bool = False
    """Probes inside its calls contaminate its durations: it is timed while they are off."""
    contaminated: int = 0
    """Windows discarded for that."""
    owed: bool = False
    """The last one was: what its on-phase was for is still to come."""
    unclear: int = 0
    """Windows discarded since calls of a recursion began where no return site was probed."""
    turned: bool = False
    """Probes inside its calls contaminate its durations, its calls are looked into, and it is its turn to be alone."""
    window: Window | None = None
    attachment: Attachment = field(default_factory=Attachment)
    schedule: Schedule = field(default_factory=Schedule)
    handlers: HandlerTimes = field(default_factory=HandlerTimes)
    bucket: TokenBucket = field(init=False)
    probe: ProbeKind = field(init=False)
    """What kind of probe is asked for."""
    reported: Totals = (Hits(0), 0)
    """At the last activity."""

    def __post_init__(self) -> None:
        """Make the bucket of the slot."""
        self.bucket = TokenBucket(self.slot)
        self.probe = PROBE_KINDS[self.watch.kind]

    @property
    def sampled(self) -> bool:
        """True if some of its calls are timed and the others only counted."""
        return self.watch.timed_share < 1 and not self.by_site and not self.function.unsampled

    @property
    def shares(self) -> bool:
        """True if its on-phase, or the next one, is shared with callees: its calls are looked into then."""
        return self.watch.looks_inside and not (self.isolated and self.turned)

    @property
    def alone(self) -> bool:
        """True if the probes inside its calls must be off in its on-phase, which is its own."""
        return self.isolated and not self.shares and not self.watch.follows

    def request(self, watch: Watch) -> None:
        """Go on with other parameters; a look inside begins with an on-phase shared with callees."""
        if watch.inside_of != self.watch.inside_of:
            self.turned = False
        self.watch, self.probe = watch, PROBE_KINDS[watch.kind]

    def turn(self) -> None:
        """Have the next on-phase alone after a shared one, and the other way round."""
        self.turned = not self.turned

    def describe(self, function: Function) -> None:
        """Replace the description of the function."""
        self.function = function

    def place(self, offset: int, *, stepped: bool) -> None:
        """Take in where the probe goes."""
        self.site, self.stepped, self.ready = offset, stepped, True

    def time_returns(self, *, by_site: bool) -> None:
        """Choose how returns are timed; durations of both ways do not mix in one window."""
        if by_site != self.by_site:
            self.by_site, self.window = by_site, None

    def choose(self, lifetime: str) -> None:
        """Choose the lifetime; an observation is of one lifetime."""
        if lifetime != self.lifetime:
            self.lifetime, self.window = lifetime, None

    def open_window(self, window: Window) -> None:
        """Begin a window."""
        self.window = window

    def drop_window(self) -> None:
        """Discard the open window."""
        self.window = None

    def discard_contaminated(self) -> None:
        """Note that a window was discarded since probes inside the calls contaminated it; another is owed."""
        self.isolated = self.owed = True
        self.contaminated += 1

    def take_owed(self) -> bool:
        """Tell whether a window is owed; from now on none is."""
        owed, self.owed = self.owed, False
        return owed

    def discard_unclear(self) -> None:
        """Note that a window was discarded since outermost calls were not known."""
        self.unclear += 1

    def report(self, totals: Totals) -> None:
        """Note what is reported."""
        self.reported = totals

    def in_window(self, counter: str) -> int:
        """Return how far a counter has moved since the start of the open window; 0 without a window."""
        return self.slot.count(counter) - getattr(self.window, counter) if self.window is not None else 0
