"""The rate of false alarms on the user's own data, as JSON: ``specmine.selftest/1``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from specmine.mining.comparison.function_comparison import OTHERS_RISK
from specmine.mining.comparison.self_test import self_test
from specmine.mining.regression.comparison import Rule

from .sides import Key, Sides, samples

SCHEMA = "specmine.selftest/1"
SEED = 20_260


def self_test_document(sides: Sides, names: Sequence[Key], rule: Rule) -> dict[str, Any]:
    """Return how often random halves of one side are called different, by function and in all."""
    rng = np.random.default_rng(SEED)
    entries: list[dict[str, Any]] = []
    for key in names:
        for name, side in (("base", sides.base), ("new", sides.new)):
            found = self_test(samples(side.get(key, [])), rule, rng)
            if found.splits:
                counts = {
                    "splits": found.splits,
                    "alarms": found.alarms,
                    "undecided": found.undecided,
                    "equivalent": found.equivalent,
                }
                entries.append({"function": key[0], "module": key[1], "side": name, **counts})
    splits, alarms = (sum(each[name] for each in entries) for name in ("splits", "alarms"))
    return {
        "schema": SCHEMA,
        "rule": {"summary": rule.summary, "level": rule.level, "tolerance": rule.tolerance},
        "nominal_rate": round((1.0 - rule.level) * (1.0 + OTHERS_RISK), 12),
        "splits": splits,
        "alarms": alarms,
        "rate": alarms / splits if splits else None,
        "functions": entries,
    }
