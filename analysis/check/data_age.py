"""How old the data of a verdict are. What the daemon saw before a specification does not say whether it holds now."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Protocol

from specmine.daemon.documents.timestamps import rfc3339
from specmine.mining.spl.data import Missing
from specmine.mining.spl.evaluation import Node
from specmine.mining.spl.mined import MinedAssertion, MinedLevel
from specmine.mining.spl.quantifiers import parts_of
from specmine.mining.spl.syntax import Comparison, Formula, Subject
from specmine.model.text import age
from specmine.model.verdict import Verdict

IN_PART = "observed in part before the specification: newer windows have to show it"


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """When calls were observed, UTC."""

    start_ns: int
    end_ns: int


class Dated(Protocol):
    """Data that know when they were observed."""

    def span(self, subject: Subject, *, recent: bool) -> Span | None:
        """Return when calls of a subject were observed; None: not known. Raises Missing.

        ``recent``: only the newest windows count, where the data tell them apart.
        """
        ...


def dated(node: Node, formula: Formula, data: Dated, since_ns: Mapping[str, int]) -> Node:
    """Return a result with the age of its data; what is older than a mined statement leaves it unknown.

    Parameters
    ----------
    node : Node
        What ``formula`` came to.
    formula : Formula
    data : Dated
    since_ns : mapping of str to int
        Function to when the windows began that it was mined from, UTC. Empty: data of any age count.
    """
    # the level of all calls is read off the newest windows; a class and its share off all of them
    recent = isinstance(formula, MinedLevel) and formula.above is None and formula.upto is None
    spans = [span for each in _subjects(formula) if (span := _span(data, each, recent=recent)) is not None]
    if not spans:
        return node
    newest = {"newest": rfc3339(max(each.end_ns for each in spans))}
    since = since_ns.get(formula.subject.function) if isinstance(formula, MinedAssertion | MinedLevel) else None
    if since is not None and spans[0].end_ns <= since:
        evidence = {"reason": before(since - spans[0].end_ns), **newest}
        return replace(node, verdict=Verdict.UNKNOWN, evidence=evidence)
    if since is not None and spans[0].start_ns < since and node.verdict is Verdict.VIOLATED:
        return replace(node, verdict=Verdict.UNKNOWN, evidence={**_undecided(node.evidence), **newest})
    return replace(node, evidence={**node.evidence, **newest})


def before(earlier_ns: int) -> str:
    """Return the reason of who was observed so long before the specification."""
    return f"observed {age(earlier_ns * 1e-9)} before the specification"


def utc_ns_of(moment: Any) -> int | None:
    """Return a time in RFC 3339 in ns since 1970; None if it is none."""
    try:
        parsed = datetime.fromisoformat(moment)
        if parsed.tzinfo is None:
            return None
        return round(parsed.astimezone(UTC).timestamp() * 1e3) * 1_000_000  # what no calendar has overflows here
    except (TypeError, ValueError, OverflowError):
        return None


def _undecided(evidence: Mapping[str, Any]) -> dict[str, Any]:
    violated = Verdict.VIOLATED.value
    quantiles = [
        {**each, "verdict": Verdict.UNKNOWN.value} if each["verdict"] == violated else each
        for each in evidence.get("quantiles", ())
    ]
    return {**evidence, **({"quantiles": quantiles} if quantiles else {}), "reason": IN_PART}


def _subjects(formula: Formula) -> list[Subject]:
    if isinstance(formula, MinedAssertion | MinedLevel):
        return [formula.subject]
    if isinstance(formula, Comparison):
        return [measure.subject for side in (formula.left, formula.right) for _, measure in side.terms]
    return [subject for part in parts_of(formula) for subject in _subjects(part)]


def _span(data: Dated, subject: Subject, *, recent: bool) -> Span | None:
    try:
        return data.span(subject, recent=recent)
    except Missing:
        return None
