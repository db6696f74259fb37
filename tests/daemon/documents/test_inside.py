"""What happened inside calls, as JSON: nothing passes for own code in silence."""

from __future__ import annotations

import numpy as np

from specmine.daemon.documents.inside import inside_facts, spread_facts
from specmine.model.call_path import Frame
from tests.support.insides import inside_of_calls

FLUSH, PARSE, SORT = Frame("flush", "libc"), Frame("parse", "app"), Frame("sort", "app")


def test_callees_that_were_not_timed_together_with_the_function_are_named() -> None:
    """Those that samples found, too: else all would be called own code. What was timed is not named."""
    known = inside_of_calls({PARSE: np.full(200, 1e3)}, np.linspace(1e4, 2e4, 200))
    untold = [{"callee": "flush", "module": "libc"}, {"callee": "sort", "module": "app"}]
    (only,) = inside_facts(known, (), 0.0, {FLUSH, SORT, PARSE})
    assert only["not_timed"] == sorted(untold, key=lambda each: each["callee"])
    spread = spread_facts(known, 0.0, {FLUSH, SORT, PARSE})
    assert spread is not None and spread["not_timed"] == only["not_timed"]
    (alone,) = inside_facts(known, (), 0.0)
    assert alone["not_timed"] == []
