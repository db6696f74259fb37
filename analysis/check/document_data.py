"""The data of formulas from a specification, as mined or live."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from specmine.mining.assertions.expression import from_records, is_inside
from specmine.mining.levels.window import Window
from specmine.mining.regression.comparison import LifetimeSample
from specmine.mining.regression.sample import sample_of_histogram
from specmine.mining.spl.data import ClassCalls, Missing, StatedQuantile
from specmine.mining.spl.syntax import Condition, Subject
from specmine.model.histogram import Histogram
from specmine.model.json_codec import decode

from .data_age import Span, utc_ns_of
from .subjects import calls_by_class, goes_over, is_called

RECENT = 5
"""Windows that ``observed`` rests on."""
_SAME_BORDER = 0.01


class DocumentData:
    """A specification: one lifetime as mined, with durations only if it was written in detail."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        """Take the document."""
        self._functions = [each for each in document["functions"] if isinstance(each, Mapping)]

    def lifetimes(self, subject: Subject) -> Sequence[LifetimeSample]:
        """Return the one lifetime that the document is of."""
        entry = self._entry(subject)
        if subject.condition is not None:
            raise Missing("a specification holds class shares of paths, not their durations")
        histogram = _on_cpu(entry).get("histogram") if subject.cpu else entry.get("histogram")
        if histogram is None:
            raise Missing("this specification holds no durations; check against a store")
        durations: Histogram = decode(Histogram, histogram)
        rate = entry.get("rate_per_second")
        sample = sample_of_histogram(durations, 1e9 * float(entry.get("bias_seconds") or 0.0))
        return [LifetimeSample(lifetime="1", host="", sample=sample, rate=rate)]

    def class_calls(self, subject: Subject, borders_ns: Sequence[float]) -> ClassCalls:
        """Return the calls per class, of the durations or of the paths."""
        entry = self._entry(subject)
        told = _on_cpu(entry) if subject.cpu else entry
        if subject.condition is None and told.get("histogram") is not None:
            (whole,) = self.lifetimes(subject)
            return ClassCalls(rows=(calls_by_class(whole.sample, borders_ns),))
        own = [1e9 * float(each) for each in told.get("borders_seconds") or ()]
        if len(own) != len(borders_ns) or any(
            abs(a - b) > _SAME_BORDER * b for a, b in zip(own, borders_ns, strict=True)
        ):
            raise Missing("its classes are cut elsewhere, and it holds no durations; check against a store")
        paths = entry.get("paths") or ()
        if subject.cpu:
            rows = [_calls([each["share"] for each in told["classes"]], told["calls"])]
        elif subject.condition is None:
            rows = [_calls(each["shares"], each["calls"]) for each in entry.get("behaviours") or ()]
        elif is_inside(subject.condition.edges):
            _, behaviour = self._part(subject)
            if not behaviour:
                raise Missing("a specification does not tell what other calls reached; check against a store")
            rows = [_calls(behaviour["shares"], behaviour["calls"])]
        elif not paths:
            raise Missing("no call paths are known of it")
        else:
            rows = [
                _calls(each["shares"], each["calls"])
                for each in paths
                if each.get("complete") and goes_over(tuple(each["frames"]), subject.condition)
            ]
        summed = np.sum(np.array(rows, dtype=np.int64).reshape(-1, len(borders_ns) + 1), axis=0)
        return ClassCalls(rows=(tuple(int(each) for each in summed),))

    def windows(self, subject: Subject) -> Sequence[Window]:
        """Return the durations that the document holds as one window."""
        entry, told = self._part(subject)
        if told.get("histogram") is None:
            raise Missing("this specification holds no durations of these calls; check against a store")
        histogram: Histogram = decode(Histogram, told["histogram"])
        bias_ns = 1e9 * float(entry.get("bias_seconds") or 0.0)
        return [Window(histogram=histogram, start_ns=0, end_ns=1, lifetime="1", bias_ns=bias_ns)]

    def stated(self, subject: Subject) -> Mapping[str, StatedQuantile] | None:
        """Return the quantiles of the newest windows, else those learned, unless the durations say it better."""
        _, told = self._part(subject)
        newest = told.get("observed")
        if newest is None and told.get("histogram") is not None:
            return None
        windows = min(RECENT, int(told.get("windows") or 1)) if newest is not None else int(told.get("windows") or 1)
        ranges, calls = told.get("quantiles") or {}, int(told.get("calls") or 0)
        return {
            name: StatedQuantile(
                seconds=float(each["seconds"]),
                low=float(ranges[name]["low"]),
                high=float(ranges[name]["high"]),
                windows=windows,
                calls=calls,
            )
            for name, each in (newest or ranges).items()
            if each and ranges.get(name) and None not in (ranges[name]["low"], ranges[name]["high"])
        }

    def span(self, subject: Subject, *, recent: bool) -> Span | None:
        """Return when the calls of a subject were observed."""
        entry, told = self._part(subject)
        if (recent or subject.condition is not None) and told.get("observed_span"):
            return _dates(told["observed_span"])
        return _dates(entry.get("windows_span"))

    def _part(self, subject: Subject) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
        """Return the entry of a function, and the part of it that a subject means."""
        entry = self._entry(subject)
        if subject.condition is not None:
            return entry, next((each for each in entry.get("behaviours") or () if _is_of(each, subject.condition)), {})
        return entry, _on_cpu(entry) if subject.cpu else entry

    def _entry(self, subject: Subject) -> Mapping[str, Any]:
        if subject.build is not None or subject.host is not None:
            raise Missing("a specification is of one build on one host; check against a store")
        found = [each for each in self._functions
                 if is_called(str(each.get("function")), str(each.get("module") or ""), subject.function)]  # fmt: skip
        if not found:
            raise Missing(f"no function {subject.function} was seen")
        return found[0]


def _on_cpu(entry: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the time on CPU in an entry; for calls that never leave the CPU it is their duration."""
    found: Mapping[str, Any] | None = entry.get("on_cpu")
    if found is not None:
        return found
    if not entry.get("time"):
        raise Missing("what its calls did of their time is not known")
    calls = entry["time"]["calls"]
    return {**{name: entry.get(name) for name in ("histogram", "borders_seconds", "classes")}, "calls": calls}


def _is_of(behaviour: Mapping[str, Any], condition: Condition) -> bool:
    return condition.on_path is None and from_records(behaviour.get("formula") or []) == condition.edges


def _dates(span: Mapping[str, Any] | None) -> Span | None:
    start, end = (utc_ns_of((span or {}).get(name)) for name in ("start", "end"))
    return None if start is None or end is None else Span(start_ns=start, end_ns=end)


def _calls(shares: Sequence[float], calls: int) -> list[int]:
    return [round(share * calls) for share in shares]
