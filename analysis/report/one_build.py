"""One build alone: how long the calls of each function take, and whether its runs agree."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from specmine.analysis.charts.axis import axis_over
from specmine.analysis.charts.distribution import axis_head, distribution, small_distribution
from specmine.analysis.charts.drawing import Drawing
from specmine.analysis.charts.marks import Marks
from specmine.analysis.lifetimes.lifetime import FunctionLifetime
from specmine.analysis.wording.typesetting import typeset
from specmine.model.text import count, in_markup, plural, shortened, three_digits

from .behaviours import Key, Stated
from .histograms import QUANTILES, bins_of, quantile_of
from .portrait import runs_of

_MOST_DRAWN, _MOST_ROWS = 30, 500


def one_build(
    document: Mapping[str, Any],
    observed: Sequence[FunctionLifetime],
    labels: Mapping[str, str],
    stated: Stated,
) -> tuple[str, list[str]]:
    """Return headline and contents of a report that has nothing to compare."""
    groups: dict[tuple[str, str], list[FunctionLifetime]] = {}
    for each in observed:
        groups.setdefault(each.key, []).append(each)
    entries = document["functions"]
    runs = len({(each.build, each.host, each.lifetime) for each in observed})
    names = " and ".join(labels.values())
    head = f"{names}: {plural(len(entries), 'function')} in {plural(runs, 'run')}"
    why = "No function was timed in two builds." if len(labels) > 1 else "This is one build."
    parts = [
        f'<p class="lead">{why} So there is nothing to compare, and this page says how long calls take. Record a '
        f"run of another "
        "build in the same file, and report again.</p>",
        "<h2>All functions</h2>",
        _table(entries, groups, stated),
    ]
    for entry in entries[:_MOST_DRAWN]:
        parts += _section(entry, groups[_key(entry)], labels, stated)
    return head, parts


def _table(
    entries: Sequence[Mapping[str, Any]],
    groups: Mapping[tuple[str, str], list[FunctionLifetime]],
    stated: Stated,
) -> str:
    known = [(each, groups[each["function"], each["module"]]) for each in entries[:_MOST_ROWS]]
    quantiles = [_quantiles(group) for _, group in known]
    marks = [value for found in quantiles for value in (found[0], found[2]) if value]
    axis = axis_over([each / 3 for each in marks] + [each * 3 for each in marks])
    rows = "".join(
        f'<tr><th scope="row"><span class="f">{in_markup(shortened(stated.title(_key(entry)), 60))}</span></th>'
        f'<td class="r h1">{count(entry["calls"])}</td><td class="r h1">{len(group)}</td>'
        + "".join(f'<td class="r">{_seconds(value)}</td>' for value in found)
        + f'<td class="picture h2">{small_distribution(bins_of(group), axis, found[0], found[2])}</td></tr>'
        for (entry, group), found in zip(known, quantiles, strict=True)
    )
    heads = "".join(f'<th scope="col" class="r">{name}</th>' for name in ("Median", "p90", "p99"))
    return (
        '<div class="scroll"><table><caption>Those with most calls first. Median, p90, p99: half, nine tenths, 99 '
        "of 100 calls "
        "take at most so long. A run is one start of the program.</caption>"
        '<thead><tr><th scope="col">Function</th><th scope="col" class="r h1">Calls timed</th>'
        f'<th scope="col" class="r h1">Runs</th>{heads}<th scope="col" class="picture '
        f'h2">Durations{axis_head(axis)}</th></tr>'
        f"</thead><tbody>{rows}</tbody></table></div>"
    )


def _section(
    entry: Mapping[str, Any], group: Sequence[FunctionLifetime], labels: Mapping[str, str], stated: Stated
) -> list[str]:
    median, _, tail = _quantiles(group)
    key, newest = _key(entry), group[-1].build
    name, normal = shortened(stated.title(_key(entry)), 60), stated.normal(key, newest)
    told = f"Half of its calls take at most {_seconds(median)}" + (
        f", 99 of 100 at most {_seconds(tail)}" if tail else ""
    )
    drawn = distribution(bins_of(group), Marks(median=median, tail=tail, normal=normal), f"Durations of {name}")
    parts = stated.drawing(key, [newest])
    dots = runs_of(group, labels, "median", f"Median of each run of {name}") if len(group) > 1 else Drawing()
    figures = [
        (
            drawn,
            f"{_marks_told(stated.facts(key, group, labels), normal is not None)} The axis is logarithmic; each "
            "step is as high as its share of the calls.",
        ),
        (parts, "The same for each behaviour, which its callers, or what it calls, tell from the others."),
        (dots, "Median of each run, a dot a run; the stroke is their mean."),
    ]
    figure = "".join(
        f'<figure>{picture}<figcaption class="cap">{caption}</figcaption></figure>'
        for picture, caption in figures
        if picture
    )
    return [
        f'<h2><span class="f">{in_markup(name)}</span></h2>',
        f"<p>{told}, as {plural(entry['calls'], 'call')} in {plural(len(group), 'run')} show.</p>",
        f'<div class="two">{figure}</div>' if figure else "",
    ]


def _marks_told(facts: str, ranged: bool) -> str:
    field = " The field is the asserted range of the median." if ranged else ""
    return f"{in_markup(facts)}. Strokes are median and p99.{field}"


def _key(entry: Mapping[str, Any]) -> Key:
    return entry["function"], entry["module"]


def _quantiles(group: Sequence[FunctionLifetime]) -> list[float | None]:
    return [quantile_of(group, name) for name in QUANTILES]


def _seconds(value: float | None) -> str:
    return "–" if value is None else typeset(three_digits(value))
