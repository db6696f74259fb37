"""The command from its first moment on."""

from __future__ import annotations

import subprocess
import sys

from tests.support.patience import patient

# An import that takes long: the first one of the command line raises the signal for itself
INTERRUPTED = """
import os, signal, sys
class Slow:
    def find_spec(self, name, *_):
        if name == "specmine.cli.main":
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Slow())
sys.argv = ["specmine", "--version"]
from specmine.cli.entry import main
main()
"""


def test_an_interrupt_during_the_imports_is_quiet() -> None:
    """^C soon after the start showed a traceback of imports, and ended by the signal."""
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED], capture_output=True, text=True, timeout=patient(60), check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


def test_an_ignored_interrupt_stays_ignored() -> None:
    """As behind nohup."""
    ignoring = f"import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)\n{INTERRUPTED}"
    done = subprocess.run(
        [sys.executable, "-c", ignoring], capture_output=True, text=True, timeout=patient(60), check=False
    )
    assert (done.returncode, done.stdout[:9], done.stderr) == (0, "specmine ", "")
