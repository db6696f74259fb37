"""The program that load tasks are, compiled from ``native/`` at the first use and stored for later ones."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from specmine.model.errors import HostError

FOLDER = Path(__file__).resolve().parents[1] / "native"
SOURCES = ("worker.c", "demands.h", "sensors.h", "settings.h")
FLAGS = ("-O2", "-std=gnu11", "-o")
LIBRARIES = ("-lpthread", "-lm")
COMPILERS = ("cc", "gcc", "clang")
REMEDY = "install gcc"
_QUIETER = "try again when the host has less to do"
_COMPILING_S = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerBinary:
    """The compiled load worker."""

    path: str
    identity: str
    """Hash of sources, flags and machine. It changes when a unit of a demand could mean other work."""


def cache_folder() -> Path:
    """Return where the compiled worker is stored: the service's cache, root's, or the user's."""
    given = os.environ.get("CACHE_DIRECTORY", "").split(":")[0]
    if given:
        return Path(given)
    if os.geteuid() == 0:
        return Path("/var/cache/specmine")
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "specmine"


def compiler() -> str | None:
    """Return the path of a C compiler, None if none is installed."""
    return next((path for name in COMPILERS if (path := shutil.which(name))), None)


def worker_binary(cache: Path | None = None) -> WorkerBinary:
    """Return the compiled load worker; compile it if need be.

    Parameters
    ----------
    cache : path, optional
        Where the compiled program is stored; by default where this user's caches are.

    Raises
    ------
    HostError
        If it has to be compiled and cannot be.
    """
    target = _target(cache)
    if not _usable(target):
        _compile(target)
    return WorkerBinary(path=str(target), identity=target.name.removeprefix("load-"))


def can_be_had(cache: Path | None = None) -> bool:
    """Return True if the worker is compiled already, or a compiler is installed."""
    return compiler() is not None or _usable(_target(cache))


def _target(cache: Path | None) -> Path:
    """Return where the worker of these sources is stored."""
    digest = hashlib.sha256()
    for name in SOURCES:
        digest.update((FOLDER / name).read_bytes())
    digest.update(" ".join((*FLAGS, os.uname().machine)).encode())
    return (cache or cache_folder()) / f"load-{digest.hexdigest()[:16]}"


def _usable(target: Path) -> bool:
    """Return True if the program is there and nobody else could have put it there."""
    try:
        stat = target.stat()
    except OSError:
        return False
    return stat.st_uid in (0, os.geteuid()) and not stat.st_mode & 0o022 and os.access(target, os.X_OK)


def _compile(target: Path) -> None:
    """Compile the worker; HostError if that fails."""
    path = compiler()
    if path is None:
        raise HostError("no C compiler is installed", remedy=REMEDY)
    try:
        target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with tempfile.TemporaryDirectory(dir=target.parent) as folder:
            made = Path(folder) / "load"
            command = [path, *FLAGS, str(made), str(FOLDER / SOURCES[0]), *LIBRARIES]
            done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=_COMPILING_S)
            if done.returncode:
                message = (done.stderr.strip().splitlines() or ["no message"])[-1]
                raise HostError(f"{path} failed: {message}", remedy=f"{REMEDY} and libc6-dev")
            made.chmod(0o755)
            made.replace(target)
    except subprocess.TimeoutExpired as error:
        raise HostError(
            f"compiling the load worker took longer than {_COMPILING_S} s: this host is busy", remedy=_QUIETER
        ) from error
    except (OSError, subprocess.SubprocessError) as error:
        raise HostError(f"the load worker could not be compiled: {error}", remedy=f"see to {target.parent}") from error
