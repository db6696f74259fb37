"""A daemon that watches one program, in a folder of its own, and what it is asked meanwhile."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import yaml

from bench.faults.programs.cpu_group import CpuGroup
from bench.faults.programs.fault import Service
from bench.lib.child_processes import running
from specmine.daemon.socket.client import PATIENCE_S, DaemonConnection, NoDaemon

RECOVER = "30s"
CPU_WEIGHT, CPUS = 20, 0.5
"""As systemd/specmined.service has them. In the group of all others it would hardly run where all CPUs are taken."""


class Daemon:
    """A daemon that watches one program, in a folder."""

    def __init__(self, folder: Path, budget: dict[str, str], watch: list[str]) -> None:
        """Remember where its socket is, what it may cost, and which functions it is told to watch."""
        self.folder, self.budget, self.watch = folder, budget, watch

    @contextmanager
    def watching(self, service: Service) -> Iterator[None]:
        """Run it."""
        configuration = {
            "programs": [{"name": service.name, **({"exe": service.exe} if service.by_exe else {"pid": service.pid})}],
            "budget": self.budget,
            "functions": {"watch": self.watch},
            "store": {"path": str(self.folder / "store.db")},
            "socket": {"path": str(self.folder / "socket")},
            "metrics": {"listen": "off"},
            "host_lock": str(self.folder / "lock"),
            "kill_switch": str(self.folder / "off"),
            "experiments": {"enabled": False},
            "violations": {"recover_after": RECOVER},
        }
        path = self.folder / "specmined.yaml"
        path.write_text(yaml.safe_dump(configuration))
        command = (Path(sys.executable).parent / "specmined", "--config", path)
        group = CpuGroup(f"specmine-bench-daemon-{service.name}")
        with (self.folder / "log").open("wb") as log, running(command, stderr=log) as daemon, group:
            group.weigh(CPU_WEIGHT)
            group.limit(CPUS)
            group.add(daemon.pid)
            while not (self.folder / "socket").exists():
                if daemon.poll() is not None:
                    raise SystemExit((self.folder / "log").read_text())
                time.sleep(0.1)
            yield

    def functions(self) -> list[dict[str, Any]]:
        """Return what it knows of each function."""
        command = (Path(sys.executable).parent / "specmine", "assertions", "--format", "json")
        asked = subprocess.run([*command, "--socket", self.folder / "socket"], capture_output=True, check=False)
        return list(json.loads(asked.stdout)["functions"]) if asked.stdout else []

    def slower(self) -> list[dict[str, Any]] | None:
        """Return open violations that are slower, in the daemon's order; None: it does not answer.

        What is asked each two seconds must be cheap: the daemon answers within its own budget.
        """
        try:
            with closing(DaemonConnection(self.folder / "socket", timeout_s=PATIENCE_S)) as connection:
                listed = connection.ask({"command": "violations"})["violations"]
        except NoDaemon:  # or one that got no CPU time for so long
            return None
        return [each for each in listed if each["state"] == "open" and each["direction"] == "slower"]

    def short_of_cpu(self) -> bool:
        """Tell whether it says that what it watches is short of CPU time."""
        try:
            with closing(DaemonConnection(self.folder / "socket", timeout_s=PATIENCE_S)) as connection:
                return any(each["short_of_cpu"] for each in connection.ask({"command": "status"})["watched"])
        except NoDaemon:
            return False

    def acknowledge(self) -> None:
        """Acknowledge all that stands."""
        command = Path(sys.executable).parent / "specmine"
        for name in {each["function"] for each in self.slower() or ()}:
            subprocess.run([command, "acknowledge", name, "--socket", self.folder / "socket"], check=False)
