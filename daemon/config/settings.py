"""What the controller may spend and how it measures; recorded, so that a replay decides alike."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from specmine.mining.settings import MiningSettings

from .tree import Config

MS, SECOND = 1_000_000, 1_000_000_000
WINDOWS_A_MINE = 40
"""A mining of a given length has time for so many windows, one after the other."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Everything about the controller that a user can choose."""

    overhead: float = 0.01
    """CPU time added to the watched programs' threads, as a share of theirs."""
    floor_ns: int = MS
    """The same per second and program, below which ``overhead`` does not bind."""
    verification: float = 1 / 3
    """Share of ``overhead`` reserved for checking assertions."""
    agent: float = 0.0
    """CPU time of our own processes, as a share of one CPU; 0: nothing is promised."""
    pace: float = 1.0
    """How much further apart on-phases come than they could, to save our own CPU time."""
    window_calls: int = 1000
    check_calls: int = 1000
    """The same of windows that finished functions are checked by, as planned."""
    window_ns: int = 10 * SECOND
    minimum_calls: int = 200
    limit_ns: int = 60 * SECOND
    verify_every_ns: int = 60 * SECOND
    recover_after_ns: int = 300 * SECOND
    """A violation closes when the function has held again for so long."""
    adopt_after_ns: int = 86_400 * SECOND
    """A new build is judged by the one before for so long."""
    shares: bool = False
    """Whether hosts of a fleet share the work: what others observe is left to them."""
    own_places: float = 0.25
    """Share of the functions learned at a time that the fleet does not decide on."""
    sampling_hertz: int = 49
    watch: tuple[str, ...] = ()
    """Globs over function names; if there are any they replace sampling."""
    ignore: tuple[str, ...] = ()
    mining: MiningSettings = field(default_factory=MiningSettings)

    def for_duration(self, duration_ns: int | None) -> Settings:
        """Shorten the windows where the whole mining takes but minutes: a function needs some fifteen of them."""
        if duration_ns is None:
            return self
        window_ns = min(self.window_ns, max(SECOND, duration_ns // WINDOWS_A_MINE))
        return replace(self, window_ns=window_ns, limit_ns=min(self.limit_ns, 10 * window_ns))


def settings_of(config: Config) -> Settings:
    """Take from the configuration what the controller needs."""
    return Settings(
        overhead=config.budget.overhead,
        floor_ns=config.budget.floor_ns,
        verification=config.budget.verification,
        agent=config.budget.agent,
        window_calls=config.windows.calls,
        check_calls=config.windows.calls,
        window_ns=config.windows.length_ns,
        minimum_calls=config.windows.minimum_calls,
        limit_ns=config.windows.limit_ns,
        verify_every_ns=config.verify_every_ns,
        recover_after_ns=config.violations.recover_after_ns,
        adopt_after_ns=config.violations.adopt_after_ns,
        shares=config.fleet.connect is not None and config.fleet.mode == "share",
        own_places=config.fleet.own,
        sampling_hertz=config.sampling.rate,
        watch=config.functions.watch,
        ignore=config.functions.ignore,
        mining=config.mining,
    )
