"""Kill a daemon at some moment and see what is left of it; ``bench/overhead/killed_daemon.py`` shares it."""

from __future__ import annotations

import time
from dataclasses import dataclass

from specmine.daemon.controller.checkpoint import Record
from specmine.model.json_codec import decode
from specmine.store import StoreError, open_store
from tests.support.breakpoints import Text, family
from tests.support.product import Daemon, busy, seconds_until_clean, wait_for_probes, wait_until

FREE_S = 0.1
"""What is promised: so soon after the daemon's death the program has no probe left; judged by the bench alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kill:
    """What one kill showed."""

    moment_s: float
    """After the start of the daemon, or after its first probe."""
    probes: int
    """Bytes in the program's text that were not its own, just before, or before the host became busy."""
    free_s: float
    """Until all its pages were again what the files say."""
    stored: dict[str, int]
    """Observations by function, as the store holds them after the kill."""
    restored: dict[str, int]
    """The same as the next daemon told at its start."""

    @property
    def continued(self) -> bool:
        """True if the next daemon knew all that the store held."""
        return all(self.restored.get(function, -1) >= count for function, count in self.stored.items())


def kill(one: Daemon, program: int, moment_s: float, *, at_start: bool = False, while_on: bool = False) -> Kill:
    """Kill a daemon that has just been started, on a host without an idle CPU; look, and start the next.

    Parameters
    ----------
    one : Daemon
    program : int
        Pid of what it watches.
    moment_s : float
        When: seconds after the start, or after the first probe.
    at_start : bool
        Do not wait for the first probe.
    while_on : bool
        Wait for the next one as well: they are on for moments only.
    """
    assert one.process is not None
    if not at_start:
        wait_for_probes(program, one)
    time.sleep(moment_s)
    with Text(family(program)) as text:
        if while_on:
            wait_until(text.changed, "a probe", step_s=0.01)
        seen = len(text.changed())
        with busy():
            probes = seen or len(text.changed())
            one.process.kill()
            free_s = seconds_until_clean(text)
    one.process.wait()
    stored = observations_stored(one)
    one.start()
    known = one.first_answer()["functions"]
    restored = {f"{each['build_id']} {each['function']}": int(each["observations"]) for each in known}
    return Kill(moment_s=moment_s, probes=probes, free_s=free_s, stored=stored, restored=restored)


def observations_stored(one: Daemon) -> dict[str, int]:
    """Return how many observations of each function the store's records speak of."""
    try:
        with open_store(one.store, read_only=True) as store:
            contents = store.load()
    except StoreError:
        return {}
    return {
        f"{each.build_id} {each.name}": int(decode(Record, contents.states[each.key]).totals.get("observations", 0))
        for each in contents.functions
        if each.key in contents.states
    }
