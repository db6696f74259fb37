"""The result of a check as JSON: ``specmine.check/1``."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from specmine.daemon.documents.json_text import rounded
from specmine.mining.spl.evaluation import Node, Rules, worst_of
from specmine.mining.spl.syntax import Statement
from specmine.model.verdict import Verdict

SCHEMA = "specmine.check/1"


def document_of(statements: Sequence[Statement], nodes: Sequence[Node], against: str, rules: Rules) -> dict[str, Any]:
    """Return the result as JSON values."""
    verdicts = [node.verdict for node in nodes]
    return {
        "schema": SCHEMA,
        "against": against,
        "interpretation": rules.interpretation,
        "level": rules.level,
        "verdict": worst_of(verdicts).value,
        "counts": {each.value: verdicts.count(each) for each in Verdict},
        "formulas": [
            {
                "name": statement.name or None,
                "text": statement.source or node.text,
                "verdict": node.verdict.value,
                "evidence": rounded(_finite(_evidence(node))),
            }
            for statement, node in zip(statements, nodes, strict=True)
        ],
    }


def _evidence(node: Node) -> dict[str, Any]:
    return {**node.evidence, **({"parts": [part.as_json() for part in node.parts]} if node.parts else {})}


def _finite(value: Any) -> Any:
    """Return JSON values, with null for what no number says."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {key: _finite(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(each) for each in value]
    return value
