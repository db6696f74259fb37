"""What is known of code and of moved cost is weighed against what durations alone speak for."""

from __future__ import annotations

import pytest

from specmine.mining.regression.attribution import OTHER_MIX, ChangeAttribution
from specmine.mining.regression.attribution_evidence import ChangeEvidence, weigh
from specmine.mining.regression.code_diff import CodeChange

B, C = ("b", "m"), ("c", "m")


@pytest.mark.parametrize(
    ("evidence", "cause", "said"),
    [
        (ChangeEvidence(), "code", "1 of 1"),
        (ChangeEvidence(code=CodeChange.CHANGED), "code", "its machine code changed"),
        (ChangeEvidence(code=CodeChange.SAME), "unknown", "no machine code"),
        (ChangeEvidence(code=CodeChange.SAME, suspects=(B,)), "code", "of b changed, which it calls"),
        (ChangeEvidence(exchanged=(C,)), "code", "c lost as much"),
    ],
)
def test_evidence_is_weighed(evidence: ChangeEvidence, cause: str, said: str) -> None:
    """Code and moved cost turn what durations alone speak for, each with its reason."""
    attribution = ChangeAttribution(
        kinds=("class-moved",), cause="code", reason="1 of 1 classes moved", classes=(), rate_ratio=1.0
    )
    found = weigh(attribution, 1.2, evidence)
    assert found.cause == cause
    assert said in found.reason
    mix = ChangeAttribution(kinds=("share-changed",), cause="load", reason=OTHER_MIX, classes=(), rate_ratio=1.0)
    own_code = weigh(mix, 1.5, ChangeEvidence(code=CodeChange.CHANGED))
    assert (own_code.cause, own_code.reason) == (
        "code",
        "its machine code changed; the mix of its classes changed with it",
    )
    assert weigh(mix, 1.5, ChangeEvidence(code=CodeChange.SAME)) == mix
    load = ChangeAttribution(kinds=(), cause="load", reason="more calls", classes=(), rate_ratio=2.0)
    assert weigh(load, 1.2, evidence) == load
