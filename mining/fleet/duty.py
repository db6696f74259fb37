"""What the fleet asks of a host: to observe some functions, each for a purpose and a number of calls."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from specmine.model.observation import Kind


class Purpose(StrEnum):
    """Why a host observes a function for the fleet."""

    SCOUT = "scout"
    """To find borders, call paths and expressions soon: whoever sees most calls. States no level."""
    PANEL = "panel"
    """To state levels and to check: drawn by lot, before anybody knows who is fast."""
    CANARY = "canary"
    """The same with a build that few hosts run ..."""
    CONTROL = "control"
    """... and with the build that the others run, at the same time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Duty:
    """A function that a host is asked to observe. It is a wish: safety and budget stay the host's."""

    function: str
    """Key of the function."""
    purpose: Purpose
    calls: int
    """Timed calls: of a scout in all, else every five minutes."""
    kind: Kind = Kind.TIME
