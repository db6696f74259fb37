"""A command of the product in a process of its own, made by a fork: what it said, took and broke."""

from __future__ import annotations

import contextlib
import json
import os
import resource
import signal
import sys
import time
import unicodedata
import warnings
from collections.abc import Callable, Collection
from dataclasses import dataclass

MAY_TAKE_S, MAY_HANG_S = 30.0, 240.0
"""CPU time and time of one command; beyond it is ended, and has broken a rule."""
MAY_HOLD = 1 << 30
"""Resident memory of one command, bytes; the modules that a fork inherits are in it."""
_ALLOWED = {"\n", "\t"}
_NOISE = (b"Traceback", b"internal error", b"Warning:", b"Exception ignored", b"Fatal Python error")
_BACKWARD = {*map(chr, range(0x202A, 0x202F)), *map(chr, range(0x2066, 0x206A))}


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """How one command ended."""

    code: int
    """Exit code, minus the number of a signal."""
    out: bytes
    err: bytes
    cpu_s: float
    peak_bytes: int


def run_forked(work: Callable[[], int]) -> Done:
    """Do work in a forked process and return its outcome; it is ended when it takes too long."""
    out, err = os.memfd_create("out"), os.memfd_create("err")
    sys.stdout.flush()
    sys.stderr.flush()
    pid = os.fork()
    if pid == 0:
        _be_the_command(work, out, err)
    until_s = time.monotonic() + MAY_HANG_S
    found, status, used = os.wait4(pid, os.WNOHANG)
    while not found:
        if time.monotonic() > until_s:
            os.kill(pid, signal.SIGKILL)
        time.sleep(0.002)
        found, status, used = os.wait4(pid, os.WNOHANG)
    texts = []
    for fd in (out, err):
        texts.append(os.pread(fd, os.fstat(fd).st_size, 0))
        os.close(fd)
    return Done(
        code=os.waitstatus_to_exitcode(status),
        out=texts[0],
        err=texts[1],
        cpu_s=used.ru_utime + used.ru_stime,
        peak_bytes=used.ru_maxrss << 10,
    )


def _be_the_command(work: Callable[[], int], out: int, err: int) -> None:
    code = 99
    try:
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(out, 1)
        os.dup2(err, 2)
        sys.stdout, sys.stderr = sys.__stdout__, sys.__stderr__
        warnings.resetwarnings()  # of a test run; a user has none of its filters
        resource.setrlimit(resource.RLIMIT_CPU, (int(MAY_TAKE_S), int(MAY_TAKE_S) + 5))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        code = work()
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else 98
    except BaseException:
        import traceback  # noqa: PLC0415

        os.write(2, traceback.format_exc().encode(errors="replace"))
    finally:
        with contextlib.suppress(OSError, ValueError):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)


def broken_rule(done: Done, codes: Collection[int], *, is_json: bool = False) -> str:
    """Return what a command did that none may do, '' if nothing.

    Parameters
    ----------
    done : Done
    codes : collection of int
        Exit codes that the contract has for it.
    is_json : bool
        Whether it was to write JSON.
    """
    noise = next((each for each in _NOISE if each in done.err or each in done.out), None)
    last = done.err.decode(errors="replace").strip().splitlines()[-1:]
    if noise is not None:
        return f"{noise.decode()}: {last}"
    if done.code not in codes:
        return f"exit code {done.code}: {last}" if done.code >= 0 else f"ended by {signal.Signals(-done.code).name}"
    lines = [line for line in done.err.splitlines() if line.startswith((b"specmine: ", b"specmined: "))]
    if done.code == 2 and (len(lines) != 1 or done.out):
        return f"{len(lines)} lines about an error, {len(done.out)} bytes of output: {done.err[-300:]!r}"
    if done.peak_bytes > MAY_HOLD:
        return f"held {done.peak_bytes >> 20} MB"
    letters = (forbidden_letter(done.out.replace(b"\r\n", b"\n")), forbidden_letter(done.err))  # CSV ends lines so
    if any(letters):
        return f"wrote {letters[0] or letters[1]}"
    return _broken_json(done.out) if is_json and done.code != 2 and done.out else ""


def forbidden_letter(text: bytes) -> str:
    """Return the first byte or letter that would command a terminal or turn a line round, '' if there is none."""
    try:
        letters = text.decode()
    except UnicodeDecodeError as error:
        return f"no UTF-8 (byte {error.start})"
    found = next(
        (each for each in set(letters) - _ALLOWED if unicodedata.category(each) == "Cc" or each in _BACKWARD), ""
    )
    return repr(found) if found else ""


def _broken_json(text: bytes) -> str:
    def refuse(word: str) -> None:
        raise ValueError(f"{word} in JSON")

    try:
        json.loads(text, parse_constant=refuse)
    except ValueError as error:
        return str(error)
    return ""
