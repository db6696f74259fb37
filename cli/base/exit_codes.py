"""Exit codes: the only place where errors become one."""

from __future__ import annotations

import traceback
from collections.abc import Callable

import click

from specmine.model.errors import NoData, SpecmineError
from specmine.model.text import escaped

from .output import silence_stdout, write_stderr

FINE, VIOLATED, USAGE, NO_DATA, HOST, INTERRUPTED = 0, 1, 2, 3, 4, 130


def exit_code(work: Callable[[], object], *, debug: bool) -> int:
    """Do the work and return its exit code; errors become one line on standard error.

    Parameters
    ----------
    work : callable
        Returns an exit code, or anything else for 0.
    debug : bool
        Show where an error came from.
    """
    try:
        result = work()
        return result if isinstance(result, int) and not isinstance(result, bool) else FINE
    except (Exception, KeyboardInterrupt) as error:
        code, line = _outcome(error, debug=debug)
        if debug and line:
            traceback.print_exc()
        if line:
            write_stderr(line)
        return code


def _outcome(error: BaseException, *, debug: bool) -> tuple[int, str]:
    """Return the exit code and the line that says what happened; '' if there is nothing to report."""
    match error:
        case click.exceptions.Exit():
            outcome = error.exit_code, ""
        case KeyboardInterrupt() | EOFError() | click.Abort():
            outcome = INTERRUPTED, "specmine: interrupted"
        case click.exceptions.NoArgsIsHelpError():
            error.show()
            outcome = USAGE, ""
        case click.ClickException():
            outcome = USAGE, f"specmine: {_usage_line(error)}"
        case SpecmineError():
            outcome = error.exit_code, f"specmine: {escaped(str(error))}"
        case MemoryError():
            outcome = HOST, "specmine: out of memory: raise the limit (ulimit -v), or free some"
        case BrokenPipeError():
            silence_stdout()
            outcome = FINE, ""
        case OSError() if error.strerror and error.filename is None:  # a file is named; this was a standard stream
            outcome = USAGE, f"specmine: cannot read or write: {error.strerror}"
        case _:
            what = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
            hint = "" if debug else "; run `specmine --debug ...` for the traceback"
            outcome = USAGE, f"specmine: internal error: {escaped(what)}{hint}"
    return outcome


def data_code(asserted: bool) -> int:
    """Return the code of a command that was to learn something."""
    return FINE if asserted else NO_DATA


def no_data(message: str, remedy: str = "") -> NoData:
    """Return the error of a command that has nothing to show yet."""
    return NoData(message, remedy=remedy)


def _usage_line(error: click.ClickException) -> str:
    message = escaped(error.format_message()).rstrip(".")
    context = getattr(error, "ctx", None)
    where = f"; see `{context.command_path} --help`" if context is not None else ""
    if message[1:2].islower():  # not of NAME
        message = message[:1].lower() + message[1:]
    return f"{message}{where}"
