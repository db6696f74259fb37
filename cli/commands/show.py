"""``specmine show``: all that is known about one function, its durations drawn."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from specmine.analysis.documents import Entry, is_recorded
from specmine.analysis.histogram_bins import histogram_bins
from specmine.analysis.wording.assertions import assertion, class_names, condition, wrapped
from specmine.analysis.wording.call_rate import call_rate
from specmine.analysis.wording.detectable import sentence as found_when
from specmine.analysis.wording.levels import WORDS, asserted, normal_range, present, seconds, uncertainty_of
from specmine.analysis.wording.reasons import probe, why
from specmine.analysis.wording.states import open_violations, words
from specmine.analysis.wording.time_split import on_cpu, overall, times
from specmine.cli.base import completion
from specmine.cli.base.options import choice_options, reading_options
from specmine.cli.base.output import emit, width
from specmine.cli.base.sources import read_functions
from specmine.cli.base.typography import speaks_unicode, typeset
from specmine.cli.runners.waits import followed_waits
from specmine.cli.text.call_tree import deciding_edges, tree
from specmine.cli.text.function_names import single_match
from specmine.cli.text.histogram import distribution
from specmine.cli.text.inside import inside_table, spread_tree
from specmine.cli.text.waits import waits_table
from specmine.daemon.documents.json_text import json_text
from specmine.model.errors import NoData
from specmine.model.text import age, cells, count, cut, duration, escaped, plural, share

if TYPE_CHECKING:
    from specmine.store import Where

LEAST_NAME, MOST_NAME = 14, 36
"""Columns for the condition of a behaviour in the table of quantiles."""
UNSURE = 0.1
"""Share of the median from which on it is said how well durations are known."""


@click.command("show", short_help="One function: distribution, borders, call paths.")
@click.argument("function", shell_complete=completion.functions)
@click.option("--why", is_flag=True, help="Only what the spread of its durations consists of, down its callees.")
@click.option("--waits", is_flag=True, help="Only where its calls wait, and for what: the daemon looks now.")
@choice_options
@reading_options
def command(
    function: str,
    why: bool,
    waits: bool,
    program: str | None,
    build: str | None,
    store: Where | None,
    socket: Path | None,
    form: str,
) -> None:
    """Show one FUNCTION: what is wrong, how long its calls take, their distribution, call paths, state, cost.

    FUNCTION is a name or a glob, as for `mine --function`; it must match exactly one function.
    """
    entries = read_functions(store, socket, program, build)
    entry = single_match(entries, function)
    if waits:
        entries = followed_waits(entry, store, socket, lambda: read_functions(store, socket, program, build))
        entry = single_match(entries, function)
    if form == "json":
        emit(json_text({"schema": "specmine.function/1", **entry}))
        return
    if why or waits:
        lines = spread_tree(entry, entries, width()) if why else []
        if waits:
            lines += ([""] if lines else []) + ["Waits", *waits_table(entry, width())]
        if not lines:
            raise NoData(f"nothing that {escaped(str(entry.get('function')))} calls was timed in its calls yet")
        emit(typeset("\n".join(lines) + "\n"))
        return
    emit(typeset("\n".join(portrait(entry, width(), ascii_only=not speaks_unicode())) + "\n"))


def portrait(entry: Entry, columns: int, *, ascii_only: bool) -> list[str]:
    """Return everything about one function, in lines of at most ``columns`` unless a name is longer."""
    lines = assertion(entry, columns, numbered=True)
    for heading, part in (
        ("Violations", [line for text in violations(entry) for line in _paragraph(text, columns)]),
        ("State", _state(entry, columns)),
        ("Quantiles", quantile_table(entry, columns)),
        ("Durations", _durations(entry, columns, ascii_only)),
        ("Classes", _classes(entry)),
        ("Inside a call", inside_table(entry, columns, ascii_only=ascii_only)),
        ("Waits", waits_table(entry, columns)),
        ("Time", [line for text in (*overall(entry), *on_cpu(entry)) for line in _paragraph(text, columns)]),
        ("Call paths", _paths(entry, columns)),
        ("Observed", _observed(entry, columns)),
    ):
        if part:
            lines += ["", heading, *part]
    return lines


def _state(entry: Entry, columns: int) -> list[str]:
    lines = [f"  {words(entry)}"]
    for sentence in filter(None, (*why(entry), found_when(entry), probe(entry))):
        lines += _paragraph(sentence, columns)
    return lines


def violations(entry: Entry) -> list[str]:
    """Return a sentence for each open violation."""
    return [escaped(str(each.get("text") or each.get("change"))) for each in open_violations(entry)]


def quantile_table(entry: Entry, columns: int) -> list[str]:
    """Return observed beside normal: all calls, then each behaviour."""
    parts = [each for each in entry.get("behaviours") or [] if each.get("expression") not in (None, "true")]
    rows = [["", "MEDIAN", "P90", "P99"]]
    for name, part in [("all calls", entry), *((condition(each["expression"]), each) for each in parts)]:
        if not present(part):
            continue
        rows.append([name, *(seconds(present(part), quantile, uncertainty_of(entry)) for quantile in WORDS)])
        spans = [normal_range(asserted(part), quantile) for quantile in WORDS]
        if any(spans):
            rows.append(["  normal", *(span or "-" for span in spans)])
    if len(rows) == 1:
        return []
    kept = 4
    sizes = [max(cells(row[at]) for row in rows) for at in range(4)]
    while kept > 2 and sum(sizes[1:kept]) + 2 * kept + LEAST_NAME > columns:
        kept -= 1
    sizes[0] = min(sizes[0], MOST_NAME, columns - sum(sizes[1:kept]) - 2 * kept)
    lines = []
    for row in rows:
        numbers = (cell.rjust(size) for cell, size in zip(row[1:kept], sizes[1:kept], strict=True))
        lines.append("  ".join(["", cut(row[0], sizes[0]).ljust(sizes[0]), *numbers]).rstrip())
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
    if rate := call_rate(entry):
        yield f"{rate} calls/s"
    if entry.get("time_share"):  # 0: nothing was sampled
        yield f"{share(entry['time_share'])} of the program's wall-clock time"
    if isinstance(entry.get("utility"), int | float):
        yield f"utility {entry['utility']:.2f}"
    if entry.get("grade"):
        yield f"probe site: {escaped(str(entry['grade']))}"
    unsure, median = uncertainty_of(entry), (present(entry).get("p50") or {}).get("seconds")
    if median and unsure > UNSURE * median:
        yield f"its durations are known to +/- {duration(unsure)}: the probes' own cost in them is not known better"
    if isinstance(entry.get("price_ns"), int | float):
        yield f"price: {duration(entry['price_ns'] / 1e9)} of the program's time a call"
    if entry.get("aliases"):
        yield f"also called {', '.join(escaped(str(each)) for each in entry['aliases'])}"
    yield f"build {escaped(str(entry.get('build_id')))}"


def _paragraph(text: str, columns: int) -> list[str]:
    return wrapped(text, columns, first="  ", hang="    ")
