"""A real PostgreSQL in a temporary folder, with TLS, as somebody who is not root."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import psycopg

from specmine.fleet.certificates import issue, make_authority

PATIENCE_S = 30.0 * float(os.environ.get("SPECMINE_TEST_PATIENCE", "1"))


def binaries() -> Path | None:
    """Return the folder of the newest PostgreSQL of this machine; None if there is none."""
    found = [path.parent for path in Path("/usr/lib/postgresql").glob("*/bin/postgres")]
    return max(found, key=lambda path: float(path.parent.name), default=None)


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


@dataclass(slots=True)
class Postgres:
    """One server; ``start`` and ``kill`` it as often as wanted."""

    folder: Path
    """Its data, socket and certificates."""
    fsync: bool = False
    port: int = field(default_factory=_free_port)
    _process: subprocess.Popen[bytes] | None = None
    _made: int = 0

    @property
    def authority(self) -> Path:
        """Folder of the certificate authority."""
        return self.folder / "authority"

    @property
    def data(self) -> Path:
        """Folder of the cluster."""
        return self.folder / "data"

    def url(self, database: str = "postgres") -> str:
        """Return the URL of its superuser."""
        return f"postgresql://postgres@/{database}?host={self.folder}&port={self.port}"

    def tls_url(self, database: str) -> str:
        """Return what a host is given: where to send."""
        return f"host=localhost port={self.port} dbname={database}"

    def create(self) -> None:
        """Make the cluster."""
        at = binaries()
        assert at is not None
        self.folder.mkdir(parents=True, exist_ok=True)
        self.folder.chmod(0o755)
        make_authority(self.authority)
        issue(self.authority, "localhost", self.folder / "server", server=True)
        self._give(self.folder)
        self._run(at / "initdb", "-D", self.data, "-U", "postgres", "-A", "trust", "-N", "-E", "UTF8", "--locale=C")
        server = self.folder / "server"
        with (self.data / "postgresql.conf").open("a", encoding="utf-8") as file:
            file.write(
                f"listen_addresses = '127.0.0.1'\nport = {self.port}\nunix_socket_directories = '{self.folder}'\n"
                f"fsync = {'on' if self.fsync else 'off'}\nssl = on\nssl_cert_file = '{server}/host.crt'\n"
                f"ssl_key_file = '{server}/host.key'\nssl_ca_file = '{self.authority}/ca.crt'\n"
                f"ssl_crl_file = '{self.authority}/ca.crl'\n"
                "max_connections = 40\nshared_buffers = 32MB\nautovacuum_naptime = 5s\n"
            )
        (self.data / "pg_hba.conf").write_text(
            "local all postgres trust\nhostssl all +specmine_host all cert\nhost all all all reject\n", encoding="utf-8"
        )

    def start(self) -> None:
        """Start it and wait until it answers."""
        at = binaries()
        assert at is not None
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [at / "postgres", "-D", self.data], stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                start_new_session=True, user=_user(), group=_group(),
            )  # fmt: skip
        deadline = time.monotonic() + PATIENCE_S
        while True:
            try:
                psycopg.connect(self.url(), connect_timeout=2).close()
                return
            except psycopg.Error:
                assert self._process.poll() is None, (self.folder / "log").read_text()[-2000:]
                assert time.monotonic() < deadline, "PostgreSQL did not start"
                time.sleep(0.02)

    def kill(self) -> None:
        """Kill it with all its processes, as the kernel would when memory runs out."""
        process = self._process
        assert process is not None
        # the backends are no children of ours: each is in a session of its own
        parents = [process.pid, *_children(process.pid)]
        for pid in parents:
            os.kill(pid, signal.SIGKILL)
        process.wait(PATIENCE_S)
        self._process = None
        deadline = time.monotonic() + PATIENCE_S
        while any(Path(f"/proc/{pid}").exists() and not _zombie(pid) for pid in parents):
            assert time.monotonic() < deadline
            time.sleep(0.01)
        (self.data / "postmaster.pid").unlink(missing_ok=True)  # that process is gone, see above

    def stop(self) -> None:
        """End it at once and in order."""
        if self._process is not None:
            self._process.send_signal(signal.SIGINT)
            self._process.wait(PATIENCE_S)
            self._process = None

    def new_database(self, template: str = "template1") -> str:
        """Make a database and return its name."""
        self._made += 1
        name = f"fleet{self._made}"
        with psycopg.connect(self.url(), autocommit=True) as db:
            db.execute(f"CREATE DATABASE {name} TEMPLATE {template}")
        return name

    def _run(self, *command: str | Path) -> None:
        done = subprocess.run(command, check=False, capture_output=True, text=True, user=_user(), group=_group())
        assert done.returncode == 0, done.stdout + done.stderr

    @staticmethod
    def _give(folder: Path) -> None:
        if os.geteuid() == 0:
            owner = _somebody()
            for path in (folder, *folder.rglob("*")):
                shutil.chown(path, owner.pw_uid, owner.pw_gid)


@contextmanager
def running(folder: Path, *, fsync: bool = False) -> Iterator[Postgres]:
    """Run a server in a folder that it makes; ``fsync``: it writes to disk as in use, so that it may be killed."""
    server = Postgres(folder, fsync=fsync)
    server.create()
    server.start()
    try:
        yield server
    finally:
        server.stop()


def _somebody() -> pwd.struct_passwd:
    return pwd.getpwnam("nobody")


def _user() -> int | None:
    return _somebody().pw_uid if os.geteuid() == 0 else None


def _group() -> int | None:
    return _somebody().pw_gid if os.geteuid() == 0 else None


def _children(pid: int) -> list[int]:
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == pid:
            found.append(int(stat.parent.name))
    return found


def cpu_seconds(server: Postgres) -> float:
    """Return the CPU time of a server and of all processes it had, s."""
    assert server._process is not None
    total = 0.0
    for pid in (server._process.pid, *_children(server._process.pid)):
        with suppress(OSError):
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            used = sum(map(int, fields[11 : 15 if pid == server._process.pid else 13]))
            total += used / os.sysconf("SC_CLK_TCK")
    return total


def _zombie(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True
