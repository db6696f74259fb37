"""What a report shows beside the calls of a function: its behaviours drawn, what is asserted, and whose it is."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import cached_property
from typing import Any

from specmine.analysis.charts.behaviours import Strip, behaviour_strips
from specmine.analysis.charts.drawing import Drawing
from specmine.analysis.charts.marks import Marks
from specmine.analysis.compare.behaviours import mined_formulas
from specmine.analysis.documents import place_of
from specmine.analysis.lifetimes.lifetime import FunctionLifetime
from specmine.analysis.lifetimes.selection import RecordedLifetimes
from specmine.analysis.wording.assertions import condition
from specmine.analysis.wording.levels import asserted, normal_range
from specmine.analysis.wording.typesetting import day_of
from specmine.mining.assertions.expression import Formula, parse, render
from specmine.model.text import listed, title

from .histograms import bins_of, calls_of, quantile_of

Key = tuple[str, str]
Entry = Mapping[str, Any]
_MOST_HOSTS = 3


class Stated:
    """What a source states of its functions, and their calls by behaviour; call paths are read when first needed."""

    def __init__(self, recorded: RecordedLifetimes) -> None:
        """Take what was read of the source."""
        self._recorded = recorded
        self._entries: dict[Key, list[Entry]] = defaultdict(list)
        for each in recorded.specified:
            self._entries[str(each.get("function")), str(each.get("module"))].append(each)

    @cached_property
    def _by_path(self) -> Mapping[Key, Sequence[FunctionLifetime]]:
        found: dict[Key, list[FunctionLifetime]] = defaultdict(list)
        for each in self._recorded.by_path():
            found[each.key].append(each)
        return found

    def place(self, key: Key) -> str:
        """Return where a function is: its program, as people call it, if its file is the program's own."""
        return next((place_of(each) for each in self._entries.get(key, ())), key[1])

    def title(self, key: Key) -> str:
        """Return what a function is called: ``name (program)``, or ``name (file)``."""
        return title(key[0], self.place(key))

    def facts(self, key: Key, group: Sequence[FunctionLifetime], labels: Mapping[str, str]) -> str:
        """Return what a figure is of: ``Program redis, build v2, host shop-03, 22 Nov 2026``."""
        programs = dict.fromkeys(str(each["program"]) for each in self._entries.get(key, ()) if each.get("program"))
        hosts = sorted({each.host for each in group if each.host})
        builds = [labels[build] for build in labels if any(each.build == build for each in group)]
        days = dict.fromkeys(
            day_of(datetime.fromtimestamp(each.start_ns / 1e9, UTC))
            for each in sorted(group, key=lambda one: one.start_ns)
            if each.start_ns > 10**18  # not what a recording without dates counts from
        )
        dates = list(days)
        parts = [
            f"program {next(iter(programs))}" if programs else "",
            f"{'build' if len(builds) == 1 else 'builds'} {listed(builds)}",
            f"{len(hosts)} hosts" if len(hosts) > _MOST_HOSTS else f"host {listed(hosts)}" if hosts else "",
            dates[0] if len(dates) == 1 else f"{dates[0]} to {dates[-1]}" if dates else "",
        ]
        told = ", ".join(filter(None, parts))
        return told[:1].upper() + told[1:]

    def normal(self, key: Key, build: str) -> tuple[float, float] | None:
        """Return the range, in s, in which the median of all calls is normal: of this build, else of another one."""
        entry = self._entry(key, build)
        return _range(asserted(entry)) if entry is not None else None

    def drawing(self, key: Key, builds: Sequence[str], entry: Entry | None = None) -> Drawing:
        """Return the calls of each behaviour in the newest of some builds, those of the first behind them.

        Parameters
        ----------
        key : (str, str)
        builds : sequence of str
            Old and new, or one.
        entry : mapping, optional
            The comparison of the builds: its behaviours are drawn. Without it those that are stated, else mined.
        """
        formulas = _compared(entry) if entry is not None else self._formulas(key)
        if len(formulas) < 2:
            return Drawing()
        stated = self._entry(key, builds[-1]) or {}
        normal = {str(each.get("expression")): each for each in stated.get("behaviours") or ()}
        observed = self._by_path.get(key, ())
        strips = []
        for formula in formulas:
            sides = [[each for each in observed if each.build == build and each.fulfils(formula)] for build in builds]
            expression = render(formula)
            strips.append((calls_of(sides[-1]), _strip(expression, sides, normal.get(expression) or {})))
        known = sum(calls for calls, _ in strips)
        ordered = sorted(strips, key=lambda each: (-each[0], each[1].name))
        return behaviour_strips(
            [_with_share(strip, calls / known) for calls, strip in ordered if calls],
            f"Durations of {key[0]} by behaviour",
            ticks=7,
        )

    def _formulas(self, key: Key) -> tuple[Formula, ...]:
        if self._recorded.stated:
            return self._recorded.stated.get(key, ())
        return mined_formulas(self._by_path[key]) if self._by_path.get(key) else ()

    def _entry(self, key: Key, build: str) -> Entry | None:
        known = self._entries.get(key, [])
        return next((each for each in known if each.get("build_id") == build), known[-1] if known else None)


def _compared(entry: Entry) -> tuple[Formula, ...]:
    expressions = dict.fromkeys(part["expression"] for part in entry["behaviours"] if part["expression"] is not None)
    return tuple(parse(each) for each in expressions)


def _strip(expression: str, sides: Sequence[Sequence[FunctionLifetime]], stated: Entry) -> Strip:
    newest = sides[-1]
    return Strip(
        name=condition(expression),
        share=None,
        bins=bins_of(newest),
        before=bins_of(sides[0]) if len(sides) > 1 else (),
        marks=Marks(
            median=quantile_of(newest, "median"), tail=quantile_of(newest, "p99"), normal=_range(asserted(stated))
        ),
    )


def _with_share(strip: Strip, share: float) -> Strip:
    return Strip(name=strip.name, share=share, bins=strip.bins, marks=strip.marks, before=strip.before)


def _range(quantiles: Mapping[str, Any]) -> tuple[float, float] | None:
    span = quantiles.get("p50") if normal_range(quantiles, "p50") else None
    return (float(span["low"]), float(span["high"])) if span else None
