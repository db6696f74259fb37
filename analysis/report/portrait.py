"""One function over builds, drawn: its calls in the old and the new build, and what each run had."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from specmine.analysis.charts.distribution import distribution
from specmine.analysis.charts.drawing import Drawing
from specmine.analysis.charts.marks import Marks
from specmine.analysis.charts.runs import BuildRuns, runs
from specmine.analysis.compare.rows import rows_of, suffix_of
from specmine.analysis.lifetimes.lifetime import FunctionLifetime
from specmine.mining.regression.sample import FEWEST_CALLS, SUMMARIES, Sample, part
from specmine.model.text import plural

from .behaviours import Stated
from .changes import change_words
from .histograms import bins_of, quantile_of

SUMMED = {"mean": "Mean", "median": "Median", "trimmed": "Trimmed mean", "p90": "p90", "p99": "p99"}
NOTES = {
    "code changed": "Its machine code changed.",
    "code unchanged": "Neither its machine code nor that of what it calls changed.",
    "own code unchanged": "Its own machine code is the same.",
    "the host explains it": "The host explains it.",
    "another load": "Another load explains it.",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Portrait:
    """What a page shows of a function that was compared."""

    change: str
    sentence: str
    """The numbers in words."""
    distribution: Drawing
    """The old build in grey, the new one in blue."""
    behaviours: Drawing
    """The same behaviour by behaviour; '' where there is one."""
    facts: str
    """Program, builds, host and date."""
    runs: Drawing
    which: str
    """What the dots of the runs are: ``Median of the calls over 36 us``."""


def portrait(
    entry: Mapping[str, Any],
    group: Sequence[FunctionLifetime],
    pair: tuple[str, str],
    labels: Mapping[str, str],
    summary: str,
    level: float,
    stated: Stated,
) -> Portrait:
    """Return the portrait of a function.

    Parameters
    ----------
    entry : mapping
        Its comparison, as in ``specmine.comparison/1``.
    group : sequence of FunctionLifetime
        All its lifetimes, of other builds too.
    pair : (str, str)
        Old and new build.
    labels : mapping
        Build to what it is called, in the order of time.
    summary : str
        Of a run: ``median``, ``mean``, ...
    level : float
        Of the interval.
    stated : Stated
        What the source states of its functions.
    """
    old, new = ([each for each in group if each.build == build] for build in pair)
    key = entry["function"], entry["module"]
    name = str(entry["function"])
    sides = [bins_of(each) for each in (old, new)]
    summary, some = _decided(entry, summary)
    which = f"{SUMMED[summary]} {_calls(entry)}"
    marks = Marks(median=quantile_of(new, "median"), tail=quantile_of(new, "p99"), normal=stated.normal(key, pair[1]))
    title = f"Durations of {name}: {labels[pair[0]]} in grey, {labels[pair[1]]} in blue"
    drawn = distribution(sides[1], marks, title, sides[0], ticks=7) if all(sides) else Drawing()
    return Portrait(
        change=change_words(entry),
        sentence=_sentence(entry, labels[pair[0]], labels[pair[1]], summary, level),
        distribution=drawn,
        behaviours=stated.drawing(key, pair, entry),
        facts=stated.facts(key, [*old, *new], labels),
        runs=runs_of(group, labels, summary, f"{name}: {which} in each run, by build", newest=pair[1], some=some),
        which=which,
    )


def _decided(entry: Mapping[str, Any], summary: str) -> tuple[str, Callable[[Sample], Sample]]:
    """Return the summary that decided, and how to get the calls that it is of."""
    at = entry["decided_by"]
    decided = entry["behaviours"][at] if at is not None else None
    if decided is None or decided["expression"] is not None:  # of calls over some paths no run is known by itself
        return summary, lambda sample: sample
    if decided["class"] is None:
        return str(decided["summary"]), lambda sample: sample
    low, high = decided["class"]["lower_seconds"], decided["class"]["upper_seconds"]
    ends = 1e9 * float(low or 0.0), math.inf if high is None else 1e9 * float(high)
    return summary, lambda sample: part(sample, *ends)


def _calls(entry: Mapping[str, Any]) -> str:
    at = entry["decided_by"]
    decided = entry["behaviours"][at] if at is not None else None
    if decided is None or decided["class"] is None:
        return "of all its calls"
    return f"of the calls {suffix_of(decided, entry)}"


def runs_of(
    group: Sequence[FunctionLifetime],
    labels: Mapping[str, str],
    summary: str,
    title: str,
    *,
    newest: str = "",
    some: Callable[[Sample], Sample] = lambda sample: sample,
) -> Drawing:
    """Return a summary of each run, or of some of its calls, a row a build, the newest build on top."""
    rows = []
    for build, label in reversed(list(labels.items())):
        chosen = sorted((each for each in group if each.build == build), key=lambda each: each.start_ns)
        samples = [sample for each in chosen if (sample := some(each.sample)).calls >= FEWEST_CALLS[summary]]
        values = [1e-9 * SUMMARIES[summary](sample) for sample in samples]
        rows.append(BuildRuns(name=label, seconds=values, newest=build == newest))
    return runs(rows, title)


def _sentence(entry: Mapping[str, Any], old: str, new: str, summary: str, level: float) -> str:
    row = rows_of(entry)[0]
    which = f"of the calls {row.suffix}" if row.suffix and not row.suffix.startswith(("at ", "on ", "by the ")) else ""
    what = f"{SUMMED[summary]} {which or 'of all its calls'}"
    if row.suffix and not which:
        what = f"All its calls {row.suffix}"
    said = [f"{what}: {row.seconds[0]} in {old}, {row.seconds[1]} in {new}."]
    runs_seen = entry["lifetimes"]
    judged = f"as {plural(runs_seen[1], 'run')} against {runs_seen[0]} show"
    if row.value is not None and row.bounds is not None:
        said.append(
            f"That is {row.ratio}; with {100 * level:g} % confidence the true ratio is {row.interval}, {judged}."
        )
    elif row.value is not None:
        said.append(f"That is {row.ratio}; too few runs repeat to say how sure this is.")
    note = NOTES.get(row.note, f"It is slower only {row.note}." if row.note.startswith("through ") else "")
    if not note and row.note:
        note = f"It would be decided with {row.note}."
    return " ".join([*said, *([note] if note else [])])
