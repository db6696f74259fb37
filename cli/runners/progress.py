"""The progress of a run in the foreground on standard error, and the signals that stop it."""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import TYPE_CHECKING, Any, Self

from specmine.analysis.documents import Document, functions_of
from specmine.cli.base.output import write_stderr
from specmine.cli.text.assertions import summary
from specmine.cli.text.functions import table
from specmine.model.text import age, share

if TYPE_CHECKING:
    from rich.live import Live

LINE_EVERY_S = 5.0
DRAW_EVERY_S = 0.5
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
        self._drawn = now()
        self._before: dict[int, Any] = {}

    def __call__(self, document: Callable[[], Document]) -> bool:
        """Show what is known if it is time for it; return True to go on, False to stop.

        Parameters
        ----------
        document : callable
            Returns the specification so far. Asked only when something is shown, twice a second at most.
        """
        now = self._now()
        if self._live is not None:
            if now - self._drawn >= DRAW_EVERY_S:
                self._drawn = now
                known = document()
                self._live.update(_picture(known, self._line(known), self._live.console.width))
        elif self._said is None:
            self._said = now
            write_stderr("specmine: watching")
        elif now - self._said >= LINE_EVERY_S:
            self._said = now
            write_stderr(self._line(document()))
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
        collection = document.get("collection") or {}
        elapsed = age(float(collection.get("seconds") or 0.0))
        whole = f" of {age(self._duration_s)}" if self._duration_s is not None else ""
        spent = collection.get("overhead_ratio")
        cost = f" cost {share(spent)}." if isinstance(spent, int | float) else ""
        ending = " stopping ..." if self.stopping else ""
        return f"specmine: {elapsed}{whole}: {summary(functions_of(document))}{cost}{ending}"


def wants_live(command: tuple[str, ...]) -> bool:
    """Return whether a moving picture may be drawn: on a terminal, unless CMD writes to the same one."""
    return sys.stderr.isatty() and not command


def _picture(document: Document, line: str, columns: int) -> Any:
    from rich.text import Text  # noqa: PLC0415

    entries = functions_of(document)
    active = sorted(entries, key=lambda each: -float(each.get("utility") or 0.0))[:MOST_SHOWN]
    return Text("\n".join([line, "", *table(active, columns)] if active else [line]))
