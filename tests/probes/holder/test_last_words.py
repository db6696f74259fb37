"""What helpers say of errors that nothing handles."""

from __future__ import annotations

import subprocess
import sys

from specmine.probes.holder.last_words import last_words

BROKEN = """
import threading
from specmine.probes.holder.last_words import say_last_words

class Left:
    def __del__(self):
        raise KeyError("left")

def run():
    raise OSError(5, "in a thread\\nof two lines")

say_last_words("helper")
one = threading.Thread(target=run, name="second")
one.start()
one.join()
left = Left()
del left
raise ValueError("at last")
"""

ENDS = """
import os
import signal
import socket
import sys
from specmine.probes.holder import holder

class Ended:
    def __init__(self, *_): pass
    def run(self): pass
    def close_all(self):
        os.kill(os.getpid(), signal.SIGUSR1)
        print(signal.SIGUSR1 in signal.pthread_sigmask(signal.SIG_BLOCK, []))
        print(signal.getsignal(signal.SIGUSR1) is signal.SIG_IGN)

holder.Holder, holder.keep_for_links = Ended, lambda **_: None
one, other = socket.socketpair()
sys.argv = ["holder", str(one.detach()), str(other.detach()), "multi"]
holder.main()
"""


def test_each_error_is_one_line_with_its_place() -> None:
    """In a thread, where Python ignores it, and at the end: whose it is, what and where; no traceback."""
    done = subprocess.run([sys.executable, "-c", BROKEN], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    thread, ignored, last = done.stderr.splitlines()
    assert thread.startswith("helper: a thread failed (second): OSError: [Errno 5] in a thread of two lines (at ")
    assert ignored.startswith("helper: an error was ignored: KeyError: 'left' (at ") and "__del__" in ignored
    assert last.startswith("helper: it failed: ValueError: at last (at ") and ":18 <module>" in last


def test_deep_errors_name_the_innermost_places() -> None:
    """A recursion that fails is still one line."""

    def descend(left: int) -> None:
        if not left:
            raise ArithmeticError
        descend(left - 1)

    try:
        descend(50)
    except ArithmeticError as error:
        said = last_words(error)
    assert said.count("descend") == 6 and said.startswith("ArithmeticError (at test_last_words.py:")


def test_a_signal_at_the_end_is_no_error() -> None:
    """Python reports one that came just before it was ignored, so it is blocked: that has no such gap."""
    done = subprocess.run([sys.executable, "-c", ENDS], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "True\nFalse\n", "")
