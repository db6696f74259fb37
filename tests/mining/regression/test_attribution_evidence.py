"""What is known of code and of moved cost is weighed against what durations alone speak for."""

from __future__ import annotations

import pytest

from specmine.mining.regression.attribution import Blame
from specmine.mining.regression.attribution_evidence import Evidence, weighed
from specmine.mining.regression.code_diff import Code

B, C = ("b", "m"), ("c", "m")


@pytest.mark.parametrize(
    ("evidence", "cause", "said"),
    [
        (Evidence(), "code", "1 of 1"),
        (Evidence(code=Code.CHANGED), "code", "its machine code changed"),
        (Evidence(code=Code.SAME), "unknown", "no machine code"),
        (Evidence(code=Code.SAME, suspects=(B,)), "code", "of b changed, which it calls"),
        (Evidence(exchanged=(C,)), "code", "c lost as much"),
    ],
)
def test_evidence_is_weighed(evidence: Evidence, cause: str, said: str) -> None:
    """Code and moved cost turn what durations alone speak for, each with its reason."""
    blame = Blame(kinds=("class-moved",), cause="code", reason="1 of 1 classes moved", classes=(), rate_ratio=1.0)
    found = weighed(blame, 1.2, evidence)
    assert found.cause == cause
    assert said in found.reason
    load = Blame(kinds=(), cause="load", reason="more calls", classes=(), rate_ratio=2.0)
    assert weighed(load, 1.2, evidence) == load
