"""How a comparison of sums is decided: specmine's own way, and the three of the paper."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from .intervals import specmine
from .published import bootstrap, parametric, welch
from .question import Answer, Question

INTERPRETATIONS: Mapping[str, Callable[[Question], Answer]] = {
    "specmine": specmine,
    "welch": welch,
    "parametric": parametric,
    "bootstrap": bootstrap,
}
