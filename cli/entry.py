"""Where the command ``specmine`` begins: before its modules are imported, so that ^C ends it quietly then, too."""

from __future__ import annotations

import os
import signal


def main() -> None:
    """Import the command line, run it and exit."""
    usual = signal.getsignal(signal.SIGINT) is signal.default_int_handler  # not ignored, as behind nohup or by `&`
    if usual:
        # An exception would be lost in a module that suppresses it, or come with a traceback of the import
        signal.signal(signal.SIGINT, lambda *_: os._exit(130))
    from .main import main as run  # noqa: PLC0415

    if usual:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    run()
