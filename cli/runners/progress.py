"""The progress of a run in the foreground on standard error, and the signals that stop it."""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import FrameType, TracebackType
from typing import TYPE_CHECKING, Any, Self

from specmine.analysis.documents import Document, functions_of, title
from specmine.analysis.wording.levels import present, sentence, uncertainty_of
from specmine.analysis.wording.states import FINISHED, LISTED, group_of
from specmine.cli.base.output import write_stderr
from specmine.cli.base.typography import speaks_unicode, typeset
from specmine.cli.text.functions import progress_table
from specmine.cli.text.specification import busiest_first, floor_of, floor_spent
from specmine.model.text import age, cells, escaped, plural, share

if TYPE_CHECKING:
    from rich.live import Live

LINE_EVERY_S = 5.0
FIRST_EVERY_S = 1.0
"""How often the first durations are looked for."""
DRAW_EVERY_S = 1.0
MOST_SHOWN = 8
_STOPPING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Progress:
    """Called repeatedly while mining works; returns whether to go on.

    The first SIGINT, SIGTERM or SIGHUP asks to stop and to show what was learned; the second SIGINT raises
    KeyboardInterrupt.
    """

    def __init__(self, *, duration_s: float | None, live: bool, now: Callable[[], float] = time.monotonic) -> None:
        """Prepare; nothing is shown or caught before ``with``."""
        self.stopping = False
        self._duration_s = duration_s
        self._wants_live = live
        self._now = now
        self._live: Live | None = None
        self._said: float | None = None
        self._asked = now()
        self._durations = False
        self._drawn = now()
        self._before: dict[int, Any] = {}

    def __call__(self, document: Callable[[], Document]) -> bool:
        """Show what is known if it is time for it; return True to go on, False to stop.

        Parameters
        ----------
        document : callable
            Returns the specification so far. Asked only when something is shown, once a second at most.
        """
        now = self._now()
        if self._live is not None:
            if now - self._drawn >= DRAW_EVERY_S:
                self._drawn = now
                known = document()
                self._live.update(self._picture(known, self._live.console.width))
        elif self._said is None:
            self._said = now
            write_stderr("specmine: watching")
        elif now - self._said >= LINE_EVERY_S or (not self._durations and now - self._asked >= FIRST_EVERY_S):
            self._asked = now
            known = document()
            timed = any(map(present, functions_of(known)))
            # what everybody waits for first is said as soon as it is there
            if now - self._said >= LINE_EVERY_S or timed:
                self._said, self._durations = now, timed
                write_stderr(self._line(known))
        return not self.stopping

    def __enter__(self) -> Self:
        """Catch signals and begin to show."""
        for number in _STOPPING:
            # nohup stays in force; but shells ignore SIGINT for jobs in the background, and a kill -INT is meant
            if number != signal.SIGHUP or signal.getsignal(number) is not signal.SIG_IGN:
                self._before[number] = signal.signal(number, self._stop)
        if self._wants_live:
            from rich.console import Console  # noqa: PLC0415
            from rich.live import Live  # noqa: PLC0415

            console = Console(stderr=True, markup=False, emoji=False, highlight=False)
            self._live = Live("starting ...", console=console, transient=True, refresh_per_second=4,
                              redirect_stdout=False, redirect_stderr=False)  # fmt: skip
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Show no more, give the signals back."""
        if self._live is not None:
            self._live.stop()
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _stop(self, number: int, _: FrameType | None) -> None:
        if self.stopping and number == signal.SIGINT:
            raise KeyboardInterrupt
        self.stopping = True

    def _line(self, document: Document) -> str:
        ending = "; stopping ..." if self.stopping else ""
        return f"specmine: {self._elapsed(document)}: {told_of(document)}{ending}"

    def _elapsed(self, document: Document) -> str:
        elapsed = age(float((document.get("collection") or {}).get("seconds") or 0.0))
        return f"{elapsed} of {age(self._duration_s)}" if self._duration_s is not None else elapsed

    def _picture(self, document: Document, columns: int) -> Any:
        from rich.text import Text  # noqa: PLC0415

        ending = "stopping ..." if self.stopping else "^C stops and prints what is known."
        return Text("\n".join(picture(document, self._elapsed(document), ending, columns)))


def told_of(document: Document) -> str:
    """Return how many functions are timed and known, how long the calls of the busiest take, and the cost."""
    entries = functions_of(document)
    timed = [each for each in entries if present(each)]
    known = sum(each.get("state") in FINISHED for each in entries)
    parts = [f"{plural(len(timed), 'function')} timed, {known or 'none'} known{'' if known else ' yet'}"]
    if timed:
        busiest = busiest_first(timed)[0]
        parts.append(f"{escaped(title(busiest))}: {sentence(present(busiest), uncertainty_of(busiest))}")
    return "; ".join([*parts, *_cost(document)])


def picture(document: Document, elapsed: str, ending: str, columns: int) -> list[str]:
    """Return what is drawn while mining works: the program, what is known of each function, what waits."""
    entries = functions_of(document)
    program = document.get("program") or {}
    name = program.get("name") or Path(str(program.get("path") or "")).name or "looking for the program"
    left, right = escaped(str(name)), "   ".join([elapsed, *_cost(document)])
    lines = [left + " " * max(3, columns - cells(left) - cells(right)) + right]
    active = [each for each in busiest_first(entries) if group_of(each) in LISTED or present(each)]
    shown = active[:MOST_SHOWN]
    if shown:
        lines += progress_table(shown, columns, ascii_only=not speaks_unicode(sys.stderr))
    more = len(entries) - len(shown)
    waiting = f"{more} more {'waits' if more == 1 else 'wait'} or cannot be timed. " if more else ""
    return [typeset(line, sys.stderr) for line in [*lines, f"{waiting}{ending}"]]


def _cost(document: Document) -> list[str]:
    collection = document.get("collection") or {}
    spent = collection.get("overhead_ratio")
    if not isinstance(spent, int | float):
        return []
    return [f"overhead {share(spent)}{floor_spent(collection)}{floor_of(collection)}"]


def wants_live(command: tuple[str, ...]) -> bool:
    """Return whether a moving picture may be drawn: on a terminal, unless CMD writes to the same one."""
    return sys.stderr.isatty() and not command
