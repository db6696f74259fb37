"""Several observations of one function, lifetime and kind as one, for long storage."""

from __future__ import annotations

from collections.abc import Sequence

from .call_path import CallPath
from .histogram import Histogram
from .observation import Observation, PathHistogram
from .split import Split, sum_of_splits, unbroken


def pooled(observations: Sequence[Observation]) -> Observation:
    """Return one observation that holds the calls of all.

    Counts, calls and watched time add up; the bias is the mean over the timed calls.
    """
    first = observations[0]
    timed = sum(each.timed for each in observations)
    by_path: dict[CallPath, list[PathHistogram]] = {}
    for each in observations:
        for path in each.paths:
            by_path.setdefault(path.path, []).append(path)
    splits = [each.split for each in observations if each.split is not None]
    # if the split of some calls is unknown, nothing can be said that holds for all
    split = sum_of_splits(splits) if len(splits) == len(observations) else None
    return Observation(
        function=first.function,
        lifetime=first.lifetime,
        kind=first.kind,
        start_ns=min(each.start_ns for each in observations),
        end_ns=max(each.end_ns for each in observations),
        histogram=Histogram.sum(each.histogram for each in observations),
        calls=sum(each.calls for each in observations),
        watched_ns=sum(each.watched_ns for each in observations),
        inner=sum(each.inner for each in observations),
        censored=sum(each.censored for each in observations),
        bias_ns=sum(each.bias_ns * each.timed for each in observations) / timed if timed else first.bias_ns,
        uncertainty_ns=max(each.uncertainty_ns for each in observations),
        paths=tuple(
            PathHistogram(
                path=path,
                histogram=Histogram.sum(part.histogram for part in parts),
                split=_split_of(parts) if split else None,
            )
            for path, parts in sorted(by_path.items())
        ),
        split=split,
    )


def _split_of(parts: Sequence[PathHistogram]) -> Split | None:
    """Return what calls over one path did of their time; None still means that all ran without a break."""
    if all(part.split is None for part in parts):
        return None
    return sum_of_splits([part.split or unbroken(part.histogram) for part in parts])
