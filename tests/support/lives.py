"""A daemon over a simulated program, with a clock on which things can be planned."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from specmine.daemon.config.loader import parse_config
from specmine.daemon.config.tree import Config
from specmine.daemon.controller.state import ControllerState
from specmine.daemon.service import Daemon, Seams
from specmine.daemon.socket.client import ask
from specmine.daemon.system.systemd import Notifier
from specmine.daemon.worker.process import InlineWorker
from specmine.model.batch import Source
from tests.support.planted import paper_program, unimodal
from tests.support.simulated import FakeClock, SimulatedSource

SECOND = 10**9


class EventClock(FakeClock):
    """A clock that calls functions at planned times, in the thread of the loop."""

    def __init__(self) -> None:
        super().__init__()
        self.plans: list[tuple[int, Callable[[], object]]] = []

    def sleep_until_ns(self, deadline_ns: int, wake: int = -1) -> None:
        """Pass the time and do what is due."""
        super().sleep_until_ns(deadline_ns)
        while self.plans and self.plans[0][0] <= self.now:
            self.plans.pop(0)[1]()


def config_text(folder: Path, more: str = "") -> str:
    """Return a configuration whose files lie in a folder."""
    return f"""
programs: [{{name: shop, exe: /opt/app}}]
store: {{path: {folder}/store/s.db}}
socket: {{path: {folder}/run/s.sock}}
host_lock: {folder}/run/host.lock
metrics: {{listen: "127.0.0.1:0"}}
{more}
"""


class Life:
    """A daemon over a simulated program."""

    def __init__(self, folder: Path, *, config: str = "", notifier: Notifier | None = None, **simulated: Any) -> None:
        self.path = folder / "c.yaml"
        self.path.write_text(config or config_text(folder))
        self.config = parse_config(self.path.read_text())
        self.socket = Path(self.config.socket.path)
        self.clock = EventClock()
        self.simulated = simulated
        self.source: SimulatedSource | None = None
        self.lowered: list[int] = []
        """When the daemon took the lowest priority."""
        seams = Seams(
            source=self._source,
            clock=self.clock,
            worker=InlineWorker,
            notifier=notifier or Notifier({}),
            lower_priority=self._lowered,  # the process of the tests stays as it is
        )
        self.daemon = Daemon(self.config, self.path, seams)

    def _lowered(self) -> None:
        self.lowered.append(self.clock.now)

    def _source(self, config: Config) -> Source:
        self.source = SimulatedSource([*paper_program(), unimodal()], self.clock, **self.simulated)
        return self.source

    def at(self, seconds: int, act: Callable[[], object]) -> None:
        """Plan something."""
        self.clock.plans.append((self.clock.now + seconds * SECOND, act))
        self.clock.plans.sort(key=lambda each: each[0])

    def rewrite(self, text: str) -> None:
        """Change the configuration file."""
        self.path.write_text(text)

    def ask(self, **request: Any) -> dict[str, Any]:
        """Ask the daemon over its socket."""
        return ask(self.socket, request)

    def run(self, seconds: int) -> ControllerState:
        """Live for a simulated time."""
        self.at(seconds, lambda: self.daemon.stop("signal"))
        return self.daemon.run()
