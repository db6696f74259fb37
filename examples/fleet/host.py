"""A host of the demo: a name and a boot of its own in namespaces of its own, with a daemon, a store and a program."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
import uuid
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from examples.demo.processes import DIES_WITH_US
from specmine.fleet.certificates import issue
from specmine.fleet.database.connecting import connected
from specmine.fleet.database.hosts import enroll
from specmine.model.errors import SpecmineError
from specmine.model.observation import Observation
from specmine.store import read_store

FUNCTIONS = 4
"""Of the program, that are watched."""
_HERE = Path(__file__).resolve().parent
_ENTER = 'mount --bind "$1" /proc/sys/kernel/random/boot_id && hostname "$2" && shift 2 && exec "$@"'


@dataclass(slots=True)
class DemoHost:
    """One host; ``close`` ends all that it started."""

    name: str
    folder: Path
    environment: dict[str, str] = field(default_factory=dict)
    """Of its program."""
    _daemon: subprocess.Popen[bytes] | None = None
    _program: subprocess.Popen[bytes] | None = None

    @property
    def store(self) -> Path:
        """Its store."""
        return self.folder / "store.db"

    @property
    def program(self) -> Path:
        """The executable that it runs: a file of its own, as on a host of its own."""
        return self.folder / "shop"

    def enroll(self, database: str, tls: str, authority: Path) -> None:
        """Become part of a fleet, with a certificate, and write the configuration."""
        self.folder.mkdir(parents=True)
        with connected(database, autocommit=True) as db:
            role = enroll(db, self.name, {"role": "web"})
        issue(authority, role, self.folder / "keys")
        (self.folder / "boot_id").write_text(f"{uuid.uuid4()}\n", encoding="ascii")
        keys = self.folder / "keys"
        (self.folder / "specmined.yaml").write_text(
            f"programs: [{{name: shop, exe: {self.program}}}]\n"
            "functions: {watch: [parse, lookup, render, pack]}\n"
            "budget: {overhead: 5%, agent: 20%}\n"
            "windows: {calls: 500, length: 2s}\n"
            f"store: {{path: {self.store}}}\nmetrics: {{listen: off}}\nexperiments: {{enabled: false}}\n"
            f"socket: {{path: {self.folder}/socket}}\nhost_lock: {self.folder}/lock\n"
            f"fleet:\n  connect: {tls}\n  role: '{role}'\n  certificate: {keys}/host.crt\n"
            f"  private_key: {keys}/host.key\n  authority: {keys}/ca.crt\n  spool_folder: {self.folder}/spool\n",
            encoding="utf-8",
        )

    def install(self, build: Path) -> None:
        """Put a build of the program in place; what runs goes on with the old one."""
        new = self.folder / "shop.new"
        shutil.copy2(build, new)
        new.rename(self.program)

    def restart_program(self) -> None:
        """End the program and start it: another lifetime."""
        _end(self._program)
        self._program = subprocess.Popen([*DIES_WITH_US, self.program], env={**os.environ, **self.environment})

    def start_daemon(self) -> None:
        """Start specmined."""
        with (self.folder / "daemon.log").open("ab") as log:
            self._daemon = subprocess.Popen(
                [*DIES_WITH_US, *self._inside("specmine.daemon.main")], stdout=log, stderr=log, env=_environment()
            )

    def forward(self) -> None:
        """Send what was learned, as its timer would."""
        done = subprocess.run(
            self._inside("specmine.fleet.forwarding.main"), check=False, capture_output=True, text=True,
            env=_environment(),
        )  # fmt: skip
        if done.returncode:
            raise RuntimeError(f"{self.name} could not send: {done.stderr}{self._log()}")

    def wait_for_store(self, limit_s: float) -> None:
        """Wait until the daemon has a store that can be read: the file is there before its tables are."""
        deadline = time.monotonic() + limit_s
        while not self._store_is_readable():
            if time.monotonic() > deadline or self._daemon is None or self._daemon.poll() is not None:
                raise RuntimeError(f"specmined on {self.name} did not start: {self._log()}")
            time.sleep(0.1)

    def _store_is_readable(self) -> bool:
        try:
            with read_store(self.store):
                return True
        except SpecmineError:
            return False

    def windows(self) -> int:
        """Return the fewest windows that a function has in the program's newest lifetime."""
        assert self._program is not None
        with read_store(self.store) as store:
            seen = [each for each in store.read(Observation) if each.lifetime.split(":")[1] == str(self._program.pid)]
        number = Counter(each.function for each in seen)
        return min(number.values()) if len(number) == FUNCTIONS else 0

    def close(self) -> None:
        """End daemon and program."""
        _end(self._daemon)
        _end(self._program)

    def _inside(self, module: str) -> list[str]:
        """Return a command that runs a module as this host: own name, own boot."""
        inner = [sys.executable, "-m", module, "--config", str(self.folder / "specmined.yaml")]
        return [
            "unshare",
            "--mount",
            "--uts",
            "sh",
            "-c",
            _ENTER,
            "sh",
            str(self.folder / "boot_id"),
            self.name,
            *inner,
        ]

    def _log(self) -> str:
        path = self.folder / "daemon.log"
        return path.read_text(encoding="utf-8", errors="replace")[-1500:] if path.exists() else ""


def compiled(folder: Path, name: str, *options: str) -> Path:
    """Compile a build of the program."""
    path = folder / name
    source = _HERE / "shop.c"
    subprocess.run(["gcc", "-O1", "-g", "-Wl,--build-id", *options, "-o", path, source], check=True)
    return path


def _environment() -> dict[str, str]:
    root = _HERE.parents[1]
    return {**os.environ, "PYTHONPATH": f"{root / 'src'}:{root}"}


def _end(process: subprocess.Popen[bytes] | None) -> None:
    if process is None or process.poll() is not None:
        return
    process.terminate()
    try:
        process.wait(20)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
