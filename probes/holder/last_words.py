"""One line about an error that nothing handles, with its place. Standard library only: helpers write it to the log.

A traceback there would be many lines without a name, of which nobody can tell whose they are.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import traceback
from collections.abc import Callable

MOST_FRAMES = 6


def last_words(error: BaseException) -> str:
    """Return what an error is and where it came from, the innermost place first."""
    frames = traceback.extract_tb(error.__traceback__)[: -MOST_FRAMES - 1 : -1]
    places = ", ".join(f"{os.path.basename(each.filename)}:{each.lineno} {each.name}" for each in frames)
    said = " ".join(f"{type(error).__name__}: {error}".split()).removesuffix(":")
    return f"{said} (at {places})" if places else said


def say_last_words(who: str, failed: Callable[[str], None] | None = None) -> None:
    """Have each error that nothing handles said in one line, in any thread, also where Python would ignore it.

    Parameters
    ----------
    who : str
        The process, for the line.
    failed : callable, optional
        Gets the line of an error that ended a thread, instead of standard error.
    """

    def say(what: str) -> None:
        with contextlib.suppress(OSError, ValueError):  # standard error may be closed
            print(f"{who}: {what}, please report this", file=sys.stderr, flush=True)

    def of_thread(each: threading.ExceptHookArgs) -> None:
        if each.exc_value is not None and not isinstance(each.exc_value, SystemExit):
            name = each.thread.name if each.thread is not None else "?"
            (failed or say)(f"a thread failed ({name}): {last_words(each.exc_value)}")

    def of_main(kind: type[BaseException], error: BaseException, _: object) -> None:
        if not issubclass(kind, KeyboardInterrupt):
            say(f"it failed: {last_words(error)}")

    def of_nobody(each: sys.UnraisableHookArgs) -> None:
        if each.exc_value is not None:
            say(f"an error was ignored: {last_words(each.exc_value)}")

    sys.excepthook, threading.excepthook, sys.unraisablehook = of_main, of_thread, of_nobody
