"""How a comparison of sums is decided: specmine's own way, and the three of the paper."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from .interval_semantics import specmine
from .paper_semantics import bootstrap, parametric, welch
from .query import Answer, Question

INTERPRETATIONS: Mapping[str, Callable[[Question], Answer]] = {
    "specmine": specmine,
    "welch": welch,
    "parametric": parametric,
    "bootstrap": bootstrap,
}
