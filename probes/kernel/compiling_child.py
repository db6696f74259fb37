"""Run the child that compiles and loads BPF programs; receive what it made as fds."""

from __future__ import annotations

import array
import errno
import json
import os
import select
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from specmine.model.errors import HelperError, HostError, ProbeError
from specmine.probes.holder.process_state import cpu_seconds, is_stopped
from specmine.probes.holder.time_scale import TIME_SCALE

from .work_folder import work_folder

_SCRIPT = Path(__file__).resolve().parents[1] / "compiler" / "__main__.py"
MOST_CPU_S, LONGEST_S = 60.0 * TIME_SCALE, 240.0 * TIME_SCALE
"""CPU time and time that a child may take: beside programs that want all CPUs, 2 s of the one may be minutes."""
LOOK_S, STOPPED_LOOKS = 0.25, 4
"""How often it is looked whether the child is stopped, and how often in a row it must be to be killed."""
PAUSES_S = (0.5, 2.0)
"""After a child that broke another is started, so often and after such pauses."""
END_S = 10.0 * TIME_SCALE
"""Time that a child may take to end after its answer."""
_MOST_FDS = 250


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What the child made."""

    mode: str
    """Kind of link that the self-test chose; '' if the request made none."""
    maps: dict[str, int]
    entries: dict[str, int]
    programs: dict[str, int]
    notes: tuple[str, ...]
    waiting: bool
    fields: bool
    """The programs read fields of the kernel's structs."""
    seconds: float
    cpu_seconds: float


def answer(
    interpreter: str,
    request: Mapping[str, object],
    fds: Sequence[int] = (),
    *,
    niceness: int = 0,
    given_up: threading.Event | None = None,
) -> Answer:
    """Run the child, and again after a pause if it breaks.

    Parameters
    ----------
    interpreter : str
        A Python that has bcc.
    request : mapping
        See ``probes/compiler/request.py``.
    fds : sequence of int
        Maps that go with the request.
    niceness : int
        Of the child, above ours.
    given_up : Event, optional
        Once it is set, the child is killed and HelperError raised.

    Raises
    ------
    HelperError
        Three children in turn were killed, were stopped or did not answer.
    HostError
        No privilege or no bcc.
    ProbeError
        The kernel refuses the programs.
    """
    given_up = given_up or threading.Event()
    for pause_s in PAUSES_S:
        try:
            return _run(interpreter, request, fds, niceness, given_up)
        except HelperError:
            if given_up.wait(pause_s):
                raise
    return _run(interpreter, request, fds, niceness, given_up)


def _run(
    interpreter: str,
    request: Mapping[str, object],
    fds: Sequence[int],
    niceness: int,
    given_up: threading.Event,
) -> Answer:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours, work_folder() as folder, tempfile.TemporaryFile() as words:
        try:
            with theirs:
                child = subprocess.Popen(
                    [interpreter, "-I", "-B", str(_SCRIPT), str(theirs.fileno()), str(niceness)],
                    pass_fds=[theirs.fileno()],
                    stdin=subprocess.DEVNULL,
                    stdout=words,
                    stderr=words,
                    cwd=folder,
                    env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "TMPDIR": folder, "HOME": folder},
                )
        except OSError as error:
            raise HostError(
                f"cannot run {interpreter}: {error.strerror}", remedy="change kernel.interpreter in the configuration"
            ) from error
        try:
            packed = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else []
            ours.sendmsg([json.dumps(request).encode()], packed)
            _await_answer(ours, child.pid, given_up)
            data, made = _receive(ours)
            child.wait(END_S)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise HelperError(f"the compiling child did not answer: {error}") from error
        finally:  # also at a signal: nobody else ends it
            child.kill()
            child.wait()
        words.seek(0)
        noise = words.read().decode(errors="replace").strip().splitlines()
    if not data:
        failed = HelperError if child.returncode < 0 else ProbeError  # killed, or of itself
        raise failed("the compiling child ended without an answer: " + " | ".join(noise[-3:]))
    return _answered(json.loads(data), made, interpreter, noise)


def _answered(told: dict[str, object], fds: list[int], interpreter: str, noise: list[str]) -> Answer:
    if not told["ok"]:
        kind, text = told["kind"], str(told["error"])
        if kind == "bcc":
            raise HostError(f"{interpreter} has no bcc ({text})", remedy="install python3-bpfcc")
        refused = os.strerror(errno.EPERM)
        if kind == "permission" or any(refused in line for line in noise):  # bcc only prints why it made no map
            raise HostError(
                f"the kernel does not permit BPF ({text})", remedy="run as root or with CAP_BPF and CAP_PERFMON"
            )
        raise ProbeError(f"{text} {' | '.join(noise[-3:])}".strip())
    maps, programs = told["maps"], told["programs"]
    assert isinstance(maps, list) and isinstance(programs, list)
    names = [m["name"] for m in maps]
    return Answer(
        mode=str(told["mode"]),
        maps=dict(zip(names, fds, strict=False)),
        entries={m["name"]: m["entries"] for m in maps},
        programs=dict(zip(programs, fds[len(names) :], strict=True)),
        notes=tuple(str(n) for n in told["notes"]) if isinstance(told["notes"], list) else (),
        waiting=bool(told["waiting"]),
        fields=bool(told["fields"]),
        seconds=float(str(told["seconds"])),
        cpu_seconds=float(str(told["cpu_seconds"])),
    )


def _await_answer(channel: socket.socket, pid: int, given_up: threading.Event) -> None:
    """Wait for the child's answer, or its end. TimeoutError if it is stopped, takes too much or is not wanted."""
    stopped, until_s = 0, time.monotonic() + LONGEST_S
    while not select.select([channel], [], [], LOOK_S)[0]:
        stopped = stopped + 1 if is_stopped(pid) else 0
        if given_up.is_set():
            raise TimeoutError("it is not needed any more")
        if stopped >= STOPPED_LOOKS or time.monotonic() > until_s or cpu_seconds(pid) > MOST_CPU_S:
            raise TimeoutError("it was stopped" if stopped else "it takes too long")


def _receive(channel: socket.socket) -> tuple[bytes, list[int]]:
    data, extra, _, _ = channel.recvmsg(1 << 18, socket.CMSG_SPACE(4 * _MOST_FDS))
    fds = array.array("i")
    for level, kind, payload in extra:
        if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
            fds.frombytes(payload[: len(payload) - len(payload) % 4])
    return data, list(fds)
