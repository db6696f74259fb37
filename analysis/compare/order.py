"""Whether both sides took turns in time, as JSON, with the remedy where they did not."""

from __future__ import annotations

from typing import Any

from specmine.mining.comparison.interleaving import Interleaving
from specmine.mining.regression.host_drift import HostDrift

from .part_entries import finite

REMEDY = "let lifetimes of both builds take turns: base, new, base, new, and so on"


def order_document(order: Interleaving, drift: HostDrift | None) -> dict[str, Any]:
    """Return the order of lifetimes; ``warning`` and ``remedy`` are None where there is nothing to warn of."""
    warning = None
    if order.interleaved is False:
        warning = "the lifetimes of both sides did not take turns: a change of the host looks like one of the build"
    return {
        "interleaved": order.interleaved,
        "exchanges": order.exchanges,
        "expected_exchanges": finite(order.expected),
        "warning": warning,
        "remedy": REMEDY if warning else None,
        "drift": {
            "ratio": finite(drift.ratio),
            "interval": [finite(drift.low), finite(drift.high)],
            "functions": drift.controls,
        }
        if drift is not None
        else None,
    }
