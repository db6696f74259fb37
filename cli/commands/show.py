"""``specmine show``: all that is known about one function, its durations drawn."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from specmine.analysis.documents import Entry, functions_of, is_recorded, title
from specmine.cli.base.options import reading_options
from specmine.cli.base.output import emit, json_text, width
from specmine.cli.base.sources import read_document
from specmine.cli.text.assertions import assertion, class_names, is_asserted
from specmine.cli.text.call_tree import deciding_edges, tree
from specmine.cli.text.function_names import single_match
from specmine.cli.text.functions import why
from specmine.cli.text.histogram import distribution, histogram_bins
from specmine.cli.text.time_split import on_cpu, overall, times
from specmine.model.text import age, count, duration, escaped, plural, rate, share


@click.command("show", short_help="One function: distribution, borders, call paths.")
@click.argument("function")
@reading_options
def command(function: str, store: Path | None, socket: Path | None, form: str) -> None:
    """Show one FUNCTION: its durations with borders and classes, behaviours, call paths, state, cost.

    FUNCTION is a name or a glob, as for `mine --function`; it must match exactly one function.
    """
    entry = single_match(functions_of(read_document(store, socket)), function)
    if form == "json":
        emit(json_text({"schema": "specmine.function/1", **entry}))
        return
    encoding = (getattr(sys.stdout, "encoding", "") or "").lower().replace("-", "")
    emit("\n".join(portrait(entry, width(), ascii_only=encoding != "utf8")) + "\n")


def portrait(entry: Entry, columns: int, *, ascii_only: bool) -> list[str]:
    """Return everything about one function, in lines of at most ``columns`` unless a name is longer."""
    lines = assertion(entry, columns, numbered=True) if is_asserted(entry) else [escaped(title(entry))]
    for heading, part in (
        ("State", _state(entry, columns)),
        ("Durations", _durations(entry, columns, ascii_only)),
        ("Classes", _classes(entry)),
        ("Time", [line for text in (*overall(entry), *on_cpu(entry)) for line in _paragraph(text, columns)]),
        ("Call paths", _paths(entry, columns)),
        ("Observed", _observed(entry, columns)),
    ):
        if part:
            lines += ["", heading, *part]
    return lines


def _state(entry: Entry, columns: int) -> list[str]:
    lines = [f"  {escaped(str(entry.get('state')))}"]
    for sentence in why(entry):
        lines += _paragraph(sentence, columns)
    return lines


def _durations(entry: Entry, columns: int, ascii_only: bool) -> list[str]:
    bins = histogram_bins(entry.get("histogram"), float(entry.get("bias_seconds") or 0.0))
    lines = distribution(bins, entry.get("borders_seconds") or [], columns, ascii_only=ascii_only)
    return lines or [f"  border {duration(border)}" for border in entry.get("borders_seconds") or []]


def _classes(entry: Entry) -> list[str]:
    classes = entry.get("classes") or []
    if len(classes) < 2:
        return []
    lines = []
    for name, each, border in zip(
        class_names(classes), classes, [*(entry.get("borders") or []), *([{}] * len(classes))], strict=False
    ):
        uncertainty = border.get("uncertainty_seconds")
        give = f"   border +/- {duration(uncertainty)}" if uncertainty else ""
        lines.append(f"  {name.ljust(12)} {share(float(each.get('share') or 0)).rjust(8)}{give}")
        lines += [f"  {' ' * 12} {' ' * 8}   {text}" for text in times(each)]
    return lines


def _paths(entry: Entry, columns: int) -> list[str]:
    paths = entry.get("paths") or []
    if not paths:
        return []
    deciding = deciding_edges(entry.get("behaviours") or [])
    lines = tree(paths, deciding, columns)
    if deciding:
        lines += _paragraph("=> is a call edge that decides between behaviours; numbers are calls.", columns)
    return lines


def _observed(entry: Entry, columns: int) -> list[str]:
    return [line for fact in _facts(entry) for line in _paragraph(fact, columns)]


def _known(interval: list[int | None] | None) -> str:
    """Return how well an estimated number is known."""
    low, high = interval or (None, None)
    if low is None or low == high:
        return "estimated"
    if high is None:
        return f"at least {count(low)}; too fast to count"
    return f"estimated, 95% {count(low)} to {count(high)}"


def _facts(entry: Entry) -> Iterator[str]:
    number: Any = entry.get("calls")
    if isinstance(number, int | float):
        known = _known(entry.get("calls_interval"))
        exact = "counted" if entry.get("calls_exact") else known
        yield f"{plural(int(number), 'call')} ({exact}), {count(entry.get('timed') or 0)} timed"
    observations = plural(entry.get("observations") or 0, "observation")
    if is_recorded(entry):
        yield f"recorded, in {observations}"
        return
    if isinstance(entry.get("watched_seconds"), int | float):
        yield f"watched for {age(entry['watched_seconds'])} in {observations}"
    if isinstance(entry.get("rate_per_second"), int | float):
        yield f"{rate(entry['rate_per_second'])} calls/s"
    if isinstance(entry.get("time_share"), int | float):
        yield f"{share(entry['time_share'])} of the program's wall-clock time"
    if isinstance(entry.get("utility"), int | float):
        yield f"utility {entry['utility']:.2f}"
    if entry.get("grade"):
        yield f"probe site: {escaped(str(entry['grade']))}"
    if isinstance(entry.get("price_ns"), int | float):
        yield f"price: {duration(entry['price_ns'] / 1e9)} of the program's time a call"
    if entry.get("aliases"):
        yield f"also called {', '.join(escaped(str(each)) for each in entry['aliases'])}"
    yield f"build {escaped(str(entry.get('build_id')))}"


def _paragraph(text: str, columns: int) -> list[str]:
    return textwrap.wrap(text, columns, initial_indent="  ", subsequent_indent="    ", break_on_hyphens=False)
