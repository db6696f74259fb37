"""One program run to its end: with a time limit, a sign of life from time to time, and nothing left behind."""

from __future__ import annotations

import contextlib
import ctypes
import os
import pwd
import shlex
import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from specmine.model.clock import Clock
from specmine.model.errors import InputError
from specmine.model.text import age

from .benchmark import CALLS, OUTPUT

_PR_SET_PDEATHSIG = 1
_LIBC = ctypes.CDLL(None)
LARGEST_OUTPUT = 1 << 30
_LOOK_NS = 1_000_000_000
_TAIL = 2000


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """How a program ended."""

    seconds: float
    status: int | None
    """Exit status, minus the signal; None if it was ended by us."""
    why: str = ""
    """Why it is no result; '' if it is one."""
    given_up: bool = False
    """The lease was lost, or the runner is to end: it is nobody's failure."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a program runs, and what it gets."""

    folder: Path
    stdout: Path
    stderr: Path
    user: str = ""
    as_invoker: bool = True
    """Without a user: as who called sudo, not as root."""
    environment: Mapping[str, str] | None = None


def command_line(command: str, calls: int, output: Path) -> list[str]:
    """Return a command split as a shell would, its placeholders filled in."""
    return [each.replace(CALLS, str(calls)).replace(OUTPUT, str(output)) for each in shlex.split(command)]


def execute(
    argv: Sequence[str],
    place: Place,
    clock: Clock,
    *,
    timeout_s: float,
    alive: Callable[[], bool] = lambda: True,
    every_s: float = 10.0,
) -> Ended:
    """Run a program to its end.

    Parameters
    ----------
    argv : sequence of str
    place : Place
    clock : Clock
    timeout_s : float
        After it the program is killed, with all of its session's process group.
    alive : callable
        Called every ``every_s``; False ends the program.
    every_s : float

    Notes
    -----
    The program dies with this process: a killed runner leaves nothing that disturbs the next run.
    """
    account = account_of(place.user) if place.user or place.as_invoker else None
    began = clock.now_ns()
    try:
        with place.stdout.open("wb") as out, place.stderr.open("wb") as error:
            process = subprocess.Popen(
                argv, cwd=place.folder, stdin=subprocess.DEVNULL, stdout=out, stderr=error, start_new_session=True,
                env={**os.environ, **(place.environment or {}), **_home(account)}, preexec_fn=_dies_with(os.getpid()),  # noqa: PLW1509  (no threads here)
                user=account.pw_uid if account else None, group=account.pw_gid if account else None,
                extra_groups=os.getgrouplist(account.pw_name, account.pw_gid) if account else None,
            )  # fmt: skip
    except (OSError, ValueError, subprocess.SubprocessError) as failed:
        return Ended(
            seconds=0.0, status=None, why=f"cannot run {argv[0]}: {getattr(failed, 'strerror', None) or failed}"
        )
    why, given_up, ended, next_sign = "", False, False, began + int(every_s * 1e9)
    descriptor = os.pidfd_open(process.pid)
    try:
        while True:
            now = clock.now_ns()
            clock.sleep_until_ns(min(now + _LOOK_NS, next_sign, began + int(timeout_s * 1e9)), wake=descriptor)
            ended = os.waitid(os.P_PIDFD, descriptor, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
            now = clock.now_ns()
            if ended:
                break
            if now - began >= timeout_s * 1e9:
                why = f"it did not end within {age(timeout_s)}"
            elif place.stdout.stat().st_size > LARGEST_OUTPUT:
                why = f"it printed more than {LARGEST_OUTPUT >> 20} MiB"
            elif now >= next_sign:
                next_sign = now + int(every_s * 1e9)
                given_up = not alive()
            if why or given_up:
                break
    finally:
        seconds = (clock.now_ns() - began) * 1e-9
        os.close(descriptor)
        with contextlib.suppress(OSError):
            os.killpg(process.pid, signal.SIGKILL)  # also what it left in the background; it is not reaped yet
        process.wait()
    if not ended:
        return Ended(seconds=seconds, status=None, why=why or "its runner ended", given_up=given_up)
    status = process.returncode
    if status:
        how = f"exit status {status}" if status > 0 else f"killed by {signal.Signals(-status).name}"
        why = f"{how}{_told(place.stderr)}"
    return Ended(seconds=seconds, status=status, why=why)


def account_of(user: str) -> pwd.struct_passwd | None:
    """Return the account that commands run under: the one named, or who called sudo; None to stay who we are."""
    if user:
        try:
            return pwd.getpwnam(user)
        except KeyError:
            raise InputError(f"there is no user {user}") from None
    if os.geteuid() == 0 and os.environ.get("SUDO_UID", "").isdigit():
        with contextlib.suppress(KeyError):
            return pwd.getpwuid(int(os.environ["SUDO_UID"]))
    return None


def _home(account: pwd.struct_passwd | None) -> dict[str, str]:
    if account is None:
        return {}
    return {"HOME": account.pw_dir, "USER": account.pw_name, "LOGNAME": account.pw_name}


def _dies_with(parent: int) -> Callable[[], None]:
    def ask() -> None:
        _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != parent:
            os._exit(1)

    return ask


def _told(path: Path) -> str:
    """Return the last line of what a program wrote to standard error."""
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - _TAIL))
        lines = file.read().decode("utf-8", "replace").split("\n")
    last = next((each.strip() for each in reversed(lines) if each.strip()), "")
    return f": {last[:300]}" if last else ""
