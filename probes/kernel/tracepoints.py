"""What the kernel tells of the life of processes: forks, execs, exits, and the signal by which a debugger stops one."""

from __future__ import annotations

from specmine.model.errors import ProbeError

from .links import Links

_PROGRAMS = {
    "sched_process_fork": "on_fork",
    "sched_process_exec": "on_exec",
    "sched_process_exit": "on_exit",
    "signal_generate": "on_stop",
}
_TRIES = 20


def follow(links: Links) -> None:
    """Attach them and wait until they are on. Raises ProbeError if the kernel refuses one."""
    asked = {links.tracepoint(name, program) for name, program in _PROGRAMS.items() if program in links.programs}
    for _ in range(_TRIES):
        for news in links.news(0.5) if asked else ():
            if news.id in asked and news.what == "failed":
                raise ProbeError(f"the kernel refuses a tracepoint: {news.text}")
            asked.discard(news.id)
