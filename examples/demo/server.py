"""A stock Debian apache2 out of its packages, in a private folder: unpacked, configured, started, stopped.

Nothing is installed: the packages are downloaded and unpacked, and the server sees their libraries first.
"""

from __future__ import annotations

import os
import pwd
import random
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from examples.demo.processes import DIES_WITH_US, stop

PACKAGES = ("apache2-bin", "libapr1", "libaprutil1")
CHILDREN = 8
PAGE_WORDS = 1500
LEVEL = 1
"""Of compression, before the demo changes it."""
USER = "www-data"
LIBRARIES = "usr/lib/x86_64-linux-gnu"


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """A running server."""

    pid: int
    executable: Path
    libapr: Path
    addresses: tuple[str, str]
    configuration: Path
    semaphores: set[int]
    """Those that it has, or had."""
    others: frozenset[int]
    """Semaphores that were there before it."""


class SetupError(Exception):
    """The demo cannot run here; the message is one line that says why."""


def unpack(folder: Path) -> Path:
    """Download the packages and what they need beyond the installed ones; unpack all below the folder."""
    archives = folder / "archives"
    (archives / "partial").mkdir(parents=True)
    download = ["apt-get", "install", "--reinstall", "--download-only", "--no-install-recommends", "--yes"]
    download += ["--quiet=2", "-o", f"Dir::Cache::archives={archives}", "-o", "Debug::NoLocking=1"]
    # the sandbox user of apt cannot write here; as root apt says so once per package
    download += ["-o", "APT::Sandbox::User=root", *PACKAGES]
    if _quiet(download):
        error = _quiet(["apt-get", "update", "--quiet=2"]) or _quiet(download)
        if error:
            raise SetupError(f"apt-get cannot download {' '.join(PACKAGES)}: {error}")
    root = folder / "root"
    for archive in sorted(archives.glob("*.deb")):
        error = _quiet(["dpkg", "--extract", str(archive), str(root)])
        if error:
            raise SetupError(f"dpkg cannot unpack {archive.name}: {error}")
    shutil.rmtree(archives)
    return root


@contextmanager
def running(folder: Path, root: Path) -> Iterator[Server]:
    """Start the server on two free loopback ports; stop it, with its children and semaphores, at the end."""
    ports = free_ports(2)
    configuration = folder / "httpd.conf"
    template = Path(__file__).with_name("httpd.conf").read_text()
    for name, value in {
        "folder": folder,
        "modules": root / "usr/lib/apache2/modules",
        "first_port": ports[0],
        "second_port": ports[1],
        "children": CHILDREN,
        "user": USER,
        "level": LEVEL,
    }.items():
        template = template.replace(f"{{{name}}}", str(value))
    configuration.write_text(template)
    (folder / "run").mkdir()
    (folder / "pages").mkdir()
    # a page that takes some work to compress, the same in every run
    words = random.Random(1).choices([f"word{n}" for n in range(500)], k=PAGE_WORDS)
    (folder / "pages" / "index.html").write_text("<p>" + " ".join(words) + "</p>\n")
    _readable_by_children(folder)

    executable = root / "usr/sbin/apache2"
    before, mine = frozenset(_semaphores()), set[int]()
    process = subprocess.Popen(
        [*DIES_WITH_US, executable, "-f", configuration, "-D", "FOREGROUND"],
        env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LD_LIBRARY_PATH": str(root / LIBRARIES)},
        start_new_session=True,  # ^C is for the demo, which stops the server in order
        stdin=subprocess.DEVNULL,
    )
    try:
        wait_until_answering(process, ports[0], folder / "run" / "error.log")
        mine |= _semaphores() - before
        yield Server(
            pid=process.pid,
            executable=executable,
            libapr=(root / LIBRARIES / "libapr-1.so.0").resolve(),
            addresses=(f"127.0.0.1:{ports[0]}", f"127.0.0.1:{ports[1]}"),
            configuration=configuration,
            semaphores=mine,
            others=before,
        )
    finally:
        if not stop(process, 5):
            for semaphore in mine & _semaphores():  # a killed server leaves them
                _quiet(["ipcrm", "--semaphore-id", str(semaphore)])


def set_compression(server: Server, level: int) -> None:
    """Have the server compress by another level: the way of an administrator, without a restart of the program."""
    lines = server.configuration.read_text().splitlines()
    changed = [f"DeflateCompressionLevel {level}" if line.startswith("DeflateComp") else line for line in lines]
    server.configuration.write_text("\n".join(changed) + "\n")
    os.kill(server.pid, signal.SIGUSR1)  # what apachectl graceful sends: children end with their requests
    end = time.monotonic() + 5
    while server.semaphores >= _semaphores() - server.others and time.monotonic() < end:
        time.sleep(0.05)  # it makes its accept mutex anew
    server.semaphores.update(_semaphores() - server.others)


def free_ports(count: int) -> list[int]:
    """Return ports of the loopback that nobody listens on now."""
    with ExitStack() as stack:
        listeners = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(count)]
        return [listener.getsockname()[1] for listener in listeners]


def _readable_by_children(folder: Path) -> None:
    folder.chmod(0o755)  # a temporary folder is 0700, and the children are www-data


def wait_until_answering(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    """Return when a server can be connected to; SetupError with its last words if it does not start."""
    end = time.monotonic() + 10
    while time.monotonic() < end and process.poll() is None:
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        time.sleep(0.05)
    output = log.read_text(errors="replace").strip().splitlines() if log.exists() else []
    raise SetupError(f"apache2 does not start: {output[-1] if output else 'no message'}")


def _semaphores() -> set[int]:
    """Return the ids of the semaphores that belong to the user of apache2's children."""
    rows = [line.split() for line in Path("/proc/sysvipc/sem").read_text().splitlines()[1:]]
    owner = pwd.getpwnam(USER).pw_uid
    return {int(row[1]) for row in rows if int(row[4]) == owner}


def _quiet(command: list[str]) -> str:
    """Run a command; return '' or its last line of output."""
    environment = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    done = subprocess.run(
        command, check=False, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    if done.returncode == 0:
        return ""
    return (done.stdout.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
