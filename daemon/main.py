"""``specmined``: the daemon's command line."""

from __future__ import annotations

import argparse
import logging
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import NoReturn

from specmine import __version__
from specmine.daemon.config.host_check import check_named
from specmine.daemon.config.loader import load_config
from specmine.daemon.config.tree import Config
from specmine.daemon.system.descriptors import hold_standard_descriptors
from specmine.daemon.system.heap import settle_heap
from specmine.daemon.system.logging import leave_broken_stderr, set_up
from specmine.model.errors import HelperError, InputError, SpecmineError
from specmine.model.text import escaped
from specmine.probes.holder.last_words import say_last_words
from specmine.probes.kernel.privilege import check_bpf

DEFAULT_CONFIG = Path("/etc/specmine/specmined.yaml")
_ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
_log = logging.getLogger("specmine.daemon")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the daemon and return the exit code.

    0 stopped by a signal, or the programs ended; 1 something broke, a new start may help; 2 wrong usage, configuration,
    lock, store, port or socket; 4 this host cannot.
    """
    hold_standard_descriptors()
    parsed = parser().parse_args(arguments)
    try:
        return _run(parsed)
    except SpecmineError as error:
        if parsed.debug:
            raise
        with suppress(OSError):  # a full disk: the exit code says it all the same
            print(f"specmined: {escaped(' '.join(str(error).split()))}", file=sys.stderr)
        return 1 if isinstance(error, HelperError) else error.exit_code
    except KeyboardInterrupt:
        return 130
    finally:
        leave_broken_stderr()


def _run(parsed: argparse.Namespace) -> int:
    path = parsed.config or (DEFAULT_CONFIG if DEFAULT_CONFIG.exists() else None)
    config = load_config(path) if path else Config()
    check_named(config, str(path or "the default configuration"))
    if parsed.check_config:
        from .preview import preview  # noqa: PLC0415

        _print("\n".join([f"{path or 'the default configuration'}: fine", *preview(config)]))
        return 0
    if config.programs:  # without any the daemon says that
        check_bpf(config.kernel.interpreter)
    set_up(level=config.log.level, form=config.log.format)
    os.environ |= _ONE_THREAD  # before numpy is imported; a pool of threads would only cost memory
    from .service import Daemon  # noqa: PLC0415  checking a file must not need all of the daemon

    settle_heap()
    daemon = Daemon(config, path)
    say_last_words("specmined", daemon.fail)
    try:
        daemon.run()
    except SpecmineError:
        raise
    except Exception:
        if parsed.debug:
            raise
        _log.critical("the daemon failed, please report this", exc_info=True)
        return 1
    return 1 if daemon.failed else 0


class _Parser(argparse.ArgumentParser):
    """Reports a wrong usage in one line, as all errors are reported."""

    def error(self, message: str) -> NoReturn:
        """Exit with the one line."""
        self.exit(2, f"{self.prog}: {message}; see `{self.prog} --help`\n")


def _named_path(text: str) -> Path:
    if not text:
        raise argparse.ArgumentTypeError("the value is empty")
    return Path(text)


def _print(text: str) -> None:
    """Write a line to standard output, if there is one."""
    try:
        print(text, flush=True)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # or the interpreter complains when it flushes at its end
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        raise InputError(f"cannot write to standard output: {error.strerror}") from error


def parser() -> argparse.ArgumentParser:
    """Return what reads the command line; the manual page is written from it."""
    made = _Parser(
        prog="specmined",
        description="Mines performance assertions from running native programs, checks and exports them.",
    )
    made.add_argument(
        "--config",
        type=_named_path,
        metavar="FILE",
        help=f"the configuration (default: {DEFAULT_CONFIG} if it is there)",
    )
    made.add_argument(
        "--check-config", action="store_true", help="check the configuration, say what it would watch now, and leave"
    )
    made.add_argument("--debug", action="store_true", help="show where an error came from")
    made.add_argument("--version", action="version", version=f"specmined {__version__}")
    return made


if __name__ == "__main__":
    sys.exit(main())
