"""Tracepoints are attached again after the kill switch, however often it comes and goes."""

from __future__ import annotations

from errno import ECANCELED, EINVAL

import pytest

from specmine.model.errors import ProbeError
from specmine.probes.kernel.links import LinkNews
from specmine.probes.kernel.tracepoints import Tracepoints


class Holder:
    """Stands for the links: attaches what is requested, or reports what it is given instead."""

    programs = frozenset({"on_fork", "on_exec", "on_exit"})

    def __init__(self) -> None:
        self.attached: dict[int, str] = {}
        self.reports: list[LinkNews] = []
        self.error = 0
        self.number = 0

    def tracepoint(self, name: str, program: str) -> int:
        """Attach one, or refuse it."""
        self.number += 1
        if self.error:
            self.reports.append(LinkNews(self.number, "failed", "refused", self.error))
        else:
            self.attached[self.number] = name
            self.reports.append(LinkNews(self.number, "made"))
        return self.number

    def close(self, number: int) -> None:
        """Detach one, if it is attached."""
        if self.attached.pop(number, None):
            self.reports.append(LinkNews(number, "closed"))

    def news(self, wait_s: float) -> list[LinkNews]:
        """Return the reports."""
        reports, self.reports = self.reports, []
        return reports


def test_the_kill_switch_is_no_fault_of_the_host() -> None:
    """Tracepoints that the switch keeps off are no error; whatever else was reported is returned in order."""
    holder = Holder()
    holder.error = ECANCELED
    off, made = LinkNews(0, "off"), LinkNews(77, "made")
    holder.reports += [made, off]
    assert Tracepoints(holder).follow() == [made, off]  # type: ignore[arg-type]
    assert not holder.attached


def test_none_is_attached_twice() -> None:
    """Those of before are detached first: the switch may have come and gone before the daemon knew."""
    holder = Holder()
    tracepoints = Tracepoints(holder)  # type: ignore[arg-type]
    for _ in range(3):
        assert [news.what for news in tracepoints.follow() if news.what != "closed"] == []
        assert sorted(holder.attached.values()) == ["sched_process_exec", "sched_process_exit", "sched_process_fork"]


def test_a_refusal_of_the_kernel_is_an_error() -> None:
    """Without them the daemon would watch processes that have ended."""
    holder = Holder()
    holder.error = EINVAL
    with pytest.raises(ProbeError, match="refuses a tracepoint"):
        Tracepoints(holder).follow()  # type: ignore[arg-type]
