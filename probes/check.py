"""One need of specmine, as ``specmine doctor`` looks for it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One need: found or not."""

    name: str
    ok: bool
    detail: str
    remedy: str = ""
    needed: bool = True
    """False: specmine works without it, with less."""
