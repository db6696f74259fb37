"""Several observations of one function, lifetime and kind as one, to store them for long."""

from __future__ import annotations

from collections.abc import Sequence

from .call_path import CallPath
from .histogram import Histogram
from .inside.parts import Inside
from .inside.sums import pooled_inside
from .observation import Observation, PathHistogram
from .split import Split, sum_of_splits, unbroken


def pooled(observations: Sequence[Observation]) -> Observation:
    """Return one observation that holds the calls of all.

    Counts, calls and watched time add up; the bias is the mean over the timed calls.
    """
    first = observations[0]
    timed = sum(observation.timed for observation in observations)
    by_path: dict[CallPath, list[PathHistogram]] = {}
    for observation in observations:
        for path in observation.paths:
            by_path.setdefault(path.path, []).append(path)
    paths = sorted(by_path)
    histograms = Histogram.sums([part.histogram for part in by_path[path]] for path in paths)
    splits = [observation.split for observation in observations if observation.split is not None]
    # if the split of some calls is not known, there is none for all of them
    split = sum_of_splits(splits) if len(splits) == len(observations) else None
    return Observation(
        function=first.function,
        lifetime=first.lifetime,
        kind=first.kind,
        start_ns=min(observation.start_ns for observation in observations),
        end_ns=max(observation.end_ns for observation in observations),
        histogram=Histogram.sum(observation.histogram for observation in observations),
        calls=sum(observation.calls for observation in observations),
        watched_ns=sum(observation.watched_ns for observation in observations),
        inner=sum(observation.inner for observation in observations),
        censored=sum(observation.censored for observation in observations),
        bias_ns=sum(observation.bias_ns * observation.timed for observation in observations) / timed
        if timed
        else first.bias_ns,
        uncertainty_ns=max(observation.uncertainty_ns for observation in observations),
        paths=tuple(
            PathHistogram(path=path, histogram=histogram, split=_split_of(by_path[path]) if split else None)
            for path, histogram in zip(paths, histograms, strict=True)
        ),
        split=split,
        inside=_inside(observations),
    )


def _inside(observations: Sequence[Observation]) -> tuple[Inside, ...]:
    """Return what happened inside the calls of all; () where that is known of none."""
    if not any(observation.inside for observation in observations):
        return ()
    return pooled_inside(part for observation in observations for part in observation.told_inside)


def _split_of(parts: Sequence[PathHistogram]) -> Split | None:
    """Return the split of the calls over one path; None still means that they never left their CPU."""
    if all(part.split is None for part in parts):
        return None
    return sum_of_splits([part.split or unbroken(part.histogram) for part in parts])
