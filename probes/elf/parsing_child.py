"""The process that parses binaries: started with a clean environment, killed if it is stopped, ended in any case."""

from __future__ import annotations

import contextlib
import select
import socket
import subprocess
import sys

from specmine.model.errors import HostError
from specmine.probes.holder.process_state import is_stopped
from specmine.probes.holder.time_scale import TIME_SCALE, VARIABLE

from .protocol import UNCONFINED

LOOK_NS, STOPPED_LOOKS = 500_000_000, 3
"""How often it is looked whether the child is stopped, and how often in a row it must be to be killed."""
_HANGS_UP_S = 0.2
_START = (
    "import sys; sys.path[:] = sys.argv[3:]\n"
    "from specmine.probes.elf.parser.main import main; main(int(sys.argv[1]), int(sys.argv[2]))"
)
_ENVIRONMENT = {
    "PATH": "/usr/bin:/bin",
    "LC_ALL": "C.UTF-8",
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "MALLOC_MMAP_THRESHOLD_": str(128 << 10),  # a large array goes back to the host once it is not needed
    VARIABLE: str(TIME_SCALE),
}


class ParsingChild:
    """At most one process at a time, and the socket to it."""

    def __init__(self, niceness: int) -> None:
        """Start nothing yet."""
        self._niceness = niceness
        self._epoll = select.epoll()
        self._process: subprocess.Popen[bytes] | None = None
        self.channel: socket.socket | None = None
        """The socket to it, None while there is none."""
        self._looked_ns = self._stopped = 0
        """When it was last looked whether it is stopped, and how often in a row it was."""

    def fileno(self) -> int:
        """Return a descriptor that is readable when an answer has come, or the child has ended; it never changes."""
        return self._epoll.fileno()

    def await_answer(self, limit_s: float) -> None:
        """Wait until that descriptor is readable, or for so long."""
        self._epoll.poll(limit_s)

    @property
    def pid(self) -> int | None:
        """Its process id, None while there is none."""
        return None if self._process is None else self._process.pid

    def start(self) -> socket.socket:
        """Start one; it imports specmine from where we did. HostError if that cannot be."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        folders = [each for each in sys.path if each.startswith("/")]
        channel = str(theirs.fileno())
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-B", "-c", _START, channel, str(self._niceness), *folders],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                cwd="/",
                env=_ENVIRONMENT,
                pass_fds=[theirs.fileno()],
            )
        except OSError as error:
            ours.close()
            raise HostError(f"the reader's process cannot be started: {error}") from error
        finally:
            theirs.close()
        ours.setblocking(False)
        self._epoll.register(ours.fileno(), select.EPOLLIN)
        self.channel = ours
        return ours

    def exit_code(self) -> int | None:
        """Return how it ended, after a moment if it has just closed its socket; None if it has not ended."""
        if self._process is None:
            return None
        try:
            return self._process.wait(timeout=_HANGS_UP_S)
        except subprocess.TimeoutExpired:
            return None

    def kill_stopped(self, now_ns: int) -> None:
        """Kill it if it was found stopped several times in a row; to be called while it has work to do."""
        if self._process is None or now_ns - self._looked_ns < LOOK_NS:
            return
        self._looked_ns = now_ns
        self._stopped = self._stopped + 1 if is_stopped(self._process.pid) else 0
        if self._stopped >= STOPPED_LOOKS:
            self._stopped = 0
            with contextlib.suppress(PermissionError):
                self._process.kill()

    def end(self) -> None:
        """End it, if there is one."""
        if self.channel is not None:
            self._epoll.unregister(self.channel.fileno())
            self.channel.close()
            self.channel = None
        if self._process is not None:
            with contextlib.suppress(PermissionError):  # without its socket it ends by itself
                self._process.kill()
                self._process.wait()
            self._process = None

    def close(self) -> None:
        """End it for good."""
        self.end()
        self._epoll.close()


def why_ended(code: int | None) -> str:
    """Return the end of a sentence that says how it ended."""
    if code is None:
        return ""
    if code == UNCONFINED:
        return ": it cannot be confined here, as `specmine doctor` says"
    return f" with status {code}" if code >= 0 else f" by signal {-code}"
