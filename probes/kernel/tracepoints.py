"""What the kernel tells of the life of processes: forks, execs, exits, and the signal by which a debugger stops one."""

from __future__ import annotations

import errno

from specmine.model.errors import ProbeError

from .links import LinkNews, Links

_PROGRAMS = {
    "sched_process_fork": "on_fork",
    "sched_process_exec": "on_exec",
    "sched_process_exit": "on_exit",
    "signal_generate": "on_stop",
}
_TRIES = 20


class Tracepoints:
    """The links of the tracepoints."""

    def __init__(self, links: Links) -> None:
        """Attach nothing yet."""
        self._links = links
        self._numbers: frozenset[int] = frozenset()

    def follow(self) -> list[LinkNews]:
        """Attach all anew, and wait until they are attached or the kill switch is on.

        Returns
        -------
        list of LinkNews
            What the holder reported meanwhile of anything else, in order; whether the kill switch is on is among it.

        Raises
        ------
        ProbeError
            If the kernel refuses one.
        """
        for number in self._numbers:  # those of before may be attached, if the switch came and went since
            self._links.close(number)
        programs = self._links.programs
        self._numbers = frozenset(self._links.tracepoint(n, p) for n, p in _PROGRAMS.items() if p in programs)
        awaited, others = set(self._numbers), list[LinkNews]()
        for _ in range(_TRIES):
            for news in self._links.news(0.5) if awaited else ():
                if news.id not in awaited or news.what not in ("made", "failed"):
                    others.append(news)
                elif news.what == "failed" and news.errno != errno.ECANCELED:
                    raise ProbeError(f"the kernel refuses a tracepoint: {news.text}")
                else:
                    awaited.discard(news.id)
            if any(news.what == "dead" for news in others):
                break
        return others
