"""Formulas from their text."""

from __future__ import annotations

from specmine.mining.spl.parser import parse_specification
from specmine.mining.spl.syntax import Formula


def formula_of(text: str) -> Formula:
    """Return the only formula of a text."""
    (statement,) = parse_specification(text).statements
    return statement.formula
