"""Where the calls of one function return to, kept over its on-phases; whether its return sites are too busy."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

from specmine.model.function import Reason
from specmine.probes.symbols.module import Module
from specmine.probes.timing.text_pages import MAX_PAGES

MAX_SITES = 64
"""Return sites of one function; each costs its callers a trap whoever they call there."""
HOPELESS_CALLS = 300
"""Calls after which a function is given up if none of them returned to where a probe can be."""
UNFOLLOWED_CALLS, UNFOLLOWED_NS = 3000, 10_000_000_000
"""Calls, and time, after which it is given up if all returned to places that must not be trusted."""
PASSED_BY, PASSED_BY_LEAST = 6, 500
"""Traps for each call, and in all, at which a function's return sites are too busy; a timed call makes two."""
PASSED_BY_TIMES = 3
"""How often in a row that must be found: while links come and go return sites trap and the entry does not."""
UNCALLED_TIMES = 3
"""So often for one of these where no call was counted: the entry may not have been probed yet, and where return sites
are passed very often the bucket is empty by then."""

Caller = tuple[Module, int]
"""A return address: module and file offset."""


@dataclass(slots=True, eq=False)
class ReturnSites:
    """The return sites of one function."""

    sites: dict[Caller, int] = field(default_factory=dict)
    """File offset of the probe for each return address, -1 where none can be."""
    direct: set[Caller] = field(default_factory=set)
    """Those whose call names the function: no other's return passes there."""
    asked: set[Caller] = field(default_factory=set)
    stepped: set[Caller] = field(default_factory=set)
    """Those whose probe is single-stepped."""
    learned: list[Caller] = field(default_factory=list)
    """Learned since the last batch of links."""
    crowded: bool = False
    """There was no room for its probes in the pages of code that may be changed at once."""
    keys: list[bytes] = field(default_factory=list)
    """Entries of this attachment in the kernel's map."""
    checked: tuple[int, int] = (0, 0)
    """Traps and calls at the last check."""
    hits: int = 0
    """Traps that are not judged yet."""
    calls: int = 0
    passed_by: int = 0
    """How often in a row they were too many for the calls."""
    uncalled: int = 0
    """How often since then there were many, and no call at all."""

    @property
    def probed(self) -> list[Caller]:
        """The return addresses that a probe can stand for."""
        return [caller for caller, site in self.sites.items() if site >= 0]

    @property
    def answered(self) -> bool:
        """All that was asked for is known."""
        return len(self.asked) <= len(self.sites)

    @property
    def modules(self) -> set[Module]:
        """The modules that are known to call the function from a place that can be probed."""
        return {module for module, _ in self.probed}

    def begin(self) -> None:
        """Begin an attachment: all sites known so far are probed at once."""
        self.learned, self.crowded = [], False

    def ask(self, caller: Caller) -> None:
        """Note that the site of a return address was asked for."""
        self.asked.add(caller)

    def learn(self, caller: Caller, site: int, *, stepped: bool = False, direct: bool = False) -> None:
        """Take in where the probe for a return address goes; -1: nowhere."""
        self.sites[caller] = site
        if stepped:
            self.stepped.add(caller)
        if direct:
            self.direct.add(caller)
        self.learned.append(caller)

    def take_learned(self) -> list[Caller]:
        """Return and forget what was learned since the last call."""
        learned, self.learned = self.learned, []
        return learned

    def refuse(self, caller: Caller) -> None:
        """Note that no probe may stand for a return address."""
        self.sites[caller] = -1

    def forget(self, gone: Collection[Module]) -> None:
        """Forget callers in files that were closed."""
        if any(module in gone for module, _ in self.asked) or any(module in gone for module, _ in self.sites):
            self.sites = {caller: site for caller, site in self.sites.items() if caller[0] not in gone}
            self.learned = [caller for caller in self.learned if caller[0] not in gone]
            for callers in (self.asked, self.direct, self.stepped):
                callers -= {caller for caller in callers if caller[0] in gone}

    def crowd(self) -> None:
        """Note that there is no room for more probes."""
        self.crowded = True

    def add_key(self, key: bytes) -> None:
        """Note an entry of the kernel's map."""
        self.keys.append(key)

    def take_keys(self) -> list[bytes]:
        """Return and forget the entries of the kernel's map."""
        keys, self.keys = self.keys, []
        return keys

    def check_from(self, hits: int, calls: int) -> None:
        """Judge no traps and calls up to these: the probes were off."""
        self.checked = hits, calls

    def check(self, hits: int, calls: int) -> None:
        """Judge the traps since the last check, once there are enough of them or of the calls."""
        self.hits += hits - self.checked[0]
        self.calls += calls - self.checked[1]
        self.checked = hits, calls
        busy = self.hits > PASSED_BY * self.calls + PASSED_BY_LEAST
        if busy or PASSED_BY * self.calls >= PASSED_BY_LEAST:
            if busy and not self.calls:
                self.uncalled += 1
            else:
                self.passed_by, self.uncalled = (self.passed_by + 1, self.uncalled) if busy else (0, 0)
            self.hits = self.calls = 0

    def judge_anew(self) -> None:
        """Forget how busy they were: the function is given up, and another time they may be less so."""
        self.hits = self.calls = self.passed_by = self.uncalled = 0

    def verdict(self, calls: int, unlearnt: int, age_ns: int) -> Reason | None:
        """Return why the function cannot be timed by its return sites, None if it can as far as is known.

        Parameters
        ----------
        calls, unlearnt : int
            Outermost calls counted in the open window, and those that could not be timed.
        age_ns : int
            Of the window.
        """
        if len(self.probed) > MAX_SITES:
            text = f"it is called from more than {MAX_SITES} places, each of which would need a probe"
            return Reason(code="too-many-callers", text=text)
        if self.crowded:
            text = f"its return sites and those of others lie in more than {MAX_PAGES} pages of code"
            return Reason(code="many-pages", text=text)
        answered = self.sites and len(self.asked) == len(self.sites)
        if answered and calls >= HOPELESS_CALLS and not self.probed:
            text = "no call to it that was seen returns to an instruction that can be probed"
            return Reason(code="no-return-site", text=text)
        if answered and calls == unlearnt >= UNFOLLOWED_CALLS and age_ns >= UNFOLLOWED_NS:
            text = (
                "it is called through pointers or from other files only, and how its process leaves frames is not known"
            )
            return Reason(code="unfollowed", text=text)
        if self.passed_by + self.uncalled // UNCALLED_TIMES >= PASSED_BY_TIMES:
            text = "other calls end at the places that it returns to, so often that probes there cost too much"
            return Reason(code="busy-return-site", text=text)
        return None


def modules_of(callers: Iterable[Caller]) -> list[Module]:
    """Return the modules of return addresses, in the order of their paths."""
    return sorted({module for module, _ in callers}, key=lambda module: module.path)
