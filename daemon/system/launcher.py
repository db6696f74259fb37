"""The user's command: started when the probes are ready, and watched until its end."""

from __future__ import annotations

import contextlib
import ctypes
import os
import pwd
import shutil
import signal
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from specmine.model.batch import Batch, Lifetime, Request, Source, Started
from specmine.model.errors import InputError, SpecmineError
from specmine.probes.elf.client import Reader
from specmine.probes.process import proc
from specmine.probes.process.proc_files import path_as_text
from specmine.probes.process.regular_file import open_regular

_PR_SET_PDEATHSIG = 1
TERMINATE_NS = 5_000_000_000
"""Time between SIGTERM and SIGKILL."""


class Command:
    """A child that waits before its exec until it is released."""

    def __init__(self, argv: Sequence[str], user: str | None) -> None:
        """Fork; the child runs as the invoking user. Raises InputError for an unknown user."""
        self.argv = list(argv)
        account = _account(user)
        gate_read, self._gate = os.pipe()
        self._verdict, verdict_write = os.pipe()
        self.status: int | None = None
        """Exit status, or minus the signal that ended it."""
        self._began = ""
        """Its start time as the kernel counts it."""
        self._executed: tuple[str, str] = ("", "")
        """Path and name of what it executed."""
        libc, parent = ctypes.CDLL(None), os.getpid()
        self.pid = os.fork()
        if self.pid == 0:
            os.close(self._gate)
            os.close(self._verdict)
            self._child(gate_read, verdict_write, account, lambda: _end_with(libc, parent))
        os.close(gate_read)
        os.close(verdict_write)

    def _child(
        self, gate: int, verdict: int, account: pwd.struct_passwd | None, end_with_parent: Callable[[], None]
    ) -> None:
        try:
            if not os.read(gate, 1):
                os._exit(127)  # the parent ended before it released us
            os.set_inheritable(verdict, False)
            null = os.open(os.devnull, os.O_RDONLY)
            os.dup2(null, 0)
            os.dup2(2, 1)
            for number in (signal.SIGINT, signal.SIGPIPE, signal.SIGTERM, signal.SIGHUP):
                signal.signal(number, signal.SIG_DFL)
            os.setpgid(0, 0)  # the terminal's ^C is for specmine, which ends the command itself
            environment = dict(os.environ)
            if account is not None:
                os.initgroups(account.pw_name, account.pw_gid)
                os.setgid(account.pw_gid)
                os.setuid(account.pw_uid)
                environment |= {"HOME": account.pw_dir, "USER": account.pw_name, "LOGNAME": account.pw_name}
            end_with_parent()  # forgotten whenever the identity changes, so after that
            os.execvpe(self.argv[0], self.argv, environment)
        except OSError as error:
            os.write(verdict, os.strerror(error.errno or 0).encode())
        finally:
            os._exit(127)

    def release(self) -> None:
        """Let it exec. Raises InputError if that fails."""
        waiting = proc.process(self.pid)
        self._began = str(waiting.start_ticks) if waiting is not None else ""
        os.write(self._gate, b"x")
        os.close(self._gate)
        words = os.read(self._verdict, 4096).decode(errors="replace")  # ends empty when the exec closed it
        os.close(self._verdict)
        if words:
            self.wait()
            raise InputError(f"cannot run {self.argv[0]}: {words}")
        found = proc.process(self.pid)
        path = proc.executable_path(self.pid)
        name = proc.executed_name(self.pid, found.name) if found is not None and path else ""
        if not name:  # it has ended already
            path, name = os.path.realpath(shutil.which(self.argv[0]) or self.argv[0]), Path(self.argv[0]).name
        self._executed = path_as_text(path), path_as_text(name)

    def lifetime(self, now_ns: int) -> Lifetime:
        """Return what is known of it once it has ended, for one that nobody else has seen."""
        path, name = self._executed
        build_id = ""
        with contextlib.suppress(SpecmineError, OSError, ValueError), Reader() as reader:
            file = open_regular(path)
            try:
                build_id = reader.facts(file).build_id
            finally:
                os.close(file)
        return Lifetime(
            id=f"{proc.boot_id()}:{self.pid}:{self._began}",
            pid=self.pid,
            executable=path,
            build_id=build_id,
            start_ns=now_ns,
            processes=0,
            program=name,
            chosen=f"pid {self.pid}",
        )

    def poll(self) -> int | None:
        """Return its status if it has ended."""
        if self.status is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.status = os.waitstatus_to_exitcode(status)
        return self.status

    def wait(self) -> int:
        """Wait for its end."""
        if self.status is None:
            self.status = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        return self.status

    def signal(self, number: int) -> None:
        """Send a signal to the command and what it started in its process group."""
        if self.status is None:
            for target in (os.killpg, os.kill):
                with contextlib.suppress(OSError):
                    target(self.pid, number)
                    return

    def kill(self) -> None:
        """Make sure that it is gone."""
        if self.poll() is None:
            self.signal(signal.SIGKILL)
            self.wait()


def _end_with(libc: ctypes.CDLL, parent: int) -> None:
    """Have the kernel send us SIGTERM when our parent dies, even by SIGKILL."""
    libc.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
    if os.getppid() != parent:  # it died before
        os._exit(127)


class CommandSource:
    """A Source whose program is a command: it is released at the start, ended at the deadline, waited for."""

    def __init__(self, source: Source, command: Command, duration_ns: int | None) -> None:
        """Wrap the source that watches the command's pid."""
        self._source, self._command, self._duration_ns = source, command, duration_ns
        self._started_ns = self._asked_ns = 0
        self._seen = False
        """The source has told what the command executed."""
        self.stopping = False
        """Set to end the command before its time."""

    def start(self) -> Started:
        """Start the source, then let the command go."""
        started = self._source.start()
        self._command.release()
        self._started_ns = started.now_ns
        self._seen = any(each.build_id for each in started.lifetimes)
        return started

    def poll(self, now_ns: int) -> Batch:
        """Poll the source; the command's end is the program's end."""
        batch = self._source.poll(now_ns)
        self._seen = self._seen or any(each.build_id for each in batch.lifetimes)
        status = self._command.poll()
        if status is not None:
            if not self._seen:  # it ended before the source could look at it
                batch = replace(batch, lifetimes=(self._command.lifetime(self._started_ns),))
            return replace(batch, ended=True, exit_status=status)
        over = self._duration_ns is not None and now_ns >= self._started_ns + self._duration_ns
        if (over or self.stopping) and not self._asked_ns:
            self._asked_ns = now_ns
            self._command.signal(signal.SIGTERM)
        elif self._asked_ns and now_ns >= self._asked_ns + TERMINATE_NS:
            self._command.signal(signal.SIGKILL)
        return replace(batch, ended=False)

    def fileno(self, *, urgent: bool = False) -> int:
        """Return the source's descriptor."""
        return self._source.fileno(urgent=urgent)

    def apply(self, request: Request) -> None:
        """Pass the request on."""
        self._source.apply(request)

    def close(self) -> None:
        """Close the source."""
        self._source.close()


def _account(user: str | None) -> pwd.struct_passwd | None:
    """Return the account that the command runs under; None to stay who we are."""
    if user is not None:
        try:
            return pwd.getpwnam(user) if not user.isdigit() else pwd.getpwuid(int(user))
        except KeyError:
            raise InputError(f"there is no user {user}", remedy="name another with --user") from None
    if os.geteuid() == 0 and os.environ.get("SUDO_UID", "").isdigit():
        with contextlib.suppress(KeyError):
            return pwd.getpwuid(int(os.environ["SUDO_UID"]))
    return None
