"""How far merged specifications agree, as JSON: ``specmine.merge/1``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

SCHEMA = "specmine.merge/1"
ENOUGH = 0.95
"""Share of a function's decided calls that must be grouped alike to call its models consistent."""
_DECIDED = 0.5
"""Share of its calls of which something must be decided for that."""


def agreement_document(inputs: Sequence[Path], document: Mapping[str, Any]) -> dict[str, Any]:
    """Return for each function of a merged specification how far the inputs agree, and a summary."""
    functions = [_function(each) for each in document["functions"]]
    functions.sort(key=lambda each: (-each["calls"], str(each["function"]), str(each["module"])))
    compared = [each for each in functions if each["steps"]]
    doubtful = [each for each in compared if each["steps"][-1]["undecided_ratio"] > 1 - _DECIDED]
    good = [each for each in compared if each["steps"][-1]["calls_ratio"] >= ENOUGH and each not in doubtful]
    return {
        "schema": SCHEMA,
        "inputs": [str(each) for each in inputs],
        "functions": functions,
        "summary": {
            "functions": len(functions),
            "compared": len(compared),
            "uncompared": sum(each["models"] > 1 and not each["steps"] for each in functions),
            "consistent": len(good),
            "undecided": len(doubtful),
            "consistent_ratio": len(good) / len(compared) if compared else None,
        },
    }


def _function(entry: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "function": entry.get("function"),
        "module": entry.get("module"),
        "calls": entry["timed"],
        "state": entry.get("state"),
        "behaviours": [each.get("expression") for each in entry.get("behaviours") or []],
        "dropped_seconds": entry.get("dropped_seconds") or [],
        **entry["merge"],
    }
