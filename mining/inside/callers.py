"""Callers in the edges of a kind of calls that are no functions."""

from __future__ import annotations

from specmine.model.call_path import Frame

THIS_CALL = Frame("", "")
"""A call of the function itself."""
BLOCKED_CALL = Frame("(blocked)", "")
"""The same in an edge to where the call was blocked: a callee, or ``ANYWHERE``. No function has this name."""
