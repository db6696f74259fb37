"""The holder as a child process: started, given a heartbeat, killed when it does not answer.

The thread that starts it also gives it its heartbeat until the end; the death of this thread is the holder's end.
"""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from queue import SimpleQueue

from specmine.probes.holder.process_state import is_stopped
from specmine.probes.holder.time_scale import TIME_SCALE, VARIABLE

BEAT_S = 1 / 3
"""Each heartbeat wakes two processes, and at five a second they took a fifth of what our own work may cost."""
HEARTBEAT_NICENESS = -15
"""Niceness of the heartbeat and the holder: next to no CPU time, but at once."""
STALL_S = 5.0 * TIME_SCALE
"""A loop without progress for so long gets no heartbeat, so that its probes are detached."""
STOPPED_BEATS = 2
"""Heartbeats without an answer after which a holder that is stopped is killed: in 0.7 to 1.0 s."""
SILENT_BEATS = round(9 * TIME_SCALE)
"""The same for one that is not: it may be busy making or closing a link, which takes a loaded kernel a while."""
END_S = 5.0 * TIME_SCALE


class Holder:
    """One holder, from its start to its end."""

    def __init__(
        self,
        channel: socket.socket,
        theirs: socket.socket,
        *,
        mode: str,
        progress: threading.Event,
        stop: threading.Event,
    ) -> None:
        """Start it with its end of the channel, which is closed here. OSError if it cannot be started.

        Parameters
        ----------
        channel, theirs : socket
        mode : str
            Kind of link.
        progress : Event
            Set whenever the daemon's loop turns.
        stop : Event
            Ends the heartbeat.
        """
        self.channel = channel
        self._progress, self._stop = progress, stop
        self._silent = False
        started: SimpleQueue[subprocess.Popen[bytes] | OSError] = SimpleQueue()
        self._beater = threading.Thread(target=self._run, args=(theirs, mode, started), daemon=True, name="heartbeat")
        self._beater.start()
        child = started.get()
        if isinstance(child, OSError):
            self._beater.join()
            raise child
        self.child = child

    def why_dead(self) -> str:
        """Return how it ended, '' if it has not."""
        if self._silent:
            return "it did not answer and was killed"
        with contextlib.suppress(subprocess.TimeoutExpired):  # its channel is closed a moment before it has ended
            self.child.wait(0.5)
        status = self.child.poll()
        return "" if status is None else f"it ended by signal {-status}" if status < 0 else f"it ended with {status}"

    def end(self) -> None:
        """Close the channel, on which it detaches all probes and ends, and wait for that."""
        self.channel.close()
        try:
            self.child.wait(END_S)
        except subprocess.TimeoutExpired:
            self.child.kill()
            self.child.wait()
        self._beater.join()

    def _run(self, theirs: socket.socket, mode: str, started: SimpleQueue[subprocess.Popen[bytes] | OSError]) -> None:
        """Start it and give it its heartbeat.

        The daemon has the lowest priority; this thread, and the holder with it, have a high one. Otherwise, on a busy
        host, a late heartbeat would detach the probes, or the probes would stay long after the daemon was killed.
        """
        _raise_priority()
        script = str(Path(__file__).resolve().parents[1] / "holder" / "__main__.py")
        pulse, answers = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        pulse.setblocking(False)
        with pulse:
            try:
                with theirs, answers:
                    ends = (theirs.fileno(), answers.fileno())
                    child = subprocess.Popen(
                        [sys.executable, "-I", "-S", script, *map(str, ends), mode],
                        pass_fds=ends,
                        stdin=subprocess.DEVNULL,
                        start_new_session=True,
                        cwd="/",
                        env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", VARIABLE: str(TIME_SCALE)},
                    )
            except OSError as error:
                started.put(error)
                return
            started.put(child)
            self._beat(pulse, child)

    def _beat(self, pulse: socket.socket, child: subprocess.Popen[bytes]) -> None:
        idle, unanswered, begun, last_s = 0.0, 0, False, time.monotonic()
        while not self._stop.wait(BEAT_S) and child.poll() is None:
            passed_s, last_s = time.monotonic() - last_s, time.monotonic()
            idle = 0.0 if self._progress.is_set() else idle + BEAT_S
            self._progress.clear()
            if _drained(pulse):
                unanswered, begun = 0, True
            elif passed_s > 2 * BEAT_S:
                unanswered = 0  # this thread did not run, and neither may the holder have
            if self._is_hung(child.pid, unanswered, begun=begun):
                self._silent = True
                child.kill()
                return
            if idle < STALL_S:
                unanswered += 1
                with contextlib.suppress(OSError):
                    pulse.send(b"b")

    @staticmethod
    def _is_hung(pid: int, unanswered: int, *, begun: bool) -> bool:
        """Tell whether a holder must be killed; one that is only starting has not ``begun`` to answer."""
        if unanswered < STOPPED_BEATS:
            return False
        return is_stopped(pid) or (begun and unanswered >= SILENT_BEATS)


def _drained(pulse: socket.socket) -> bool:
    """Take the answers that have come; tell whether there were any."""
    found = False
    with contextlib.suppress(OSError):
        while pulse.recv(1):
            found = True
    return found


def _raise_priority() -> None:
    """Raise the priority of this thread as far as is permitted."""
    for niceness in (HEARTBEAT_NICENESS, 0):
        with contextlib.suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), niceness)
            return
