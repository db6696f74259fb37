"""The program that load tasks are: compiled once from ``native/``, or, without a compiler, its stand-in in Python.

What the stand-in loses: its clock loop takes 0.2 to 0.3 us a pass instead of 25 ns, so the noise floor's
shortest gaps and the price of a clock reading are out of reach; a demand's unit is another piece of work, so it
cannot be compared with another machine's; it has no demand that misses the caches and no ping-pong.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[1]
SOURCES = ("worker.c", "demands.h", "sensors.h", "settings.h")
FLAGS = ("-O2", "-std=gnu11", "-o")
LIBRARIES = ("-lpthread", "-lm")
_COMPILING_S = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Helper:
    """How to start a load task."""

    command: tuple[str, ...]
    native: bool
    identity: str
    """Changes when a unit of a demand could mean other work."""
    why: str = ""
    """Why it is not native."""


def cache_folder() -> Path:
    """Return where the compiled helper is kept: the service's cache, root's, or the user's."""
    given = os.environ.get("CACHE_DIRECTORY", "").split(":")[0]
    if given:
        return Path(given)
    if os.geteuid() == 0:
        return Path("/var/cache/specmine")
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "specmine"


def helper(cache: Path | None = None, *, native: bool = True) -> Helper:
    """Return the compiled helper, compiling it if need be, or the stand-in.

    Parameters
    ----------
    cache : path, optional
        Where the compiled program is kept; by default where this user's caches are.
    native : bool
        False: take the stand-in in any case.
    """
    digest = hashlib.sha256()
    for name in SOURCES:
        digest.update((FOLDER / "native" / name).read_bytes())
    digest.update(" ".join((*FLAGS, os.uname().machine)).encode())
    identity = digest.hexdigest()[:16]
    why = "not wanted"
    if native:
        target = (cache or cache_folder()) / f"load-{identity}"
        why = "" if _usable(target) else _compile(target)
        if not why:
            return Helper(command=(str(target),), native=True, identity=identity)
    script = str(FOLDER / "load" / "python_worker.py")
    return Helper(command=(sys.executable, "-I", "-S", script), native=False, identity=f"python-{identity}", why=why)


def _usable(target: Path) -> bool:
    """Tell whether the program is there and nobody else could have put it there."""
    try:
        stat = target.stat()
    except OSError:
        return False
    return stat.st_uid in (0, os.geteuid()) and not stat.st_mode & 0o022 and os.access(target, os.X_OK)


def _compile(target: Path) -> str:
    """Compile the helper; return what went wrong, '' if nothing did."""
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        return "no C compiler is installed"
    try:
        target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with tempfile.TemporaryDirectory(dir=target.parent) as folder:
            made = Path(folder) / "load"
            command = [compiler, *FLAGS, str(made), str(FOLDER / "native" / SOURCES[0]), *LIBRARIES]
            done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=_COMPILING_S)
            if done.returncode:
                return f"{compiler} failed: {(done.stderr.strip().splitlines() or ['no message'])[-1]}"
            made.chmod(0o755)
            made.replace(target)
    except (OSError, subprocess.SubprocessError) as error:
        return f"the load helper could not be compiled: {error}"
    return ""
