"""A daemon over a simulated service that is deployed again and again, and lives for a moment each time."""

from __future__ import annotations

import urllib.request
from dataclasses import dataclass, replace
from pathlib import Path

from specmine.daemon.config.tree import Config
from specmine.model.batch import Batch, Lifetime, Source
from specmine.model.function import Function
from tests.support.lives import SECOND, Life
from tests.support.patience import patient
from tests.support.planted import Planted, Way
from tests.support.simulated import SimulatedSource

LIVES_A_BUILD = 10
BUILD_NS = 4 * SECOND
ONE_CLASS = ((1.0, 50_000.0, 0.2),)


@dataclass(frozen=True, kw_only=True)
class Deployed(Planted):
    """A function of one build."""

    build: str

    @property
    def function(self) -> Function:
        """Return it; its place is the same in each build."""
        return replace(super().function, build_id=self.build)


def service(build: str) -> tuple[Deployed, ...]:
    """Return a build: a function that is worth its windows, and some that never are."""
    ways = (Way(callers="main", weight=1.0, classes=ONE_CLASS),)
    idle = (Deployed(build=build, name=f"idle{n}", rate=0.0, own=0.001, inclusive=0.001, ways=ways) for n in range(4))
    return Deployed(build=build, name="work", rate=3000.0, own=0.6, inclusive=0.6, ways=ways), *idle


class RedeployedSource(SimulatedSource):
    """The service."""

    def __init__(self, life: Life) -> None:
        """Begin with the first build."""
        super().__init__(service("build0"), life.clock, seed=3)
        self.builds = self.lives = 0
        self.life = self._lifetime()

    def _lifetime(self) -> Lifetime:
        number = self.lives
        return Lifetime(
            id=f"boot:{number}:7", pid=number, executable="/opt/app", build_id=f"build{self.builds}",
            start_ns=self.clock.now_ns(), processes=1,
        )  # fmt: skip

    def poll(self, now_ns: int) -> Batch:
        """Run the present build; end its life, and deploy the next one, when it is time for that."""
        batch, life, before = super().poll(now_ns), self.life, self.builds
        observations = tuple(replace(each, lifetime=life.id) for each in batch.observations)
        batch = replace(batch, observations=observations, lifetimes=(life,) if not self.lives else ())
        number = (now_ns - self.began_ns) * LIVES_A_BUILD // BUILD_NS
        if number > self.lives:
            self.lives, self.builds = number, number // LIVES_A_BUILD
            self.life = self._lifetime()
            batch = replace(batch, lifetimes=(replace(life, processes=0), self.life))
        return self._deployed(batch) if self.builds != before else batch

    def _deployed(self, batch: Batch) -> Batch:
        """Return a batch that tells of a new build, and that nothing maps the last one any more."""
        last = batch.lifetimes[0].build_id
        self.windows.clear()
        planted = service(self.life.build_id)
        self.planted = {each.function.key: each for each in planted}
        self.keys = {each.name: each.function.key for each in planted}
        functions = tuple(each.function for each in planted)
        return replace(batch, functions=functions, mapped=(self.life.build_id,), unmapped=(last,))


class RedeployedLife(Life):
    """The daemon, asked and scraped as on any host."""

    source: RedeployedSource

    def __init__(self, folder: Path) -> None:
        """Plan nothing yet."""
        super().__init__(folder)
        self.scrapes = 0

    def _source(self, config: Config) -> Source:
        self.source = RedeployedSource(self)
        return self.source

    def look(self) -> None:
        """Ask for its status, and scrape it."""
        status = self.ask(command="status")
        with urllib.request.urlopen(f"http://{status['metrics']}/metrics", timeout=patient(60)) as page:
            self.scrapes += bool(page.read())
