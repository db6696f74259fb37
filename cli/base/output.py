"""Where results go: standard output, whole or not at all to a file; progress and errors to standard error."""

from __future__ import annotations

import errno
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from specmine.model.errors import InputError

DEFAULT_WIDTH, NARROWEST, WIDEST = 80, 50, 200


def emit(text: str) -> None:
    """Write to standard output. A reader that went away is no error: the rest is not wanted."""
    emit_bytes(text.encode("utf-8", "backslashreplace"))


def emit_bytes(data: bytes) -> None:
    """Write to standard output as ``emit`` does."""
    if sys.stdout is None:
        raise InputError("cannot write to standard output: it is closed")
    try:
        sys.stdout.flush()
        binary = getattr(sys.stdout, "buffer", None)
        if binary is None:
            sys.stdout.write(data.decode("utf-8", "backslashreplace"))
        else:
            binary.write(data)
        sys.stdout.flush()
    except BrokenPipeError:
        silence_stdout()
    except OSError as error:
        silence_stdout()
        raise InputError(f"cannot write to standard output: {error.strerror}") from error


def silence_stdout() -> None:
    """Let nothing more come out, so that the interpreter does not complain when it flushes at its end."""
    with suppress(OSError, ValueError):
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, sys.stdout.fileno())
        os.close(null)


def write_stderr(text: str) -> None:
    """Write one line to standard error."""
    with suppress(OSError, ValueError):
        print(" ".join(text.split("\n")), file=sys.stderr, flush=True)


def width() -> int:
    """Return the number of columns to fill: those of the terminal, 80 in a pipe, COLUMNS above both."""
    return max(NARROWEST, min(shutil.get_terminal_size((DEFAULT_WIDTH, 24)).columns, WIDEST))


class OutputFile:
    """A file that is proved writable at once and gets its content at the end, whole or not at all.

    Devices and pipes cannot be replaced: they are written directly.
    """

    def __init__(self, path: str | Path) -> None:
        """Prepare the file.

        Raises
        ------
        InputError
            If it cannot be written.
        """
        self.path = Path(path)
        self._target = Path(os.path.realpath(path))
        self._temporary: Path | None = None
        try:
            if self._target.is_dir():
                raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
            if self._target.exists() and not self._target.is_file():
                self._fd = os.open(self._target, os.O_WRONLY | os.O_CLOEXEC)
                return
            if self._target.exists() and not os.access(self._target, os.W_OK):
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
            self._fd, name = tempfile.mkstemp(prefix=f".{self._target.name[:100]}.", dir=self._target.parent)
            self._temporary = Path(name)
        except OSError as error:
            raise InputError(f"cannot write {path}: {error.strerror}") from error

    def write(self, content: str | bytes) -> None:
        """Put the content in place; text becomes UTF-8.

        Raises
        ------
        InputError
            If it cannot be written; what was there before stays.
        """
        try:
            with os.fdopen(self._fd, "wb") as file:
                self._fd = -1
                file.write(content if isinstance(content, bytes) else content.encode("utf-8", "backslashreplace"))
                file.flush()
                if self._temporary is not None:
                    os.fchmod(file.fileno(), _mode_for(self._target))
                    os.fsync(file.fileno())
            if self._temporary is not None:
                self._temporary.replace(self._target)
                self._temporary = None
        except BrokenPipeError:
            return
        except OSError as error:
            raise InputError(f"cannot write {self.path}: {error.strerror}") from error

    def __enter__(self) -> Self:
        """Return the file."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Leave nothing behind that was not finished."""
        if self._fd >= 0:
            os.close(self._fd)
        if self._temporary is not None:
            self._temporary.unlink(missing_ok=True)


@contextmanager
def destination(path: Path | None, *, never_lost: bool = False) -> Iterator[Callable[[str | bytes], None]]:
    """Yield what writes the result: to a file that is proved writable before, or to standard output.

    Parameters
    ----------
    path : Path, optional
    never_lost : bool
        Nobody can get this result again: it goes to standard output if the file cannot be written after all.
    """
    if path is None:
        yield _emit_any
        return
    with OutputFile(path) as file:

        def write(content: str | bytes) -> None:
            try:
                file.write(content)
            except InputError as error:
                if never_lost:
                    _emit_any(content)
                    raise InputError(f"{error.message}: the result is on standard output") from error
                raise

        yield write


def _emit_any(content: str | bytes) -> None:
    if isinstance(content, bytes):
        emit_bytes(content)
    else:
        emit(content)


def check_writable(path: str | Path, what: str) -> None:
    """Raise InputError if a file could be neither made nor changed at ``path``; ``what`` names it."""
    target = Path(path)
    if target.is_dir():
        raise InputError(f"cannot write {what} {path}: {os.strerror(errno.EISDIR)}")
    if not target.parent.is_dir():
        raise InputError(f"cannot write {what} {path}: there is no folder {target.parent}")
    if not os.access(target if target.exists() else target.parent, os.W_OK):
        raise InputError(f"cannot write {what} {path}: no right to write there, or the disk is read-only")


def _mode_for(target: Path) -> int:
    if target.exists():
        return target.stat().st_mode & 0o777
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask
